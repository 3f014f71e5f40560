//! Where the server is, and how a connection to it is made.

use std::time::Duration;

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ErrorKind, IntoConnectionInfo, Pipeline, ProtocolVersion,
    PushInfo, RedisError, RedisResult, TlsCertificates, Value,
};

use crate::error::{Result, invalid};

const SENTINEL_PORT: u16 = 26_379;
/// How many commands may be on their way on one connection.
const PIPELINE: usize = 1_024;
const KEEPALIVE: Duration = Duration::from_secs(10);
/// Every script may be sent twice, so following a moved slot by sending again is safe.
const CLUSTER_RETRIES: u32 = 3;

/// Where a connection puts what the server says unasked.
pub(crate) type Pushes = tokio::sync::mpsc::UnboundedSender<PushInfo>;

/// How long to wait for a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For a connection.
    pub connect: Duration,
    /// For one answer; a link that stays silent for longer is replaced.
    pub response: Duration,
    /// For an operation with all its repetitions, until it fails.
    pub operation: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(2),
            response: Duration::from_secs(2),
            operation: Duration::from_secs(10),
        }
    }
}

/// A Redis or Valkey: one server, the primary that Sentinels name, or a cluster.
///
/// | URL | is |
/// | --- | --- |
/// | `redis://[USER:PASSWORD@]HOST[:PORT][/DB]` | one server; `rediss://` with TLS |
/// | `redis-sentinel://[USER:PASSWORD@]HOST[:PORT],…[/DB]?service=NAME` | the primary of this name |
/// | `redis-cluster://[USER:PASSWORD@]HOST[:PORT],…` | a cluster, by any of its nodes |
///
/// `rediss-sentinel://` and `rediss-cluster://` use TLS to the servers.
#[derive(Clone)]
pub struct Server {
    place: Place,
    timeouts: Timeouts,
    certificates: Option<TlsCertificates>,
    text: String,
}

#[derive(Clone)]
enum Place {
    One(String),
    Sentinel { sentinels: Vec<String>, service: String, url: Parts },
    Cluster(Vec<String>),
}

/// A URL taken apart: scheme, `user:password@` or nothing, hosts, path, query.
#[derive(Clone)]
struct Parts {
    scheme: &'static str,
    credentials: String,
    hosts: Vec<String>,
    path: String,
    query: String,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("at", &self.text).finish_non_exhaustive()
    }
}

impl Server {
    /// The server at this URL; nothing is connected yet.
    pub fn new(url: &str) -> Result<Self> {
        let parts = Parts::parse(url)?;
        if parts.scheme == "rediss" {
            // TLS needs a cryptography provider for the whole process. A program that has chosen
            // one keeps it: this then fails, and nothing changes.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let text = format!("{}://{}", parts.scheme, parts.hosts.join(","));
        let place = match url.split_once("://").map(|(scheme, _)| scheme) {
            Some("redis" | "rediss") => {
                url.into_connection_info().map_err(crate::Error::Server)?;
                Place::One(url.to_owned())
            }
            Some("redis-sentinel" | "rediss-sentinel") => {
                let service = parts.query.split('&').find_map(|each| each.strip_prefix("service="));
                let Some(service) = service.filter(|name| !name.is_empty()) else {
                    return invalid("a redis-sentinel:// URL names the primary: ?service=NAME");
                };
                let sentinels = parts.hosts.iter().map(|host| with_port(host, SENTINEL_PORT));
                Place::Sentinel {
                    sentinels: sentinels.map(|host| format!("redis://{host}")).collect(),
                    service: service.to_owned(),
                    url: parts.clone(),
                }
            }
            _ => Place::Cluster(
                parts.hosts.iter().map(|host| parts.with_host(&with_port(host, 6379))).collect(),
            ),
        };
        Ok(Self { place, timeouts: Timeouts::default(), certificates: None, text })
    }

    /// The same with other time limits.
    #[must_use]
    pub fn with_timeouts(self, timeouts: Timeouts) -> Self {
        Self { timeouts, ..self }
    }

    /// The same, trusting this certificate authority (PEM) instead of the public ones.
    #[must_use]
    pub fn with_root_certificate(self, pem: impl Into<Vec<u8>>) -> Self {
        let certificates = TlsCertificates { client_tls: None, root_cert: Some(pem.into()) };
        Self { certificates: Some(certificates), ..self }
    }

    /// The time limits.
    pub fn timeouts(&self) -> Timeouts {
        self.timeouts
    }

    /// Whether it is a cluster.
    pub fn is_cluster(&self) -> bool {
        matches!(self.place, Place::Cluster(_))
    }

    /// A new connection. Answers are waited for by the caller, so the library's own time-out, which
    /// would leave a blocking command behind on the server, is off.
    pub(crate) async fn connect(&self) -> RedisResult<Connection> {
        self.connect_with(None).await
    }

    /// A new connection that passes on what the server says unasked.
    pub(crate) async fn connect_with(&self, pushes: Option<Pushes>) -> RedisResult<Connection> {
        match &self.place {
            Place::One(url) => Ok(Connection::One(self.connect_to(url, pushes).await?)),
            Place::Sentinel { sentinels, service, url } => {
                let at = self.primary(sentinels, service).await?;
                Ok(Connection::One(self.connect_to(&url.with_host(&at), pushes).await?))
            }
            Place::Cluster(nodes) => {
                let mut builder = ClusterClient::builder(nodes.clone())
                    .retries(CLUSTER_RETRIES)
                    .connection_timeout(self.timeouts.connect)
                    .response_timeout(Duration::from_hours(1))
                    .overall_response_timeout(None)
                    .tcp_settings(tcp());
                if let Some(certificates) = &self.certificates {
                    builder = builder.certs(certificates.clone());
                }
                if let Some(pushes) = pushes {
                    builder = builder.use_protocol(ProtocolVersion::RESP3).push_sender(pushes);
                }
                let connecting = async { builder.build()?.get_async_connection().await };
                let limit = self.timeouts.connect * 3;
                let connection = tokio::time::timeout(limit, connecting).await;
                Ok(Connection::Cluster(connection.map_err(|_| late("connecting"))??))
            }
        }
    }

    async fn connect_to(
        &self,
        url: &str,
        pushes: Option<Pushes>,
    ) -> RedisResult<MultiplexedConnection> {
        let mut info = url.into_connection_info()?.set_tcp_settings(tcp());
        if pushes.is_some() {
            let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
            info = info.set_redis_settings(settings);
        }
        let client = match &self.certificates {
            Some(certificates) => Client::build_with_tls(info, certificates.clone())?,
            None => Client::open(info)?,
        };
        let mut config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.timeouts.connect))
            .set_response_timeout(None)
            .set_pipeline_buffer_size(PIPELINE);
        if let Some(pushes) = pushes {
            config = config.set_push_sender(pushes);
        }
        client.get_multiplexed_async_connection_with_config(&config).await
    }

    /// Asks the Sentinels, each time anew: after a fail-over the answer is another one.
    async fn primary(&self, sentinels: &[String], service: &str) -> RedisResult<String> {
        let mut ask = redis::cmd("SENTINEL");
        ask.arg("get-master-addr-by-name").arg(service);
        let mut failure = RedisError::from((
            ErrorKind::MasterNameNotFoundBySentinel,
            "no Sentinel knows the service",
        ));
        for sentinel in sentinels {
            let mut connection = match self.connect_to(sentinel, None).await {
                Ok(connection) => connection,
                Err(error) => {
                    failure = error;
                    continue;
                }
            };
            let answer = ask.query_async::<Option<(String, u16)>>(&mut connection);
            match tokio::time::timeout(self.timeouts.response, answer).await {
                Ok(Ok(Some((host, port)))) => return Ok(format!("{host}:{port}")),
                Ok(Ok(None)) => {}
                Ok(Err(error)) => failure = error,
                Err(_) => failure = late("a Sentinel's answer"),
            }
        }
        Err(failure)
    }
}

impl Parts {
    fn parse(url: &str) -> Result<Self> {
        let Some((scheme, rest)) = url.split_once("://") else {
            return invalid("a Redis URL begins with redis://, redis-sentinel:// or the like");
        };
        let scheme = match scheme {
            "redis" | "redis-sentinel" | "redis-cluster" => "redis",
            "rediss" | "rediss-sentinel" | "rediss-cluster" => "rediss",
            other => return invalid(format!("{other}:// is no Redis URL")),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (credentials, rest) = match rest.rsplit_once('@') {
            Some((credentials, rest)) => (format!("{credentials}@"), rest),
            None => (String::new(), rest),
        };
        let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
        let hosts: Vec<String> = hosts.split(',').map(str::to_owned).collect();
        if hosts.iter().any(String::is_empty) {
            return invalid("a Redis URL names a host");
        }
        let (path, query) = (path.to_owned(), query.to_owned());
        Ok(Self { scheme, credentials, hosts, path, query })
    }

    fn with_host(&self, host: &str) -> String {
        format!("{}://{}{host}/{}", self.scheme, self.credentials, self.path)
    }
}

fn with_port(host: &str, port: u16) -> String {
    let has_port = host.rsplit_once(':').is_some_and(|(name, port)| {
        !name.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
    });
    if has_port { host.to_owned() } else { format!("{host}:{port}") }
}

fn tcp() -> TcpSettings {
    let keepalive = redis::io::tcp::socket2::TcpKeepalive::new().with_time(KEEPALIVE);
    TcpSettings::default().set_nodelay(true).set_keepalive(keepalive)
}

/// The error for an answer that did not come in time.
pub(crate) fn late(what: &str) -> RedisError {
    RedisError::from(std::io::Error::new(
        std::io::ErrorKind::TimedOut,
        format!("{what}: timed out"),
    ))
}

/// One connection; copies share it.
#[derive(Clone)]
pub(crate) enum Connection {
    One(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl Connection {
    pub(crate) async fn send(&mut self, command: &Cmd) -> RedisResult<Value> {
        match self {
            Self::One(connection) => connection.req_packed_command(command).await,
            Self::Cluster(connection) => connection.req_packed_command(command).await,
        }
        .and_then(Value::extract_error)
    }

    /// Sends commands in one go; errors stand in their places.
    pub(crate) async fn send_all(&mut self, pipeline: &Pipeline) -> RedisResult<Vec<Value>> {
        let count = pipeline.len();
        match self {
            Self::One(connection) => connection.req_packed_commands(pipeline, 0, count).await,
            Self::Cluster(connection) => connection.req_packed_commands(pipeline, 0, count).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() -> Result<()> {
        assert!(Server::new("redis://localhost:6379/1").is_ok());
        assert!(Server::new("rediss://user:pass@localhost").is_ok());
        assert!(Server::new("redis-cluster://a:1,b:2")?.is_cluster());
        let server = Server::new("redis-sentinel://me:secret@a,b:2/3?service=main")?;
        let Place::Sentinel { sentinels, service, url } = &server.place else {
            return invalid("not a Sentinel");
        };
        assert_eq!(sentinels, &["redis://a:26379", "redis://b:2"]);
        assert_eq!(service, "main");
        assert_eq!(url.with_host("c:4"), "redis://me:secret@c:4/3");
        assert!(!format!("{server:?}").contains("secret"));
        Ok(())
    }

    #[test]
    fn a_bad_url_is_refused() {
        for bad in ["localhost", "http://a", "redis://", "redis-sentinel://a", "redis-cluster://,"]
        {
            assert!(Server::new(bad).is_err(), "{bad}");
        }
    }
}
