//! Reports, for operators.

use aiseki_lobby::Millis;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::bans::parse_expiry;
use super::number;
use crate::bans::REASON_CHARACTERS;
use crate::http::Shared;
use crate::http::error::{Code, Problem, to_the_end};
use crate::http::extract::{Json, Named, Operator, Queried};
use crate::http::state::timestamp;
use crate::operators::Verdict;
use crate::reports::Report;

/// Reports in one page of the list, if the operator does not ask for fewer. Each holds up to 50 messages.
const REPORTS_PER_PAGE: usize = 20;
const MOST_REPORTS_PER_PAGE: usize = 100;

#[derive(Serialize, ToSchema)]
pub(in crate::http) struct ReportList {
    reports: Vec<ListedReport>,
    /// To be given as `after` for the next page; null on the last one.
    next: Option<i64>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::http) struct ListedReport {
    id: i64,
    #[schema(format = "uuid")]
    room_id: String,
    /// The seat of who is reported.
    seat: u8,
    /// The session of who is reported, as a ban takes it.
    session: String,
    /// The session of who reports.
    reporter: String,
    reason: String,
    #[schema(format = DateTime)]
    created_at: String,
    /// When an operator judged it.
    #[schema(format = DateTime)]
    judged_at: Option<String>,
    /// The ban by which it was answered.
    ban_id: Option<i64>,
    /// What was said last in the room when it was reported.
    messages: Vec<ReportedMessage>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::http) struct ReportedMessage {
    seq: u64,
    seat: u8,
    text: String,
    #[schema(format = DateTime)]
    at: String,
}

impl From<Report> for ListedReport {
    fn from(report: Report) -> Self {
        let Report { id, about, created_at, judged_at, ban } = report;
        Self {
            id,
            room_id: about.room.to_string(),
            seat: about.seat,
            session: about.reported.to_string(),
            reporter: about.reporter.to_string(),
            reason: about.reason,
            created_at: timestamp(created_at),
            judged_at: judged_at.map(timestamp),
            ban_id: ban,
            messages: about
                .said
                .into_iter()
                .map(|said| ReportedMessage {
                    seq: said.seq,
                    seat: said.seat,
                    text: said.text,
                    at: timestamp(said.at),
                })
                .collect(),
        }
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct ReportsQuery {
    /// Only those that nobody has judged.
    #[serde(default)]
    open: bool,
    /// The `next` of the page before.
    after: Option<i64>,
    /// Reports in a page.
    #[param(minimum = 1, maximum = 100, default = 20)]
    limit: Option<usize>,
}

/// What people reported
#[utoipa::path(
    get, path = "/admin/reports", tag = "operators", security(("admin" = [])),
    params(ReportsQuery),
    responses(
        (status = 200, description = "A page of reports, newest first", body = ReportList),
        (status = 400, description = "`invalid_query`", body = Problem, content_type = "application/problem+json"),
        (status = 401, description = "`unauthenticated`", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "`not_found`: the server has no admin token", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "`unavailable`", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(in crate::http) async fn list_reports(
    _: Operator,
    State(services): Shared,
    Queried(query): Queried<ReportsQuery>,
) -> Result<axum::Json<ReportList>, Problem> {
    let limit = query.limit.unwrap_or(REPORTS_PER_PAGE);
    if !(1..=MOST_REPORTS_PER_PAGE).contains(&limit) {
        let detail = "limit is a number from 1 to 100";
        return Err(Problem::new(Code::InvalidQuery).with_detail(detail));
    }
    // One more than asked for tells whether there is another page.
    let mut found = services.reports.reports(query.after, limit + 1, query.open).await?;
    let more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| more).map(|report| report.id);
    Ok(axum::Json(ReportList { reports: found.into_iter().map(Into::into).collect(), next }))
}

/// A report
#[utoipa::path(
    get, path = "/admin/reports/{id}", tag = "operators", security(("admin" = [])),
    params(("id" = i64, Path)),
    responses(
        (status = 200, description = "The report", body = ListedReport),
        (status = 401, description = "`unauthenticated`", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "`not_found`", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "`unavailable`", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(in crate::http) async fn get_report(
    _: Operator,
    State(services): Shared,
    Named(id): Named,
) -> Result<axum::Json<ListedReport>, Problem> {
    match services.reports.report(number(&id)?).await? {
        Some(report) => Ok(axum::Json(report.into())),
        None => Err(Problem::new(Code::NotFound)),
    }
}

#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct Judgement {
    /// Bans who is reported; without it the report is only marked.
    ban: Option<BanOfReported>,
}

#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct BanOfReported {
    /// What to remember, at most 500 characters; the reason of the report if it is left out.
    #[schema(max_length = 500)]
    reason: Option<String>,
    /// Until when; for ever if it is left out.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
}

/// Judge a report
///
/// Marks it as judged, and with `ban` also bans the session that it is about. Repeating it bans nobody
/// twice.
#[utoipa::path(
    post, path = "/admin/reports/{id}/judge", tag = "operators", security(("admin" = [])),
    params(("id" = i64, Path)),
    request_body = Judgement,
    responses(
        (status = 200, description = "Judged", body = ListedReport),
        (status = 400, description = "`invalid_body` or `invalid_ban`", body = Problem, content_type = "application/problem+json"),
        (status = 401, description = "`unauthenticated`", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "`not_found`", body = Problem, content_type = "application/problem+json"),
        (status = 408, description = "`request_timeout`", body = Problem, content_type = "application/problem+json"),
        (status = 413, description = "`body_too_large`", body = Problem, content_type = "application/problem+json"),
        (status = 415, description = "`unsupported_media_type`", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "`unavailable`", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(in crate::http) async fn judge_report(
    _: Operator,
    State(services): Shared,
    Named(id): Named,
    Json(body): Json<Judgement>,
) -> Result<axum::Json<ListedReport>, Problem> {
    let id = number(&id)?;
    let now = services.matching.now();
    let verdict = body.ban.map(|ban| verdict(ban, now)).transpose()?;
    let (operators, reports) = (services.operators.clone(), services.reports.clone());
    let judged = to_the_end(async move { operators.judge(reports.as_ref(), id, verdict).await });
    match judged.await?? {
        Some(report) => Ok(axum::Json(report.into())),
        None => Err(Problem::new(Code::NotFound)),
    }
}

fn verdict(ban: BanOfReported, now: Millis) -> Result<Verdict, Problem> {
    if ban.reason.as_ref().is_some_and(|reason| reason.chars().count() > REASON_CHARACTERS) {
        let detail = "reason has more than 500 characters";
        return Err(Problem::new(Code::InvalidBan).with_detail(detail));
    }
    let expires_at = parse_expiry(ban.expires_at, now)?;
    Ok(Verdict { reason: ban.reason, expires_at })
}
