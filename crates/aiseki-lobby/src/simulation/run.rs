//! Runs random operations over a lobby and compares it with the shadow after each of them.

use std::collections::VecDeque;
use std::fmt;

use super::subject::Kept;
use super::{
    Answer, BEGIN, LobbySubject, Mix, Operation, Operations, Reply, Shadow, Strangers, Subject,
    audit, person,
};
use crate::acquaintances::Acquaintances;
use crate::change::{Change, Vacate};
use crate::lobby::{Lobby, REASON_KEPT};
use crate::person::IdleReason;
use crate::policy::{Millis, Policy};
use crate::seating::Kind;

/// How many operations a failure shows.
const SHOWN: usize = 12;
/// No tick leaves so much to do that this many do not finish it.
const TICKS: usize = 100;

/// Under which rules a simulation runs.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// A word for the report.
    pub name: &'static str,
    /// The policy.
    pub policy: Policy,
    /// What happens.
    pub mix: Mix,
    /// How many of a hundred pairs may not sit together.
    pub apart: u64,
    /// For how long people who have shared a room meet others first.
    pub rematch_after: Millis,
}

impl Scenario {
    /// Who is kept apart from whom at the beginning of this seed's day.
    fn acquaintances(&self, seed: u64) -> Acquaintances {
        let strangers = Strangers { seed, apart: self.apart };
        let mut known = Acquaintances::new(self.rematch_after);
        for a in 0..self.mix.people {
            for b in (0..a).filter(|b| !strangers.may_meet(person(a), person(*b))) {
                known.block(person(a), person(b));
            }
        }
        known
    }
}

/// The scenarios that are run by default.
pub fn scenarios() -> Vec<Scenario> {
    let default = Policy::default();
    let room_types =
        |text: &str| Policy { room_types: text.parse().unwrap_or_default(), ..Policy::default() };
    let patient = Policy { presence_timeout: 600_000, ..Policy::default() };
    let for_ever = 86_400_000;
    let stubborn =
        Policy { presence_timeout: for_ever, wait_timeout: for_ever, ..Policy::default() };
    let tiny = Policy {
        fallback_after: 3,
        wait_timeout: 9,
        reservation_ttl: 4,
        presence_timeout: 6,
        closed_grace: 2,
        ..Policy::default()
    };
    let mix = Mix::default();
    let clock = Mix { steps_back: true, ..mix.clone() };
    let refusing = Mix { people: 3, topics: 1, joins: 10, written: 5, ..mix.clone() };
    let crowd = Mix { people: 90, topics: 1, joins: 60, absences: false, ..Mix::default() };
    let large_rooms = Policy { presence_timeout: 120_000, ..room_types("8>3,5>2,2") };
    let few = Mix { people: 7, topics: 1, joins: 40, ..mix.clone() };
    let few_and_clock = Mix { steps_back: true, ..few.clone() };
    let scenario = |name, policy, mix: &Mix, apart| Scenario {
        name,
        policy,
        mix: mix.clone(),
        apart,
        rematch_after: 0,
    };
    let met = |rematch_after, scenario| Scenario { rematch_after, ..scenario };
    vec![
        scenario("default", default.clone(), &mix, 0),
        scenario("patient people", patient.clone(), &mix, 0),
        scenario("pairs", room_types("2"), &mix, 0),
        scenario("large rooms", large_rooms.clone(), &Mix { joins: 50, ..mix.clone() }, 0),
        scenario("chains", room_types("2,3>2,4>3,8>2"), &Mix { joins: 50, ..mix.clone() }, 0),
        scenario("no pairs to fall back to", room_types("3>2,5>2"), &mix, 0),
        scenario("queues kept apart", Policy { merge_fallback: false, ..default.clone() }, &mix, 0),
        scenario("tiny times", tiny.clone(), &mix, 0),
        scenario("a clock that steps back", default.clone(), &clock, 0),
        scenario("tiny steps back", tiny.clone(), &clock, 30),
        scenario("a database that refuses", stubborn, &refusing, 0),
        scenario("some strangers", patient.clone(), &mix, 30),
        scenario("strangers with tiny times", tiny.clone(), &mix, 60),
        scenario("crowd of strangers", room_types("2,3>2"), &crowd, 97),
        scenario("strangers in large rooms", large_rooms.clone(), &crowd, 40),
        met(600_000, scenario("people who have met", default.clone(), &few, 0)),
        met(120_000, scenario("patient people who have met", patient.clone(), &few, 0)),
        met(90_000, scenario("large rooms of people who have met", large_rooms, &mix, 0)),
        met(60_000, scenario("people who have met and strangers", patient, &mix, 30)),
        met(7, scenario("people who have met with tiny times", tiny.clone(), &few, 0)),
        met(
            600_000,
            scenario("people who have met and a clock that steps back", default, &few_and_clock, 0),
        ),
        met(5, scenario("people who have met and tiny steps back", tiny, &few_and_clock, 10)),
    ]
}

/// What happened in a run, so that a test can see that everything did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Operations done.
    pub steps: u64,
    /// Rooms formed: full, by fallback, by merge.
    pub rooms: [u64; 3],
    /// Waits ended, by the place of the reason in [`IdleReason::ALL`].
    pub dropped: [u64; 7],
    /// People back in place.
    pub returned: u64,
    /// People seated.
    pub seated: u64,
    /// Rooms ended.
    pub ended: u64,
    /// Seats that had to be given up again.
    pub given_up: u64,
    /// Seats vacated.
    pub vacated: u64,
    /// Places taken up again.
    pub resumed: u64,
    /// Joins, cancels refused.
    pub refused: u64,
    /// The most people who waited at once.
    pub most_waiting: usize,
}

impl Tally {
    /// Takes another run into account.
    pub fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.rooms.iter_mut().zip(other.rooms).for_each(|(sum, n)| *sum += n);
        self.dropped.iter_mut().zip(other.dropped).for_each(|(sum, n)| *sum += n);
        self.returned += other.returned;
        self.seated += other.seated;
        self.ended += other.ended;
        self.given_up += other.given_up;
        self.vacated += other.vacated;
        self.resumed += other.resumed;
        self.refused += other.refused;
        self.most_waiting = self.most_waiting.max(other.most_waiting);
    }

    fn count(&mut self, answer: &Answer) {
        for change in &answer.changes {
            match change {
                Change::Entered { .. } | Change::Vacated { .. } => {}
                Change::Dropped { reason, .. } => {
                    let index = IdleReason::ALL.iter().position(|it| it == reason);
                    self.dropped[index.unwrap_or(0)] += 1;
                }
                Change::Reserved(room) => {
                    let kinds = [Kind::Full, Kind::Fallback, Kind::Merge];
                    let index = kinds.iter().position(|it| *it == room.kind);
                    self.rooms[index.unwrap_or(0)] += 1;
                }
                Change::Returned { .. } => self.returned += 1,
                Change::Seated { people, .. } => self.seated += people.len() as u64,
                Change::Ended { .. } => self.ended += 1,
            }
        }
        match &answer.reply {
            Reply::GiveUp(people) => self.given_up += people.len() as u64,
            Reply::Vacated(Vacate::Left) => self.vacated += 1,
            Reply::Entered(Err(_)) | Reply::Cancelled(Err(_)) => self.refused += 1,
            _ => {}
        }
    }
}

/// What went wrong. Its `Display` is all that is needed to see it again.
#[derive(Clone, Debug)]
pub struct Failure {
    scenario: &'static str,
    seed: u64,
    step: u64,
    message: String,
    last: Vec<(Millis, Operation)>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scenario, seed, step, message, last } = self;
        writeln!(f, "scenario {scenario:?}, seed {seed}, step {step}: {message}")?;
        writeln!(f, "the last operations, each with the milliseconds since the beginning:")?;
        last.iter().try_for_each(|(at, operation)| writeln!(f, "  {at:>12}  {operation:?}"))
    }
}

impl std::error::Error for Failure {}

/// Runs `steps` operations of a seed, and then lets everybody go.
pub fn run(scenario: &Scenario, seed: u64, steps: u64) -> Result<Tally, Failure> {
    let mut run = Run::new(scenario, seed);
    let operations = Operations::new(scenario, seed);
    let mut last = VecDeque::with_capacity(SHOWN);
    for (step, operation) in (0..steps).zip(operations) {
        if last.len() == SHOWN {
            last.pop_front();
        }
        let result = run.step(operation);
        last.push_back((run.now.saturating_sub(BEGIN), operation));
        let result = if step + 1 == steps { result.and_then(|()| run.finish()) } else { result };
        if let Err(message) = result {
            let last = last.into();
            return Err(Failure { scenario: scenario.name, seed, step, message, last });
        }
    }
    Ok(run.tally)
}

struct Run<'a> {
    scenario: &'a Scenario,
    seed: u64,
    subject: LobbySubject<Acquaintances>,
    shadow: Shadow,
    now: Millis,
    /// How often the lobby was loaded, so that each one makes ids of its own.
    loads: u64,
    tally: Tally,
}

impl<'a> Run<'a> {
    fn new(scenario: &'a Scenario, seed: u64) -> Self {
        let known = scenario.acquaintances(seed);
        let lobby = Lobby::with_companions(scenario.policy.clone(), known, 0);
        Self {
            scenario,
            seed,
            subject: LobbySubject::new(lobby),
            shadow: Shadow::new(scenario, seed, true),
            now: BEGIN,
            loads: 0,
            tally: Tally::default(),
        }
    }

    fn step(&mut self, operation: Operation) -> Result<(), String> {
        self.tally.steps += 1;
        match operation {
            Operation::Pass { by } => self.now += by,
            Operation::StepBack { by } => self.now = self.now.saturating_sub(by).max(BEGIN),
            Operation::Restart => self.restart(),
            Operation::PassUntilDue => {
                if let Some(due) = self.subject.lobby.next_due() {
                    self.now = self.now.max(due);
                    self.do_and_compare(Operation::Tick)?;
                }
            }
            _ => self.do_and_compare(operation)?,
        }
        self.compare_states()?;
        self.compare_next_due()?;
        // The audit looks at every index as a whole, which is slow.
        if self.tally.steps.is_multiple_of(8) { audit::audit(&self.subject.lobby) } else { Ok(()) }
    }

    fn do_and_compare(&mut self, operation: Operation) -> Result<(), String> {
        let answer = self.subject.apply(operation, self.now);
        self.tally.count(&answer);
        self.shadow.follow(operation, self.now, &answer)?;
        self.tally.resumed = self.shadow.resumed;
        if operation == Operation::Tick && self.subject.lobby.next_due() <= Some(self.now) {
            // A full step may leave something, an empty one may not.
            if answer.changes.is_empty() && self.subject.lobby.next_due().is_some() {
                return Err("a tick that had something to do did nothing".to_owned());
            }
        }
        Ok(())
    }

    fn compare_states(&mut self) -> Result<(), String> {
        for who in 0..self.scenario.mix.people {
            let told = self.subject.state(person(who), self.now);
            let expected = self.shadow.state(person(who), self.now);
            if told != expected {
                return Err(format!("person {who} is told {told:?}\n  instead of {expected:?}"));
            }
        }
        let lobby = &self.subject.lobby;
        let (waiting, _, _) = self.shadow.counts();
        self.tally.most_waiting = self.tally.most_waiting.max(waiting);
        if lobby.waiting() != waiting || lobby.next_ticket() != self.shadow.next_ticket() {
            return Err(format!("{} people wait instead of {waiting}", lobby.waiting()));
        }
        Ok(())
    }

    /// A tick at the moment that the lobby names is never late.
    fn compare_next_due(&self) -> Result<(), String> {
        let due = self.subject.lobby.next_due();
        match self.shadow.next_event(self.now) {
            Some(event) if due.is_none_or(|due| due > event) => {
                Err(format!("the next tick is due at {due:?}, but something happens at {event}"))
            }
            _ => Ok(()),
        }
    }

    fn restart(&mut self) {
        self.loads += 1;
        let policy = self.scenario.policy.clone();
        let mut known = self.scenario.acquaintances(self.seed);
        for (a, b, at) in self.shadow.partings() {
            known.part(a, b, at);
        }
        let mut lobby = Lobby::with_companions(policy, known, self.loads << 40);
        lobby.restore_next_ticket(self.shadow.next_ticket());
        for (session, kept) in self.shadow.restart(self.now) {
            match kept {
                Kept::Waiting(queue, ticket, standing) => {
                    lobby.restore_standing(session, queue, ticket, standing, self.now);
                }
                Kept::Seated(mut seat, stood, came) => {
                    seat.room = self.subject.true_name(seat.room);
                    lobby.restore_sitting(session, seat, Some(stood), came);
                }
                Kept::Idle(reason, at, None) => lobby.restore_idle(session, reason, at),
                Kept::Idle(_, at, Some(mut place)) => {
                    place.room = self.subject.true_name(place.room);
                    lobby.restore_kept(session, place, at);
                }
            }
        }
        self.subject.replace(lobby);
    }

    /// Everybody leaves, and nothing is left of them but the number of the next ticket.
    fn finish(&mut self) -> Result<(), String> {
        for who in 0..self.scenario.mix.people {
            self.step(Operation::Vacate { person: who, room: None })?;
        }
        for _ in 0..TICKS {
            let policy = &self.scenario.policy;
            // Longer than any clock stepped back.
            self.now += policy.wait_timeout + policy.reservation_ttl + REASON_KEPT;
            self.step(Operation::PassUntilDue)?;
            audit::audit(&self.subject.lobby)?;
            if audit::is_empty(&self.subject.lobby) {
                return Ok(());
            }
        }
        Err(format!("somebody is never forgotten: {:?}", self.shadow.counts()))
    }
}
