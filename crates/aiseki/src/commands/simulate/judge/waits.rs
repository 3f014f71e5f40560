//! The waits of one person, as far as that person was told.

use aiseki_lobby::Millis;

use super::{Case, Event, History, Invariant, Member, Queue, State, What, queue_words};

/// One wait.
#[derive(Clone, Debug)]
pub(in super::super) struct Wait {
    pub(in super::super) person: usize,
    pub(in super::super) queue: Queue,
    /// Unknown when the person was told of the seat alone.
    pub(in super::super) since: Option<Millis>,
    pub(in super::super) expires_at: Option<Millis>,
    pub(in super::super) fallback_at: Option<Millis>,
    pub(in super::super) outcome: Outcome,
}

/// What became of a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Outcome {
    /// Not known yet, or for ever: whatever happened, nobody told the person.
    Unknown,
    /// A seat, at this moment.
    Seated(Millis),
    /// Stopped by the person.
    Cancelled,
    /// Ended by the server, for this reason.
    Ended(String),
}

/// Reasons for which somebody is idle without having been seated.
const NOT_SEATED: [&str; 5] = ["wait_expired", "absent", "topic_closed", "banned", "failed"];

impl Case<'_> {
    /// Finds the waits and the seats in what a person was told.
    pub(super) fn gather_waits(&mut self, person: usize, history: &History) {
        let mut open: Option<Wait> = None;
        let mut asked_for = None;
        // Whether a join since the open wait was last told may have begun another one.
        let mut may_be_another = false;
        for event in &history.events {
            match &event.what {
                What::Joined { queue, .. } | What::JoinLost { queue } => {
                    may_be_another = true;
                    asked_for = Some(*queue);
                    if matches!(event.what, What::JoinLost { .. }) && open.is_none() {
                        open = Some(unknown(person, *queue));
                    }
                }
                What::Cancelled => self.close(open.take(), Outcome::Cancelled),
                _ => {}
            }
            match event.state() {
                Some(State::Waiting(waiting)) => {
                    let same = open.as_ref().is_some_and(|wait| {
                        wait.queue == waiting.queue
                            && wait.since.is_none_or(|since| since == waiting.since)
                    });
                    if !same {
                        if let Some(wait) = open.take() {
                            if !may_be_another {
                                self.place_lost(&wait, waiting.since);
                            }
                            self.close(Some(wait), Outcome::Unknown);
                        }
                        open = Some(unknown(person, waiting.queue));
                    }
                    if let Some(wait) = &mut open {
                        wait.since = Some(waiting.since);
                        wait.expires_at = Some(waiting.expires_at);
                        wait.fallback_at = waiting.fallback_at;
                    }
                    may_be_another = false;
                }
                Some(State::Matched(seat)) => {
                    if may_be_another
                        && !self.knows_seat(person, event)
                        && let Some(wait) = open.take()
                    {
                        // Another join: the wait that is open may have ended unseen in a room that is
                        // over, and this seat may come of either. Which, nobody can tell.
                        let of_the_open_one = wait.queue == (seat.topic, seat.requested);
                        let asked = asked_for.filter(|_| !of_the_open_one);
                        open = Some(unknown(person, asked.unwrap_or(wait.queue)));
                        self.close(Some(wait), Outcome::Unknown);
                    }
                    self.seated(person, event, &mut open, asked_for, may_be_another);
                    may_be_another = false;
                }
                Some(State::Idle { reason }) => {
                    let reason = reason.as_deref().unwrap_or_default();
                    let outcome = if NOT_SEATED.contains(&reason) {
                        Outcome::Ended(reason.to_owned())
                    } else {
                        Outcome::Unknown
                    };
                    self.close(open.take(), outcome);
                    may_be_another = false;
                }
                None => {}
            }
        }
        self.close(open, Outcome::Unknown);
    }

    fn knows_seat(&self, person: usize, event: &Event) -> bool {
        let members = event.seat().and_then(|seat| self.rooms.get(&seat.room));
        members.is_some_and(|members| members.iter().any(|member| member.person == person))
    }

    fn close(&mut self, wait: Option<Wait>, outcome: Outcome) {
        if let Some(wait) = wait {
            self.waits.push(Wait { outcome, ..wait });
        }
    }

    fn place_lost(&mut self, wait: &Wait, since: Millis) {
        self.broken(
            Invariant::Order,
            format!(
                "person {} waited for {} since {} (ms), and was then told since {since} without \
                 having joined again",
                wait.person,
                queue_words(wait.queue),
                wait.since.unwrap_or_default()
            ),
        );
    }

    /// A seat ends the wait that is open, unless the person knew of it already.
    fn seated(
        &mut self,
        person: usize,
        event: &Event,
        open: &mut Option<Wait>,
        asked_for: Option<Queue>,
        joining: bool,
    ) {
        let Some(seat) = event.seat() else { return };
        let members = self.rooms.entry(seat.room.clone()).or_default();
        if let Some(known) = members.iter().find(|member| member.person == person) {
            if known.seat != *seat {
                let words = format!(
                    "person {person} was told two things of room {}: {:?} and {seat:?}",
                    seat.room, known.seat
                );
                self.broken(Invariant::Agreement, words);
            }
            return;
        }
        let queue = (seat.topic, seat.requested);
        let at_once = open.is_none() && joining && matches!(event.what, What::Joined { .. });
        let mut wait = open.take().unwrap_or_else(|| unknown(person, asked_for.unwrap_or(queue)));
        // Whoever completes a room by joining has waited for no time at all.
        if at_once {
            wait.since = Some(seat.at);
        }
        let asked = wait.queue;
        wait.outcome = Outcome::Seated(seat.at);
        let index = self.waits.len();
        members.push(Member { person, seat: seat.clone(), wait: index });
        self.waits.push(wait);
        if asked != queue {
            let words = format!(
                "person {person} asked for {} and sits in room {} as one who asked for {}",
                queue_words(asked),
                seat.room,
                queue_words(queue)
            );
            self.broken(Invariant::Sizes, words);
        }
    }
}

fn unknown(person: usize, queue: Queue) -> Wait {
    Wait {
        person,
        queue,
        since: None,
        expires_at: None,
        fallback_at: None,
        outcome: Outcome::Unknown,
    }
}
