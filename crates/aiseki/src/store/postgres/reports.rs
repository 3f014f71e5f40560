//! The reports' table.

use aiseki_lobby::{Millis, RoomId, SessionId};
use tokio_postgres::Row;
use uuid::Uuid;

use super::{PostgresStore, millis, rows, small, sql, uuid};
use crate::port::Pending;
use crate::reports::{FLOOD_WINDOW, NewReport, REPORTS_AT_ONCE, Report, ReportStore, TooMany};

impl ReportStore for PostgresStore {
    fn add_report(&self, report: NewReport) -> Pending<'_, Result<(), TooMany>> {
        let NewReport { room, reporter, reported, seat, reason, said } = report;
        let (room, reporter, reported) = (uuid(room.0), uuid(reporter.0), uuid(reported.0));
        // Numbers and text always have a form in JSON.
        let said = serde_json::to_string(&said).unwrap_or_else(|_| "[]".into());
        let (seat, window) = (i16::from(seat), i64::try_from(FLOOD_WINDOW).unwrap_or(i64::MAX));
        Box::pin(self.link.ask("adding a report", async move |client| {
            let same = client.prepare_cached(sql::SAME_REPORT).await?;
            if client.query_opt(&same, &[&reporter, &room, &seat, &reason]).await?.is_some() {
                return Ok(Ok(()));
            }
            let late = client.prepare_cached(sql::LATE_REPORTS).await?;
            let row = client.query_one(&late, &[&reporter, &window]).await?;
            if row.get::<_, i64>(0) >= i64::from(REPORTS_AT_ONCE) {
                let retry_after = Millis::try_from(row.get::<_, i64>(1)).unwrap_or_default();
                return Ok(Err(TooMany { retry_after }));
            }
            let add = client.prepare_cached(sql::ADD_REPORT).await?;
            client.execute(&add, &[&room, &reporter, &reported, &seat, &reason, &said]).await?;
            Ok(Ok(()))
        }))
    }

    fn reports(&self, before: Option<i64>, limit: usize, open: bool) -> Pending<'_, Vec<Report>> {
        let before = before.unwrap_or(i64::MAX);
        Box::pin(self.link.ask("reading reports", async move |client| {
            let statement = client.prepare_cached(sql::REPORTS).await?;
            let found = client.query(&statement, &[&before, &rows(limit), &open]).await?;
            Ok(found.iter().map(report).collect())
        }))
    }

    fn report(&self, id: i64) -> Pending<'_, Option<Report>> {
        Box::pin(self.link.ask("reading a report", async move |client| {
            let statement = client.prepare_cached(sql::REPORT).await?;
            Ok(client.query_opt(&statement, &[&id]).await?.as_ref().map(report))
        }))
    }

    fn judge_report(&self, id: i64, ban: Option<i64>) -> Pending<'_, Option<Report>> {
        Box::pin(self.link.ask("judging a report", async move |client| {
            let statement = client.prepare_cached(sql::JUDGE_REPORT).await?;
            Ok(client.query_opt(&statement, &[&id, &ban]).await?.as_ref().map(report))
        }))
    }
}

fn report(row: &Row) -> Report {
    let session = |column| SessionId(row.get::<_, Uuid>(column).into_bytes());
    let id: i64 = row.get(0);
    let said = serde_json::from_str(row.get(6)).unwrap_or_else(|error| {
        tracing::warn!(report = id, %error, "what was said is not as we write it and is left out");
        Vec::new()
    });
    Report {
        id,
        about: NewReport {
            room: RoomId(row.get::<_, Uuid>(1).into_bytes()),
            reporter: session(2),
            reported: session(3),
            seat: small(row.get(4)),
            reason: row.get(5),
            said,
        },
        created_at: millis(row.get(7)),
        judged_at: row.get::<_, Option<_>>(8).map(millis),
        ban: row.get(9),
    }
}
