//! First come, first served.

use std::collections::HashMap;

use aiseki_lobby::Millis;

use super::{Case, Invariant, Outcome, Queue, Wait, queue_words};

impl Case<'_> {
    /// Nobody is seated while somebody who came before them still waits in the same queue, unless
    /// the server may keep that person apart from the people of the room.
    pub(super) fn check_order(&mut self) {
        let mut queues: HashMap<Queue, Vec<usize>> = HashMap::new();
        for (i, wait) in self.waits.iter().enumerate().filter(|(_, wait)| wait.since.is_some()) {
            queues.entry(wait.queue).or_default().push(i);
        }
        let mut found = Vec::new();
        for (queue, mut waits) in queues {
            waits.sort_by_key(|i| self.waits[*i].since);
            // The latest moment until which somebody before has been in the queue.
            let mut latest = 0;
            for (position, later) in waits.iter().enumerate() {
                let later = &self.waits[*later];
                if let Outcome::Seated(at) = later.outcome
                    && at < latest
                {
                    let passed =
                        waits[..position].iter().map(|i| &self.waits[*i]).find(|earlier| {
                            earlier.since < later.since
                                && still_there(earlier).is_some_and(|until| until > at)
                                && !self.may_be_kept_apart(earlier, later, at)
                        });
                    if let Some(earlier) = passed {
                        found.push(words(queue, earlier, later, at));
                    }
                }
                latest = latest.max(still_there(later).unwrap_or(0));
            }
        }
        for words in found {
            self.broken(Invariant::Order, words);
        }
    }

    fn may_be_kept_apart(&self, earlier: &Wait, later: &Wait, at: Millis) -> bool {
        let room = self
            .rooms
            .values()
            .find(|members| members.iter().any(|m| m.person == later.person && m.seat.at == at));
        let Some(members) = room else { return true };
        let strangers = members.len() < usize::from(members[0].seat.size);
        let sat_before = || {
            let seats = self.rooms.values().flatten();
            seats.into_iter().any(|m| m.person == earlier.person && m.seat.at < at)
        };
        (strangers && sat_before())
            || members.iter().any(|m| self.have_met(earlier.person, m.person, at))
    }
}

/// Until when somebody has certainly been in the queue, as far as it is known.
fn still_there(wait: &Wait) -> Option<Millis> {
    match &wait.outcome {
        Outcome::Seated(at) => Some(*at),
        Outcome::Ended(reason) if reason == "wait_expired" => wait.expires_at,
        _ => None,
    }
}

fn words(queue: Queue, earlier: &Wait, later: &Wait, at: Millis) -> String {
    let until = match earlier.outcome {
        Outcome::Seated(at) => format!("was seated at {at}"),
        _ => format!("waited in vain until {}", earlier.expires_at.unwrap_or_default()),
    };
    format!(
        "{}: person {} came at {} and {until}; person {} came at {} and was seated before, at {at} (ms)",
        queue_words(queue),
        earlier.person,
        earlier.since.unwrap_or_default(),
        later.person,
        later.since.unwrap_or_default()
    )
}
