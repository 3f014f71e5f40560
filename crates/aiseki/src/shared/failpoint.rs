//! Places at which a debug build dies when the environment says so: `AISEKI_FAILPOINT=before-insert`.
//! A test that kills a process from outside cannot choose the moment between two calls.

/// Dies here without a word, as a power cut would have it, if this is the place that is named.
#[expect(clippy::disallowed_methods, reason = "no setting: it is there for tests alone")]
pub(super) fn reach(place: &str) {
    if cfg!(debug_assertions)
        && std::env::var_os("AISEKI_FAILPOINT").is_some_and(|named| named == place)
    {
        std::process::abort();
    }
}
