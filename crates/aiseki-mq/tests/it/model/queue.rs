//! The model: a queue in memory, as simple as can be.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use aiseki_mq::{Cancelled, Message, Nack, Published, Receipt, Settled, Verdict};

/// How often a claim fills the gaps that cancelled messages left.
const ROUNDS: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Ready,
    Delayed(u64),
    /// Until when; the token is known once the delivery is here.
    Leased(u64),
    Dead,
}

#[derive(Debug)]
struct Entry {
    state: State,
    failures: u32,
    crashes: u32,
    /// The token that settles it now, and the one that last gave it back.
    token: u64,
    last: u64,
    unique: Option<String>,
}

pub(super) struct Model {
    entries: BTreeMap<String, Entry>,
    /// The front is the next to be taken; cancelled ids stand here until then.
    ready: VecDeque<String>,
    cancelled: BTreeSet<String>,
    /// Ids that are done, with the token that did it; none for cancelled ones.
    done: BTreeMap<String, Option<u64>>,
    holders: BTreeMap<String, String>,
    acked: u64,
    longest: u64,
    failures: u32,
    crashes: u32,
    pub(super) paused: bool,
}

impl Model {
    pub(super) fn new(longest: u64, failures: u32, crashes: u32) -> Self {
        Self {
            entries: BTreeMap::new(),
            ready: VecDeque::new(),
            cancelled: BTreeSet::new(),
            done: BTreeMap::new(),
            holders: BTreeMap::new(),
            acked: 0,
            longest,
            failures,
            crashes,
            paused: false,
        }
    }

    fn count(&self, wanted: impl Fn(&State) -> bool) -> u64 {
        self.entries.values().filter(|entry| wanted(&entry.state)).count() as u64
    }

    pub(super) fn counts(&self) -> [u64; 5] {
        [
            self.count(|state| *state == State::Ready),
            self.count(|state| matches!(state, State::Delayed(_))),
            self.count(|state| matches!(state, State::Leased(_))),
            self.count(|state| *state == State::Dead),
            self.acked,
        ]
    }

    pub(super) fn publish(&mut self, now: u64, messages: &[Message]) -> Option<Vec<Published>> {
        let (mut answers, mut fresh) = (Vec::new(), Vec::<&Message>::new());
        for message in messages {
            let id = message.id();
            let holder = message.unique().and_then(|key| {
                let earlier = fresh.iter().find(|each| each.unique() == Some(key));
                earlier.map(|each| each.id().to_owned()).or_else(|| self.holders.get(key).cloned())
            });
            let known = self.entries.contains_key(id)
                || self.done.contains_key(id)
                || fresh.iter().any(|each| each.id() == id);
            answers.push(if known {
                Published::Duplicate
            } else if let Some(by) = holder {
                Published::Taken { by }
            } else {
                fresh.push(message);
                Published::Accepted
            });
        }
        let length = self.count(|state| *state != State::Dead);
        if !fresh.is_empty() && length + fresh.len() as u64 > self.longest {
            return None;
        }
        for message in fresh {
            let delay = millis(message.delay());
            let state = if delay > 0 { State::Delayed(now + delay) } else { State::Ready };
            if state == State::Ready {
                self.ready.push_back(message.id().to_owned());
            }
            let unique = message.unique().map(str::to_owned);
            if let Some(key) = &unique {
                self.holders.insert(key.clone(), message.id().to_owned());
            }
            let entry = Entry { state, failures: 0, crashes: 0, token: 0, last: 0, unique };
            self.entries.insert(message.id().to_owned(), entry);
        }
        Some(answers)
    }

    fn free(&mut self, id: &str) {
        let key = self.entries.get(id).and_then(|entry| entry.unique.clone());
        if let Some(key) = key
            && self.holders.get(&key).is_some_and(|holder| holder == id)
        {
            self.holders.remove(&key);
        }
    }

    fn current(&self, receipt: &Receipt) -> bool {
        self.entries.get(&receipt.id).is_some_and(|entry| entry.token == receipt.token)
    }

    pub(super) fn ack(&mut self, receipt: &Receipt) -> Settled {
        if self.current(receipt) {
            self.free(&receipt.id);
            self.entries.remove(&receipt.id);
            self.done.insert(receipt.id.clone(), Some(receipt.token));
            self.acked += 1;
            Settled::Done
        } else if self.done.get(&receipt.id) == Some(&Some(receipt.token)) {
            Settled::Repeated
        } else {
            Settled::Stale
        }
    }

    fn bury(&mut self, id: &str) {
        self.free(id);
        let entry = self.entries.get_mut(id).expect("it is there");
        entry.state = State::Dead;
        entry.token = 0;
    }

    pub(super) fn nack(&mut self, now: u64, nack: &Nack) -> Settled {
        let receipt = &nack.receipt;
        if !self.current(receipt) {
            let known = self.entries.get(&receipt.id);
            let repeated = known.is_some_and(|entry| entry.last == receipt.token);
            return if repeated { Settled::Repeated } else { Settled::Stale };
        }
        let entry = self.entries.get_mut(&receipt.id).expect("it is current");
        entry.token = 0;
        entry.last = receipt.token;
        let (delay, at_front) = match &nack.verdict {
            Verdict::Release { delay } => (*delay, true),
            Verdict::Fail { delay, .. } => {
                entry.failures += 1;
                (*delay, false)
            }
            Verdict::Bury { .. } => {
                entry.failures += 1;
                self.bury(&receipt.id);
                return Settled::Buried;
            }
        };
        if !at_front && entry.failures >= self.failures {
            self.bury(&receipt.id);
            return Settled::Buried;
        }
        if delay.is_zero() {
            entry.state = State::Ready;
            if at_front {
                self.ready.push_front(receipt.id.clone());
            } else {
                self.ready.push_back(receipt.id.clone());
            }
        } else {
            entry.state = State::Delayed(now + millis(delay));
        }
        Settled::Done
    }

    pub(super) fn renew(&mut self, now: u64, receipt: &Receipt, lease: Duration) -> bool {
        let alive = self.current(receipt);
        if alive && let Some(entry) = self.entries.get_mut(&receipt.id) {
            entry.state = State::Leased(now + millis(lease));
        }
        alive
    }

    /// Ids in this state by now, the earliest first, those of one moment by name.
    fn due(&self, now: u64, moment: impl Fn(&State) -> Option<u64>) -> Vec<String> {
        let mut due: Vec<(u64, String)> = Vec::new();
        for (id, entry) in &self.entries {
            if let Some(at) = moment(&entry.state).filter(|at| *at <= now) {
                due.push((at, id.clone()));
            }
        }
        due.sort();
        due.into_iter().map(|(_, id)| id).collect()
    }

    fn reclaim(&mut self, now: u64) {
        let ended = self.due(now, |state| match state {
            State::Leased(until) => Some(*until),
            _ => None,
        });
        for id in ended.into_iter().rev() {
            let entry = self.entries.get_mut(&id).expect("it is leased");
            entry.crashes += 1;
            entry.token = 0;
            entry.last = 0;
            if entry.crashes >= self.crashes {
                self.bury(&id);
            } else {
                entry.state = State::Ready;
                self.ready.push_front(id);
            }
        }
    }

    fn promote(&mut self, now: u64) {
        let due = self.due(now, |state| match state {
            State::Delayed(at) => Some(*at),
            _ => None,
        });
        for id in due {
            self.entries.get_mut(&id).expect("it is delayed").state = State::Ready;
            self.ready.push_back(id);
        }
    }

    /// Which are claimed, in order, with their counts.
    pub(super) fn claim(
        &mut self,
        now: u64,
        _worker: usize,
        max: usize,
        lease: Duration,
    ) -> Vec<(String, u32, u32)> {
        self.reclaim(now);
        self.promote(now);
        let mut claimed = Vec::new();
        if self.paused {
            return claimed;
        }
        for _ in 0..ROUNDS {
            for _ in claimed.len()..max {
                let Some(id) = self.ready.pop_front() else { break };
                if self.cancelled.remove(&id) {
                    continue;
                }
                let entry = self.entries.get_mut(&id).expect("what is ready is there");
                entry.state = State::Leased(now + millis(lease));
                claimed.push((id, entry.failures, entry.crashes));
            }
        }
        claimed
    }

    pub(super) fn delivered(&mut self, receipt: &Receipt) {
        let entry = self.entries.get_mut(&receipt.id).expect("it was claimed");
        entry.token = receipt.token;
    }

    pub(super) fn cancel(&mut self, id: &str) -> Cancelled {
        match self.entries.get(id).map(|entry| entry.state.clone()) {
            None => Cancelled::NotThere,
            Some(State::Dead) => Cancelled::Dead,
            Some(state) => {
                if state == State::Ready {
                    self.cancelled.insert(id.to_owned());
                }
                self.free(id);
                self.entries.remove(id);
                self.done.insert(id.to_owned(), None);
                Cancelled::Done
            }
        }
    }

    pub(super) fn letters(&self) -> BTreeMap<String, (u32, u32)> {
        let dead = self.entries.iter().filter(|(_, entry)| entry.state == State::Dead);
        dead.map(|(id, entry)| (id.clone(), (entry.failures, entry.crashes))).collect()
    }

    pub(super) fn replay(&mut self, id: &str) -> bool {
        let Some(entry) = self.entries.get_mut(id) else { return false };
        if let Some(key) = &entry.unique {
            if self.holders.get(key).is_some_and(|holder| holder != id) {
                return false;
            }
            self.holders.insert(key.clone(), id.to_owned());
        }
        entry.state = State::Ready;
        (entry.failures, entry.crashes, entry.last) = (0, 0, 0);
        self.ready.push_back(id.to_owned());
        true
    }

    pub(super) fn drop_dead(&mut self, id: &str) -> bool {
        self.free(id);
        self.entries.remove(id).is_some()
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).expect("a short time")
}
