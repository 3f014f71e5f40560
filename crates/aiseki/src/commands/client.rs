//! What operator commands share: the server, the token, one request, and what its failure means.

use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::server_url::ServerUrl;
use super::{Exit, Failure, output};
use crate::config::{Asked, Environment, Flags, Secret};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
const LARGEST_ANSWER: usize = 64 << 20;

/// What stands under the help of every operator command.
pub(super) const HELP: &str = "\
The server is --server, or AISEKI_SERVER, or http://127.0.0.1:8080. The token is the server's admin token: \
from --admin-token-file, AISEKI_ADMIN_TOKEN, AISEKI_ADMIN_TOKEN_FILE, or the configuration file. It is sent \
over plain http: reach a server elsewhere through a tunnel.\n\n\
Exit codes:\n  \
0  done\n  \
1  the server refused, or something failed\n  \
2  wrong usage, or a setting that cannot be used\n  \
3  no server answers there\n  \
4  the admin token is missing or wrong, or the server has none\n  \
5  there is no such topic, ban or room";

/// The flags of every operator command.
#[derive(Args)]
pub(super) struct Connection {
    #[arg(
        long,
        value_name = "URL",
        global = true,
        help_heading = "Server",
        help = "The server's address [default: http://127.0.0.1:8080]"
    )]
    server: Option<String>,

    /// The file that holds the admin token
    #[arg(long, value_name = "FILE", global = true, help_heading = "Server")]
    admin_token_file: Option<String>,

    /// The configuration file, for its admin token [default: ./aiseki.toml, when it exists]
    #[arg(long, value_name = "FILE", global = true, help_heading = "Server")]
    config: Option<String>,

    /// Print the server's answer as JSON, for programs
    #[arg(long, global = true)]
    pub(super) json: bool,
}

impl Connection {
    /// Finds the server and the token. Nothing is sent yet.
    pub(super) fn client(self, environment: &Environment) -> Result<Client, Failure> {
        let server = ServerUrl::find(self.server.as_deref(), environment)?;
        let flags = Flags::of_operator(self.config, self.admin_token_file);
        let asked = Asked::gather(&flags, environment)?;
        let Some((token, source)) = asked.admin_token()? else {
            // A mistyped variable is the likeliest reason for having no token.
            let warnings = asked.warnings().iter().map(|warning| format!(" ({warning})"));
            let warnings: String = warnings.collect();
            return Err(Failure::new(
                Exit::Token,
                format_args!(
                    "no admin token: set AISEKI_ADMIN_TOKEN or name its file with \
                     --admin-token-file{warnings}"
                ),
            ));
        };
        Ok(Client { server, token, token_source: source.to_string() })
    }
}

/// Asks one server.
pub(super) struct Client {
    server: ServerUrl,
    token: Secret,
    token_source: String,
}

/// RFC 9457, as far as people are told.
#[derive(Deserialize)]
struct Problem {
    title: Option<String>,
    detail: Option<String>,
    code: Option<String>,
}

impl Client {
    pub(super) fn get(&self, path: &str) -> Result<Answer, Failure> {
        self.send(&Method::GET, path, None)
    }

    /// Sends one request on a connection of its own, and returns what the server did not refuse.
    pub(super) fn send(
        &self,
        method: &Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::new(Exit::Failed, format_args!("no runtime: {error}")))?;
        let (status, body) = runtime.block_on(self.exchange(method, path, body))?;
        if status.is_success() {
            return Ok(Answer(body));
        }
        if status == StatusCode::NOT_FOUND {
            // Without a token at the server all its admin routes answer so, and only a route that
            // always exists can tell that from a topic that does not.
            let probe = runtime.block_on(self.exchange(&Method::GET, "/admin/topics", None))?;
            if probe.0 == StatusCode::NOT_FOUND {
                return Err(self.no_admin_routes());
            }
        }
        Err(self.refusal(status, &body))
    }

    async fn exchange(
        &self,
        method: &Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(StatusCode, String), Failure> {
        let server = &self.server;
        let unreachable = |why: &dyn std::fmt::Display| {
            Failure::new(
                Exit::Unreachable,
                format_args!(
                    "no server answers at {server}: {why} (is it running? --server or \
                     AISEKI_SERVER names another)"
                ),
            )
        };
        let stream = timeout(CONNECT_TIMEOUT, TcpStream::connect(server.host_and_port()))
            .await
            .map_err(|_| unreachable(&"the connection takes too long"))?
            .map_err(|error| unreachable(&error))?;
        let answer = timeout(ANSWER_TIMEOUT, async {
            let (mut sender, connection) =
                hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
            // It ends with the runtime, which is dropped after the answer.
            tokio::spawn(connection);
            sender.send_request(self.request(method, path, body)).await
        })
        .await
        .map_err(|_| unreachable(&"the answer takes too long"))?
        .map_err(|error| unreachable(&chain(&error)))?;
        let status = answer.status();
        let body =
            timeout(ANSWER_TIMEOUT, Limited::new(answer.into_body(), LARGEST_ANSWER).collect())
                .await
                .map_err(|_| unreachable(&"the answer takes too long"))?
                .map_err(|error| unreachable(&format_args!("its answer breaks off: {error}")))?;
        Ok((status, String::from_utf8_lossy(&body.to_bytes()).into_owned()))
    }

    fn request(&self, method: &Method, path: &str, body: Option<&Value>) -> Request<Full<Bytes>> {
        let mut bearer = HeaderValue::from_str(&format!("Bearer {}", self.token.expose()))
            .expect("an admin token is visible ASCII");
        bearer.set_sensitive(true);
        let mut request = Request::builder()
            .method(method)
            .uri(self.server.path(path))
            .header(HOST, self.server.authority())
            .header(AUTHORIZATION, bearer)
            .header(ACCEPT, "application/json, application/problem+json")
            .header(USER_AGENT, concat!("aiseki/", env!("CARGO_PKG_VERSION")));
        let body = body.map(Value::to_string);
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        request
            .body(Full::from(body.unwrap_or_default()))
            .expect("the parts of a request were checked when they were made")
    }

    fn refusal(&self, status: StatusCode, body: &str) -> Failure {
        let server = &self.server;
        if status == StatusCode::UNAUTHORIZED {
            let source = &self.token_source;
            return Failure::new(
                Exit::Token,
                format_args!("{server} does not accept the admin token from {source}"),
            );
        }
        let Ok(Problem { title, detail, code: Some(code) }) = serde_json::from_str(body) else {
            return Failure::new(
                Exit::Failed,
                format_args!(
                    "{server} answers {status}, and not as aiseki does: is the address right?"
                ),
            );
        };
        let words = detail.or(title).unwrap_or_else(|| status.to_string());
        let exit = if status == StatusCode::NOT_FOUND { Exit::Absent } else { Exit::Failed };
        Failure::new(exit, output::visible(&format!("{} ({code})", words.trim_end_matches('.'))))
    }

    fn no_admin_routes(&self) -> Failure {
        Failure::new(
            Exit::Token,
            format_args!(
                "{} has no admin routes: start the server with an admin token \
                 (AISEKI_ADMIN_TOKEN), or add its base path to the address",
                self.server
            ),
        )
    }
}

/// An answer that was no refusal.
pub(super) struct Answer(String);

impl Answer {
    /// The answer as it came, for programs; nothing for an empty one.
    pub(super) fn json(&self) -> String {
        if self.0.is_empty() { String::new() } else { format!("{}\n", self.0.trim_end()) }
    }

    /// What it says.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        serde_json::from_str(&self.0).map_err(|error| {
            Failure::new(Exit::Failed, format_args!("the answer is not as aiseki's are: {error}"))
        })
    }
}

/// An error with its causes, on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes.fold(error.to_string(), |line, cause| format!("{line}: {cause}"))
}
