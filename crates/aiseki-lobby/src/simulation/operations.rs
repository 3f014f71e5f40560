//! What can happen to a lobby, and random sequences of it.

use std::collections::VecDeque;

use super::{Random, Scenario};
use crate::change::{Sign, Undone};
use crate::ids::{Queue, TopicId};
use crate::person::IdleReason;
use crate::policy::Millis;

/// One thing that happens. People are numbers for [`super::person`]; a room is counted back from the
/// one formed last (0), and the operation does nothing while there is no such room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Somebody joins.
    Enter {
        /// Who.
        person: u16,
        /// Where.
        queue: Queue,
    },
    /// Somebody stops waiting.
    Cancel {
        /// Who.
        person: u16,
    },
    /// Somebody asks for their state.
    Poll {
        /// Who.
        person: u16,
    },
    /// Signs of life of `count` people in a row.
    Touch {
        /// The first of them.
        first: u16,
        /// How many.
        count: u16,
        /// Which sign.
        sign: Sign,
    },
    /// What is due is done.
    Tick,
    /// A room was written.
    Confirm {
        /// Which.
        room: u16,
        /// Bit n is set when the nth of its people turned out to hold no seat in it.
        missing: u8,
    },
    /// A room could not be written.
    Release {
        /// Which.
        room: u16,
        /// Why.
        undone: Undone,
    },
    /// Somebody gives up a seat: their own, or one in a room where they may never have been.
    Vacate {
        /// Who.
        person: u16,
        /// Another room than their own.
        room: Option<u16>,
    },
    /// Somebody comes to a room, if they sit there.
    Come {
        /// Which.
        room: u16,
        /// The nth of those who were taken for it, counted round.
        nth: u8,
    },
    /// Somebody loses a seat for being away.
    Away {
        /// In which room.
        room: u16,
        /// The nth of those who were taken for it, counted round.
        nth: u8,
    },
    /// Somebody joins and names a room for which their place may be kept.
    Resume {
        /// Which.
        room: u16,
        /// The nth of those who were taken for it, counted round.
        nth: u8,
        /// Another queue than the one from which they came.
        queue: Option<Queue>,
    },
    /// A room is closed.
    CloseRoom {
        /// Which.
        room: u16,
    },
    /// A topic is switched off.
    CloseTopic {
        /// Which.
        topic: TopicId,
    },
    /// Somebody is taken out.
    Expel {
        /// Who.
        person: u16,
        /// Why.
        reason: IdleReason,
    },
    /// Time passes.
    Pass {
        /// How much.
        by: Millis,
    },
    /// Time passes until the subject has something to do.
    PassUntilDue,
    /// The clock steps back.
    StepBack {
        /// How far.
        by: Millis,
    },
    /// The lobby is lost, and loaded from what an adapter has stored.
    Restart,
}

/// From what a random sequence is made.
#[derive(Clone, Debug)]
pub struct Mix {
    /// How many people there are.
    pub people: u16,
    /// How many topics there are, numbered from 1.
    pub topics: u16,
    /// Whether the clock may step back.
    pub steps_back: bool,
    /// Whether the lobby may be loaded anew.
    pub restarts: bool,
    /// Whether people may stay away from their rooms.
    pub absences: bool,
    /// In how many of a hundred steps somebody joins.
    pub joins: u64,
    /// How many of a hundred rooms are written, and not released.
    pub written: u64,
}

impl Default for Mix {
    fn default() -> Self {
        Self {
            people: 24,
            topics: 2,
            steps_back: false,
            restarts: true,
            absences: true,
            joins: 30,
            written: 64,
        }
    }
}

/// An endless random sequence, the same for the same seed.
#[derive(Clone, Debug)]
pub struct Operations {
    random: Random,
    mix: Mix,
    room_types: Vec<u8>,
    /// Lengths of time at which something happens in this policy.
    times: Vec<Millis>,
    /// What belongs together and comes sooner or later.
    coming: VecDeque<Operation>,
}

impl Operations {
    /// The sequence of this seed.
    pub fn new(scenario: &Scenario, seed: u64) -> Self {
        let Scenario { policy, mix, rematch_after, .. } = scenario;
        let mut times = vec![
            policy.fallback_after,
            policy.wait_timeout,
            policy.reservation_ttl,
            policy.presence_timeout,
            policy.closed_grace,
            1_000,
            *rematch_after,
        ];
        times.retain(|time| (1..3_600_000).contains(time));
        let mut room_types: Vec<u8> = policy.room_types.iter().map(|kind| kind.size).collect();
        room_types.push(9); // No policy has it: refused.
        Self {
            random: Random::new(seed),
            mix: mix.clone(),
            room_types,
            times,
            coming: VecDeque::new(),
        }
    }

    fn person(&mut self) -> u16 {
        self.below(self.mix.people)
    }

    fn below(&mut self, bound: u16) -> u16 {
        u16::try_from(self.random.below(u64::from(bound))).unwrap_or(0)
    }

    fn topic(&mut self) -> TopicId {
        TopicId(i64::from(self.below(self.mix.topics)) + 1)
    }

    fn queue(&mut self) -> Queue {
        let topic = self.topic();
        let known = self.room_types.len() - 1;
        let among = if self.random.chance(1) { known..known + 1 } else { 0..known };
        Queue { topic, room_type: self.random.pick(&self.room_types[among]) }
    }

    /// Mostly the newest rooms, since the older ones are rarely more than history.
    fn room(&mut self) -> u16 {
        // Where hardly any room is written, the same people are refused again and again.
        let reach = if self.mix.written < 10 { 1 } else { self.random.pick(&[1, 2, 2, 4, 8, 32]) };
        self.below(reach)
    }

    fn pass(&mut self) -> Operation {
        let time = self.random.pick(&self.times);
        let by = match self.random.below(100) {
            0..40 => self.random.below(5),
            40..70 => self.random.below(time / 8 + 1),
            70..80 => self.random.below(2 * time),
            // Exactly at, or a moment before or after something.
            80..98 => (time + self.random.below(3)).saturating_sub(1),
            _ => self.random.pick(&[600_000, 3_600_000, 86_400_000]),
        };
        Operation::Pass { by }
    }

    /// What happens in a room to which not everybody comes, from now on with other things in between.
    fn absence(&mut self) -> Operation {
        let (room, nth) = (self.room(), u8::try_from(self.random.below(8)).unwrap_or(0));
        let queue = if self.random.chance(20) { Some(self.queue()) } else { None };
        let story = [
            Operation::Confirm { room, missing: 0 },
            Operation::Come { room, nth },
            Operation::Come { room, nth: nth + 1 },
            Operation::Away { room, nth: nth + 2 },
            Operation::Away { room, nth: nth + 1 },
            Operation::Resume { room, nth, queue },
            Operation::Resume { room, nth: nth + 1, queue: None },
        ];
        for operation in story {
            if self.random.chance(75) {
                self.coming.push_back(operation);
            }
        }
        self.coming.pop_front().unwrap_or(Operation::Tick)
    }

    fn rare(&mut self) -> Operation {
        match self.random.below(12) {
            0..3 => Operation::CloseRoom { room: self.room() },
            3 => Operation::CloseTopic { topic: self.topic() },
            4..8 => {
                let reason = self.random.pick(&[IdleReason::Banned, IdleReason::TopicClosed]);
                Operation::Expel { person: self.person(), reason }
            }
            8 if self.mix.restarts => Operation::Restart,
            9 | 10 if self.mix.steps_back => {
                let most = self.random.pick(&[3, 1_000, 600_000]);
                Operation::StepBack { by: self.random.below(most) }
            }
            _ => Operation::PassUntilDue,
        }
    }
}

impl Iterator for Operations {
    type Item = Operation;

    fn next(&mut self) -> Option<Operation> {
        if !self.coming.is_empty() && self.random.chance(40) {
            return self.coming.pop_front();
        }
        if self.random.chance(self.mix.joins) {
            return Some(Operation::Enter { person: self.person(), queue: self.queue() });
        }
        Some(match self.random.below(100) {
            0..6 => Operation::Cancel { person: self.person() },
            6..26 => Operation::Poll { person: self.person() },
            26..36 => {
                let sign = self.random.pick(&[Sign::Present, Sign::Present, Sign::Closed]);
                let count = self.random.pick(&[1, 4, self.mix.people]);
                Operation::Touch { first: self.person(), count, sign }
            }
            36..44 => Operation::Tick,
            44..66 if self.random.chance(self.mix.written) => {
                let some = u8::try_from(self.random.below(256)).unwrap_or(0);
                let missing = if self.random.chance(20) { some } else { 0 };
                Operation::Confirm { room: self.room(), missing }
            }
            44..66 => {
                let undone = self.random.pick(&[Undone::Refused, Undone::Refused, Undone::Lapsed]);
                Operation::Release { room: self.room(), undone }
            }
            66..70 if self.mix.absences && self.coming.is_empty() => self.absence(),
            66..76 => {
                let room = if self.random.chance(10) { Some(self.room()) } else { None };
                Operation::Vacate { person: self.person(), room }
            }
            76..80 => self.rare(),
            80..96 => self.pass(),
            _ => Operation::PassUntilDue,
        })
    }
}
