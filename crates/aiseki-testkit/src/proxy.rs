//! A TCP proxy that can delay, swallow, lose and cut.
//!
//! It runs on threads of its own, so that a test that blocks its runtime does not block the
//! network as well.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::Result;

/// A proxy in front of one server; the port stays open until the value is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    upstream: Option<SocketAddr>,
    delay: Duration,
    black_hole: bool,
    refuse: bool,
    closed: bool,
    lose_reply_to: Option<Vec<u8>>,
    lost_replies: usize,
    open: Vec<(TcpStream, TcpStream)>,
}

impl Proxy {
    /// A proxy to the server on this port of 127.0.0.1.
    pub fn to(port: u16) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let state = Arc::new(Mutex::new(State {
            upstream: Some(SocketAddr::from(([127, 0, 0, 1], port))),
            ..State::default()
        }));
        let shared = Arc::clone(&state);
        thread::spawn(move || accept(&listener, &shared));
        Ok(Self { address, state })
    }

    /// `redis://127.0.0.1:PORT` of the proxy.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// The proxy's port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Every chunk takes this long, each way.
    pub fn delay(&self, delay: Duration) {
        lock(&self.state).delay = delay;
    }

    /// Connections stay open and are accepted, and nothing passes: a half-open link.
    pub fn black_hole(&self, on: bool) {
        lock(&self.state).black_hole = on;
    }

    /// New connections are closed at once.
    pub fn refuse(&self, on: bool) {
        lock(&self.state).refuse = on;
    }

    /// From now on new connections lead to the server on this port.
    pub fn lead_to(&self, port: u16) {
        lock(&self.state).upstream = Some(SocketAddr::from(([127, 0, 0, 1], port)));
    }

    /// The next request that contains `needle` reaches the server and is executed; its reply is
    /// swallowed and the connection is cut.
    pub fn lose_reply_to(&self, needle: &[u8]) {
        lock(&self.state).lose_reply_to = Some(needle.to_vec());
    }

    /// How many replies were swallowed so far.
    pub fn lost_replies(&self) -> usize {
        lock(&self.state).lost_replies
    }

    /// Cuts every open connection; the answer is how many there were.
    pub fn cut(&self) -> usize {
        let open = std::mem::take(&mut lock(&self.state).open);
        for (client, server) in &open {
            let _ = client.shutdown(Shutdown::Both);
            let _ = server.shutdown(Shutdown::Both);
        }
        open.len()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        lock(&self.state).closed = true;
        self.cut();
        // The accepting thread notices when somebody knocks.
        let _ = TcpStream::connect(self.address);
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn accept(listener: &TcpListener, state: &Arc<Mutex<State>>) {
    for client in listener.incoming() {
        let Ok(client) = client else { return };
        let (upstream, refuse) = {
            let state = lock(state);
            if state.closed {
                return;
            }
            (state.upstream, state.refuse)
        };
        let server = upstream.filter(|_| !refuse).and_then(|at| TcpStream::connect(at).ok());
        // A client whose server cannot be reached is dropped here, and with that closed.
        if let Some(server) = server {
            let _ = join(client, server, state);
        }
    }
}

fn join(client: TcpStream, server: TcpStream, state: &Arc<Mutex<State>>) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    lock(state).open.push((client.try_clone()?, server.try_clone()?));
    let losing = Arc::new(Mutex::new(false));
    let (state_up, losing_up) = (Arc::clone(state), Arc::clone(&losing));
    let (client_up, server_up) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || requests(client_up, server_up, &state_up, &losing_up));
    let state = Arc::clone(state);
    thread::spawn(move || replies(server, client, &state, &losing));
    Ok(())
}

fn requests(
    mut client: TcpStream,
    mut server: TcpStream,
    state: &Mutex<State>,
    losing: &Mutex<bool>,
) {
    pass(&mut client, &mut server, state, |chunk, state| {
        let hit = state.lose_reply_to.as_ref().is_some_and(|needle| {
            chunk.windows(needle.len().max(1)).any(|window| window == needle.as_slice())
        });
        if hit {
            state.lose_reply_to = None;
            *losing.lock().unwrap_or_else(PoisonError::into_inner) = true;
        }
        true
    });
}

fn replies(
    mut server: TcpStream,
    mut client: TcpStream,
    state: &Mutex<State>,
    losing: &Mutex<bool>,
) {
    pass(&mut server, &mut client, state, |_, state| {
        let lost = *losing.lock().unwrap_or_else(PoisonError::into_inner);
        state.lost_replies += usize::from(lost);
        !lost
    });
}

/// Copies chunks until either side closes or `keep` refuses one; then both sides are closed.
fn pass(
    from: &mut TcpStream,
    to: &mut TcpStream,
    state: &Mutex<State>,
    mut keep: impl FnMut(&[u8], &mut State) -> bool,
) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        let chunk = &buffer[..length];
        let (delay, swallow, kept) = {
            let mut state = lock(state);
            let swallow = state.black_hole;
            (state.delay, swallow, swallow || keep(chunk, &mut state))
        };
        if !kept {
            break;
        }
        if swallow {
            continue;
        }
        #[expect(clippy::disallowed_methods, reason = "the delay is what this proxy is for")]
        thread::sleep(delay);
        if to.write_all(chunk).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
