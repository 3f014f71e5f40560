//! What people report to operators, with what was said.

use aiseki_lobby::{Millis, RoomId, SessionId};
use serde::{Deserialize, Serialize};

use crate::port::Pending;

/// A reason has at most so many characters.
pub const REASON_CHARACTERS: usize = 500;
/// The last so many messages of the room are kept with a report.
pub const MESSAGES_KEPT: usize = 50;
/// One person may report so often within [`FLOOD_WINDOW`]. Repetitions of a report are not counted.
pub const REPORTS_AT_ONCE: u32 = 10;
/// For how long a report counts against its reporter.
pub const FLOOD_WINDOW: Millis = 3_600_000;

/// Where reports are kept.
pub trait ReportStore: Send + Sync {
    /// Keeps a report. One of the same person about the same seat of the same room with the same
    /// reason is there already when a call is repeated: then nothing is added.
    fn add_report(&self, report: NewReport) -> Pending<'_, Result<(), TooMany>>;
    /// Reports, the newest first: those numbered below `before`, at most `limit`, with `open` only
    /// those that nobody has judged.
    fn reports(&self, before: Option<i64>, limit: usize, open: bool) -> Pending<'_, Vec<Report>>;
    /// The report of this number.
    fn report(&self, id: i64) -> Pending<'_, Option<Report>>;
    /// Notes that somebody looked at it, and by which ban it was answered. The first judgement keeps
    /// its time, and a ban that was noted stays. `None` when there is no report of this number.
    fn judge_report(&self, id: i64, ban: Option<i64>) -> Pending<'_, Option<Report>>;
}

/// Something that somebody reports. The reason has been checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewReport {
    /// Where it happened.
    pub room: RoomId,
    /// Who reports.
    pub reporter: SessionId,
    /// Who is reported.
    pub reported: SessionId,
    /// The seat of who is reported.
    pub seat: u8,
    /// Why.
    pub reason: String,
    /// What was said last.
    pub said: Vec<Quote>,
}

/// A report as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Its number, which is never used again.
    pub id: i64,
    /// What was reported.
    pub about: NewReport,
    /// When, by the store's clock.
    pub created_at: Millis,
    /// When an operator judged it.
    pub judged_at: Option<Millis>,
    /// The number of the ban by which it was answered.
    pub ban: Option<i64>,
}

/// A message that is kept with a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quote {
    /// Its number in the room.
    pub seq: u64,
    /// The seat of who said it.
    pub seat: u8,
    /// What was said, exactly.
    pub text: String,
    /// When.
    pub at: Millis,
}

/// Somebody reports too much in too little time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany {
    /// In how many milliseconds there is room for another report.
    pub retry_after: Millis,
}

/// Whether this may be a reason. Like a message it is kept exactly, and has no control characters but
/// the line feed and the tab.
pub fn check_reason(reason: &str) -> bool {
    reason.chars().take(REASON_CHARACTERS + 1).count() <= REASON_CHARACTERS
        && !reason.trim().is_empty()
        && !reason.chars().any(|c| c.is_control() && c != '\n' && c != '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_counted_in_characters() {
        assert!(check_reason("鮨") && check_reason(&"鮨".repeat(500)) && check_reason("a\n\tb"));
        for bad in ["", " \n", "a\0", "\u{1b}[31m", &"x".repeat(501)] {
            assert!(!check_reason(bad), "{bad:?}");
        }
    }
}
