//! How the places of the shared store are read. What is said of a bad one shows no password.

use super::Secret;

/// The place of a Redis or Valkey.
pub(super) fn redis_url(text: &str) -> Result<Secret, String> {
    let text = text.trim();
    match aiseki_mq::Server::new(text) {
        Ok(_) => Ok(Secret::new(text)),
        Err(_) => Err("expected redis://HOST:PORT, rediss://, redis-sentinel://HOST?service=NAME \
                       or redis-cluster://HOST,HOST"
            .into()),
    }
}

/// The place of a PostgreSQL.
pub(super) fn database_url(text: &str) -> Result<Secret, String> {
    let text = text.trim();
    let rest = ["postgres://", "postgresql://"].iter().find_map(|scheme| text.strip_prefix(scheme));
    match rest {
        Some(rest) if !rest.is_empty() => Ok(Secret::new(text)),
        _ => Err("expected postgres://USER:PASSWORD@HOST:PORT/DATABASE".into()),
    }
}
