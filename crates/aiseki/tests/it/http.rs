//! The contract's calls and refusals, against a server in this process.

/// Runs these tests against both stores.
macro_rules! on_both_stores {
    ($($test:ident),+ $(,)?) => {
        on_both_stores!(@ embedded, crate::harness::Settings::new(); $($test),+);
        on_both_stores!(@ shared, crate::harness::Settings::shared(); $($test),+);
    };
    (@ $store:ident, $settings:expr; $($test:ident),+) => {
        mod $store {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $test() {
                    super::$test($settings).await;
                }
            )+
        }
    };
}

/// Who may call as an operator.
mod admin;
/// Bans: who they cover, and whom they take out.
mod bans;
/// Pages of other origins: refusals, CORS, the `Origin` of sockets.
mod cross_site;
/// Server-sent events.
mod events;
/// `POST /api/matching`: its checks in their order.
mod joining;
/// `GET /api/matching?wait`.
mod long_poll;
/// Health, metrics, the description of the interface.
mod operations;
/// The page that people see: its files, their caching, what may run in it.
mod page;
/// Who is there and who is not, seen through open connections.
mod presence;
/// Reports: what is kept, and how operators judge it.
mod reports;
/// Going back to the front of the queue, from a room to which others never came.
mod resume;
/// Rooms: who sees them, who leaves them, how operators close them.
mod rooms;
/// `POST /api/session` and who is asking.
mod sessions;
/// What every call has in common: paths, methods, bodies, problem documents.
mod shape;
/// An orderly end under open connections.
mod shutdown;
/// The WebSocket of matching.
mod sockets;
/// `GET` and `DELETE /api/matching`.
mod states;
/// The WebSocket of a room: talking, coming and going, and how it ends.
mod talking;
/// Topics: titles, switching off, how many wait.
mod topics;
