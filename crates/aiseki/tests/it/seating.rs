//! The cases of the field: what has broken services like this one.
//!
//! | case | what it is | where it is held |
//! | --- | --- | --- |
//! | 1 | the same call twice at once, and join, cancel, join in quick succession | `seating`, `conformance::crowd` |
//! | 2 | a join against a cancel at the same instant | `seating`, `conformance::crowd` |
//! | 3 | somebody posts and is never heard of again | `seating`, `conformance::tick` |
//! | 5 | waiting always means a live place | `seating`, `conformance::tick` |
//! | 6 | the same token returns before and after the match | `seating` |
//! | 7, 27, 28, 29 | a room is being written | cannot happen here: the room is written in the step that forms it; the shared store's suite has them |
//! | 8 | a great many people post and vanish | `conformance::tick` (ten thousand), and the lobby's benchmark for a million |
//! | 10 | two people at the same moment on an empty topic | `conformance::crowd` |
//! | 12 | age never hides a ticket | `seating`, `conformance::tick` |
//! | 14 | writing fails and recovers | `process::disk` |
//! | 16 | the answer of a join is lost and the client repeats it | `seating` |
//! | 18 | clocks that jump | `aiseki::clock`: the store's clock never follows the wall while it runs |
//! | 19 | a thousand arrivals at once | `conformance::crowd` |
//! | 21 | a wait ends and the person joins elsewhere | `seating`, `http::states` |
//! | 23 | titles of every kind | `http::topics`, `conformance::records` |
//! | 25 | restarts while many wait; a topic is switched off | `seating`, `conformance::close_topic` |
//! | 26 | two of three leave at the same instant | `seating`, `conformance::vacate` |
//! | 30 | everything is restarted | `seating`, `process::crash` |

/// One person or two, and calls that cross each other.
mod crossing;
/// Waits that end, and servers that are restarted under them.
mod lasting;
