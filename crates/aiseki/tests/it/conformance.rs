//! The ports to the stores: one suite for every store there is.
//!
//! A store joins by a function in `stores.rs` that makes an empty place for it, and a line in
//! [`suite`]. The groups are named by the transitions.

/// Runs these tests against every store.
macro_rules! suite {
    ($($test:ident),+ $(,)?) => {
        $crate::conformance::against!(embedded: $($test),+);
        $crate::conformance::against!(shared: $($test),+);
    };
}

macro_rules! against {
    ($store:ident: $($test:ident),+) => {
        mod $store {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $test() {
                    super::$test($crate::conformance::stores::$store()).await;
                }
            )+
        }
    };
}

pub(crate) use against;

/// People who are never seated together again.
mod block;
/// Ending a wait.
mod cancel;
/// A topic is switched off.
mod close_topic;
/// Thousands at once, judged by what must be true of any outcome.
mod crowd;
/// Beginning to wait: checks, limits, places.
mod enter;
/// Bans, and whom they take out.
mod expel;
/// What every test of the suite opens: a store with the product's use cases on it.
mod house;
/// Asking for one's state.
mod poll;
/// What is written down of rooms, topics and bans.
mod records;
/// People who have just shared a room.
mod rematch;
/// What people report.
mod reports;
/// Redis and PostgreSQL as one store.
mod shared;
/// The kinds of store.
mod stores;
/// What happens in time with nobody asking.
mod tick;
/// Signs of life.
mod touch;
/// Giving up a seat, and closing a room.
mod vacate;
