//! Where the database is: a URL taken apart, and what every connection is made with.

use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Error, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Until an address accepts the connection, shared by all addresses of the URL.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// An idle connection is asked for a sign of life after so long, so that no firewall forgets it.
const KEEPALIVE: Duration = Duration::from_secs(10);
/// What was sent and is not acknowledged for so long ends the connection: the machine is gone.
const UNACKNOWLEDGED: Duration = Duration::from_secs(4);
/// By this an administrator knows our connections in `pg_stat_activity`.
const APPLICATION: &str = "aiseki";

/// The URL cannot be used. The text names the reason and never the password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadDatabaseUrl(String);

/// How connections are made.
#[derive(Clone)]
pub(super) struct Address {
    config: Config,
    tls: MakeRustlsConnect,
}

type Connection =
    tokio_postgres::Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

impl Address {
    /// Takes a `postgres://` URL apart.
    ///
    /// With `sslmode=require`, `verify-ca` or `verify-full` the connection is encrypted and the server
    /// shows a certificate for its name, signed by a public authority or by one in the file
    /// `sslrootcert`. Without, it is plain: "encrypted if the server happens to offer it" protects
    /// from nobody who can change what is on the wire, and it is not pretended.
    pub(super) fn parse(url: &str) -> Result<Self, BadDatabaseUrl> {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return bad("a database's URL begins with postgres://");
        }
        let (place, query) = url.split_once('?').unwrap_or((url, ""));
        let mut mode = SslMode::Disable;
        let mut roots = None;
        let mut others = Vec::new();
        for option in query.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=').unwrap_or((option, "")) {
                ("sslmode", "disable" | "allow" | "prefer") => mode = SslMode::Disable,
                ("sslmode", "require" | "verify-ca" | "verify-full") => mode = SslMode::Require,
                ("sslmode", _) => return bad("sslmode is disable, require or verify-full"),
                ("sslrootcert", path) => roots = Some(path),
                _ => others.push(option),
            }
        }
        let url = format!("{place}?{}", others.join("&"));
        let mut config: Config = url.parse().map_err(|error: Error| {
            let source = std::error::Error::source(&error);
            BadDatabaseUrl(source.map_or_else(|| error.to_string(), ToString::to_string))
        })?;
        if config.get_hosts().is_empty() {
            return bad("a database's URL names a host");
        }
        let hosts = u32::try_from(config.get_hosts().len()).unwrap_or(u32::MAX);
        config
            .ssl_mode(mode)
            .application_name(APPLICATION)
            .connect_timeout(CONNECT_TIMEOUT / hosts)
            .keepalives(true)
            .keepalives_idle(KEEPALIVE)
            .tcp_user_timeout(UNACKNOWLEDGED);
        if hosts > 1 {
            // Of several servers one is the primary, and which one may change.
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        Ok(Self { config, tls: MakeRustlsConnect::new(certificates(roots)?) })
    }

    /// A connection, and what drives it.
    pub(super) async fn connect(&self) -> Result<(Client, Connection), Error> {
        self.config.connect(self.tls.clone()).await
    }
}

fn certificates(file: Option<&str>) -> Result<ClientConfig, BadDatabaseUrl> {
    let mut roots = RootCertStore::empty();
    if let Some(file) = file {
        let unreadable = |error: &dyn std::fmt::Display| {
            BadDatabaseUrl(format!("sslrootcert {file} cannot be used: {error}"))
        };
        let found = CertificateDer::pem_file_iter(file).map_err(|error| unreadable(&error))?;
        for certificate in found {
            let certificate = certificate.map_err(|error| unreadable(&error))?;
            roots.add(certificate).map_err(|error| unreadable(&error))?;
        }
        if roots.is_empty() {
            return Err(unreadable(&"it holds no certificate"));
        }
    } else {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider knows the protocol versions that are enabled");
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

fn bad<T>(text: &str) -> Result<T, BadDatabaseUrl> {
    Err(BadDatabaseUrl(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_that_cannot_be_used_is_refused_without_its_password() {
        for (url, reason) in [
            ("mysql://u:hunter2@db/aiseki", "postgres://"),
            ("host=db password=hunter2", "postgres://"),
            ("postgres://u:hunter2@/aiseki", "host"),
            ("postgres://u:hunter2@db:x/aiseki", "port"),
            ("postgres://u:hunter2@db/aiseki?sslmode=maybe", "sslmode"),
            ("postgres://u:hunter2@db/aiseki?colour=blue", "colour"),
            ("postgres://u:hunter2@db/aiseki?sslmode=require&sslrootcert=/none", "/none"),
        ] {
            let Err(error) = Address::parse(url) else { panic!("{url} was taken") };
            let text = error.to_string();
            assert!(text.contains(reason) && !text.contains("hunter2"), "{url}: {text}");
        }
    }

    #[test]
    fn a_connection_is_encrypted_when_that_is_asked_for() {
        let mode = |url: &str| Address::parse(url).unwrap().config.get_ssl_mode();
        assert_eq!(mode("postgres://u@db/aiseki"), SslMode::Disable);
        assert_eq!(mode("postgresql://u@db/aiseki?sslmode=require"), SslMode::Require);
        assert_eq!(
            mode("postgres://u@db/a?sslmode=verify-full&options=-c%20x%3Dy"),
            SslMode::Require
        );
    }

    #[test]
    fn of_several_servers_the_primary_is_looked_for() {
        let wanted = |url: &str| Address::parse(url).unwrap().config.get_target_session_attrs();
        assert_eq!(wanted("postgres://u@one,two/aiseki"), TargetSessionAttrs::ReadWrite);
        assert_eq!(wanted("postgres://u@one/aiseki"), TargetSessionAttrs::Any);
    }
}
