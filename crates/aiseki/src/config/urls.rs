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
        Some(rest) if !rest.is_empty() && !ports_fit(rest) => {
            Err("expected ports from 1 to 65535 after the hosts".into())
        }
        Some(rest) if !rest.is_empty() => Ok(Secret::new(text)),
        _ => Err("expected postgres://USER:PASSWORD@HOST:PORT/DATABASE".into()),
    }
}

/// Whether each of the hosts after a scheme has a port that can be one, or none.
fn ports_fit(rest: &str) -> bool {
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let hosts = authority.rsplit_once('@').map_or(authority, |(_, hosts)| hosts);
    hosts.split(',').all(|host| match host.rsplit_once(':') {
        // The colons within the brackets are an address's own.
        Some((_, port)) if !port.ends_with(']') => port.parse::<u16>().is_ok_and(|port| port > 0),
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_none_can_be_is_refused_without_the_password() {
        for place in
            ["127.0.0.1:99999/postgres", "db:0", "db:x/aiseki", "one:1,two:70000/a", "[::1]:99999"]
        {
            let reason = database_url(&format!("postgres://u:hunter2@{place}")).err();
            assert!(
                reason.is_some_and(|it| it.contains("port") && !it.contains("hunter2")),
                "{place}"
            );
        }
        for place in [
            "db",
            "db:5432/aiseki",
            "one:1,two:2/a?x=y:z",
            "[::1]/a",
            "[::1]:5432",
            "%2Frun%2Fpg/a",
        ] {
            assert!(database_url(&format!("postgres://u:p:w@{place}")).is_ok(), "{place}");
        }
    }
}
