//! `aiseki health`: one question to a running server, for whatever watches it.

use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::header::HOST;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::server_url::ServerUrl;
use super::{Exit, Failure, output};
use crate::config::Environment;

/// Whoever watches asks again; a server that needs longer than this is not well.
const PATIENCE: Duration = Duration::from_secs(3);
const LARGEST_ANSWER: usize = 64 << 10;

/// Ask a running server whether it lives, or with --ready whether people can be seated there
#[derive(Args)]
#[command(after_help = "\
For containers and service managers, in which there is no curl. The server is --server, or AISEKI_SERVER, \
or http://127.0.0.1:8080; no token is needed.\n\n\
Exit codes: 0 it does, 1 it answers that it does not, 2 wrong usage, 3 no server answers there.")]
pub(super) struct Health {
    /// The server's address; that of a server with the default settings unless given
    #[arg(long, value_name = "URL")]
    server: Option<String>,

    /// Ask whether people can be seated there, not only whether the process lives
    #[arg(long)]
    ready: bool,
}

impl Health {
    pub(super) fn run(self, environment: &Environment) -> Result<(), Failure> {
        let server = ServerUrl::find(self.server.as_deref(), environment)?;
        let route = if self.ready { "/readyz" } else { "/healthz" };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::new(Exit::Failed, format_args!("no runtime: {error}")))?;
        let asked = runtime.block_on(async { timeout(PATIENCE, ask(&server, route)).await });
        let (status, body) =
            asked.unwrap_or_else(|_| Err("no answer in time".into())).map_err(|error| {
                let text = format!("no server answers at {server}: {error}");
                Failure::new(Exit::Unreachable, output::visible(&text))
            })?;
        if status != StatusCode::OK {
            let text = format!("{server} answers {status}: {}", body.trim());
            return Err(Failure::new(Exit::Failed, output::visible(&text)));
        }
        output::print(&format!("{}\n", output::visible(body.trim())))
    }
}

async fn ask(
    server: &ServerUrl,
    route: &str,
) -> Result<(StatusCode, String), Box<dyn std::error::Error + Send + Sync>> {
    let stream = TcpStream::connect(server.host_and_port()).await?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    // It ends with the runtime, which is dropped after the answer.
    tokio::spawn(connection);
    let request = Request::get(server.path(route)).header(HOST, server.authority());
    let answer = sender.send_request(request.body(Empty::<Bytes>::new())?).await?;
    let status = answer.status();
    let body = Limited::new(answer.into_body(), LARGEST_ANSWER).collect().await?;
    Ok((status, String::from_utf8_lossy(&body.to_bytes()).into_owned()))
}
