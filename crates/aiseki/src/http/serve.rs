//! The accept loop: limits on connections and their time, and an orderly end.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

use super::client::Peer;
use crate::metrics::Metrics;

/// The head of a request has to be complete so soon after its connection was opened, or after the
/// answer before it: it ends slow senders and idle connections alike.
const HEAD_TIMEOUT: Duration = Duration::from_secs(20);
/// The largest head of a request, in bytes.
const HEAD_BYTES: usize = 16 * 1024;
/// The most header fields in one request.
const HEAD_FIELDS: usize = 100;
/// Bytes that the peer's kernel does not acknowledge for so long mean that the peer is gone: a phone
/// in a tunnel is not present for ever.
const UNACKNOWLEDGED: Duration = Duration::from_secs(20);
/// Connections that the kernel holds until they are accepted.
const BACKLOG: i32 = 4096;
/// How long to wait before accepting again when the system has no room for another connection.
const PAUSE: Duration = Duration::from_millis(50);

/// What is served: one application until another is ready.
#[derive(Clone)]
pub struct App {
    at_first: Router,
    then: Arc<OnceLock<Router>>,
}

impl App {
    /// Serves this until something else is ready.
    pub fn new(at_first: Router) -> Self {
        Self { at_first, then: Arc::default() }
    }

    /// From now on this is served, also on connections that are open.
    pub fn ready(&self, app: Router) {
        // Nobody makes two applications ready.
        let _ = self.then.set(app);
    }

    fn current(&self) -> Router {
        self.then.get().unwrap_or(&self.at_first).clone()
    }
}

/// A bound port.
pub struct Listener {
    listener: TcpListener,
    max_connections: usize,
}

impl Listener {
    /// Binds the port. At most `max_connections` are served at once; others wait in the kernel.
    pub fn bind(address: SocketAddr, max_connections: usize) -> std::io::Result<Self> {
        let domain = socket2::Domain::for_address(address);
        let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None)?;
        // A restart must not wait until the connections of the last run are forgotten.
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        Ok(Self { listener: TcpListener::from_std(socket.into())?, max_connections })
    }

    /// Where it listens, which tells the port that was free.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// Serves until `draining` is cancelled and then until all connections have ended. The caller sets
/// the limit to the latter.
pub async fn serve(
    listener: Listener,
    app: App,
    metrics: Arc<Metrics>,
    draining: CancellationToken,
) {
    let connections = TaskTracker::new();
    let places = Arc::new(Semaphore::new(listener.max_connections));
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener.listener, &places) => accepted,
            () = draining.cancelled() => break,
        };
        let Some((stream, peer, place)) = accepted else { continue };
        let connection = Connection {
            app: app.clone(),
            peer,
            metrics: Arc::clone(&metrics),
            draining: draining.clone(),
            _place: place,
        };
        connections.spawn(connection.run(stream));
    }
    drop(listener);
    connections.close();
    connections.wait().await;
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, peer)) => {
            let socket = SockRef::from(&stream);
            // Neither can fail on a socket that is connected, and nothing depends on them.
            let _ = socket.set_tcp_nodelay(true);
            let _ = socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
            Some((stream, peer, place))
        }
        Err(error) => {
            tracing::warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(PAUSE).await;
            None
        }
    }
}

struct Connection {
    app: App,
    peer: SocketAddr,
    metrics: Arc<Metrics>,
    draining: CancellationToken,
    _place: OwnedSemaphorePermit,
}

impl Connection {
    async fn run(self, stream: TcpStream) {
        self.metrics.connections.inc();
        let peer = Peer(self.peer);
        let app = self.app.clone();
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(peer);
            let app = app.current();
            async move { Ok::<_, Infallible>(app.oneshot(request).await.unwrap_or_else(|e| match e {})) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_buf_size(HEAD_BYTES)
            .max_headers(HEAD_FIELDS)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        tokio::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => Some(ended),
            () = self.draining.cancelled() => None,
        };
        let ended = match ended {
            Some(ended) => ended,
            None => {
                // What is being answered is answered; an idle connection ends now.
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(peer = %self.peer, %error, "a connection broke off");
        }
        self.metrics.connections.dec();
    }
}
