//! The queue on real servers.

/// A server, a queue and a plain connection for one test.
mod bed;
/// What every engine keeps to.
mod conformance;
/// What the `lists` engine has beyond the common core.
mod lists;
/// The Lua itself: syntax, globals, and the part that others embed.
mod scripts;
