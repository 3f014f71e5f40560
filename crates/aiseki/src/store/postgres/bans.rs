//! The bans' table. Its trigger tells the other servers of every change.

use aiseki_lobby::{Millis, SessionId};
use ipnet::IpNet;
use tokio_postgres::Row;
use uuid::Uuid;

use super::{PostgresStore, millis, sql, time, uuid};
use crate::bans::{Ban, BanStore, BanSubject};
use crate::port::Pending;

impl BanStore for PostgresStore {
    fn bans(&self) -> Pending<'_, Vec<Ban>> {
        Box::pin(self.link.ask("reading bans", async |client| {
            let statement = client.prepare_cached(sql::BANS).await?;
            Ok(client.query(&statement, &[]).await?.iter().filter_map(ban).collect())
        }))
    }

    fn add_ban(
        &self,
        subject: BanSubject,
        reason: String,
        expires_at: Option<Millis>,
    ) -> Pending<'_, Ban> {
        let (session, network) = match subject {
            BanSubject::Session(session) => (Some(uuid(session.0)), None),
            BanSubject::Network(network) => (None, Some(network.to_string())),
        };
        let until = expires_at.map(time);
        Box::pin(self.link.ask("adding a ban", async move |client| {
            let statement = client.prepare_cached(sql::ADD_BAN).await?;
            let row = client.query_one(&statement, &[&session, &network, &reason, &until]).await?;
            let (id, created_at) = (row.get(0), millis(row.get(4)));
            Ok(Ban { id, subject, reason, created_at, expires_at: until.map(millis) })
        }))
    }

    fn remove_ban(&self, id: i64) -> Pending<'_, bool> {
        Box::pin(self.link.ask("removing a ban", async move |client| {
            let statement = client.prepare_cached(sql::REMOVE_BAN).await?;
            Ok(client.execute(&statement, &[&id]).await? > 0)
        }))
    }
}

fn ban(row: &Row) -> Option<Ban> {
    let session: Option<Uuid> = row.get(1);
    let network = row.get::<_, Option<&str>>(2).and_then(|text| text.parse::<IpNet>().ok());
    let subject = session
        .map(|id| BanSubject::Session(SessionId(id.into_bytes())))
        .or(network.map(BanSubject::Network));
    let id: i64 = row.get(0);
    if subject.is_none() {
        tracing::warn!(ban = id, "a ban of the database is about nobody and is left out");
    }
    Some(Ban {
        id,
        subject: subject?,
        reason: row.get(3),
        created_at: millis(row.get(4)),
        expires_at: row.get::<_, Option<_>>(5).map(millis),
    })
}
