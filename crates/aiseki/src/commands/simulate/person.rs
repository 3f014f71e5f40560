//! What one simulated person does: joins, waits in one way or another, changes their mind, vanishes,
//! comes back elsewhere, talks for a while, leaves.

mod talk;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::Method;
use serde_json::json;
use tokio::time::{sleep, timeout};

use super::chance::Chance;
use super::history::{Event, History, How, Moment, Queue, State, What};
use super::phone::{Answer, Lost, Phone, Pushed, state};
use super::stage::{Stage, count};

const NO_LONGER: Duration = Duration::ZERO;
/// Told by a server that gives no time, this is how long to stay away.
const RETRY: Duration = Duration::from_secs(1);

pub(super) struct Person {
    stage: Arc<Stage>,
    phone: Phone,
    chance: Chance,
    server: usize,
    pub(super) history: History,
    /// Something that no server should answer, in words.
    pub(super) surprises: Vec<String>,
}

impl Person {
    pub(super) fn new(stage: Arc<Stage>, mut chance: Chance) -> Self {
        let server = chance.below(stage.servers.len());
        let phone = Phone::new(stage.servers[server].clone());
        let history = History::default();
        Self { stage, phone, chance, server, history, surprises: Vec::new() }
    }

    /// Lives until the run is over.
    pub(super) async fn live(&mut self) {
        self.rest().await;
        while !self.over() && !self.phone.has_session() {
            self.become_somebody().await;
        }
        while !self.over() {
            self.rest().await;
            if let Some(State::Waiting(_)) = self.join().await {
                self.wait().await;
            }
            if matches!(self.history.last(), Some((_, State::Matched(_)))) {
                self.converse().await;
            }
        }
        self.phone.hang_up();
    }

    /// Asks how it stands, at the end.
    pub(super) async fn ask(&mut self) -> bool {
        if !self.phone.has_session() {
            return true;
        }
        let asked = self.poll(None).await;
        asked && !matches!(self.history.last(), Some((_, State::Waiting(_))))
    }

    /// Looks at every room that the person was told of.
    pub(super) async fn look_back(&mut self) {
        for room in self.history.rooms() {
            self.look_at(&room).await;
        }
    }

    /// Leaves nothing behind on a server that others use.
    pub(super) async fn go_home(&mut self) {
        match self.history.last().map(|(_, state)| state.clone()) {
            Some(State::Waiting(_)) => self.cancel().await,
            Some(State::Matched(seat)) => self.leave(&seat.room).await,
            _ => {}
        }
    }

    fn over(&self) -> bool {
        self.left().is_zero()
    }

    fn now(&self) -> Moment {
        u64::try_from(self.stage.clock.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn left(&self) -> Duration {
        if self.stage.broken_off.load(Ordering::Relaxed) {
            return Duration::ZERO;
        }
        self.stage.until.saturating_sub(self.stage.clock.elapsed())
    }

    async fn pause(&mut self, least: Duration, most: Duration) {
        let pause = self.chance.time(least, most).min(self.left());
        sleep(pause).await;
    }

    async fn rest(&mut self) {
        let most = self.stage.pace.rest;
        self.pause(Duration::ZERO, most).await;
    }

    fn note(&mut self, asked: Moment, what: What) {
        let event = Event { asked, answered: self.now(), what };
        if let Some(seat) = event.seat()
            && !self.history.events.iter().any(|e| e.seat().is_some_and(|s| s.room == seat.room))
        {
            count(&self.stage.counts.seats);
        }
        self.history.events.push(event);
    }

    /// Turns to another server, if there is one.
    fn move_on(&mut self) {
        let servers = self.stage.servers.len();
        if servers > 1 {
            self.server = (self.server + 1 + self.chance.below(servers - 1)) % servers;
            self.phone.turn_to(self.stage.servers[self.server].clone());
            count(&self.stage.counts.moved);
        }
    }

    /// Respects a refusal that says when to come again. False for any other answer.
    async fn held_off(&mut self, answer: &Answer) -> bool {
        let counter = match answer.status {
            429 => &self.stage.counts.limited,
            503 => &self.stage.counts.unavailable,
            _ => return false,
        };
        count(counter);
        let pause = answer.retry_after.unwrap_or(RETRY);
        sleep(pause.min(self.left().max(Duration::from_millis(100)))).await;
        true
    }

    fn lost(&mut self) {
        count(&self.stage.counts.lost);
    }

    fn surprised(&mut self, asked: &str, answer: &Answer) {
        count(&self.stage.counts.unexpected);
        let code = answer.body["code"].as_str().unwrap_or("no code");
        self.surprises.push(format!("{asked} was answered {} ({code})", answer.status));
    }

    async fn become_somebody(&mut self) {
        match self.phone.ask(Method::POST, "/api/session", None, NO_LONGER).await {
            Ok(answer) if answer.status == 201 => self.phone.take_session(&answer),
            Ok(answer) => {
                if !self.held_off(&answer).await {
                    self.surprised("POST /api/session", &answer);
                    self.pause(RETRY, RETRY * 2).await;
                }
            }
            Err(Lost) => {
                self.lost();
                self.pause(RETRY / 2, RETRY).await;
            }
        }
    }

    /// Some topics are popular and others hardly chosen, so that rooms fill at once and waits end in
    /// vain within the same run.
    fn choose(&mut self) -> Queue {
        let topic = self.chance.popular(self.stage.topics.len());
        let room_type = self.chance.below(self.stage.room_types.len());
        (self.stage.topics[topic], self.stage.room_types[room_type])
    }

    async fn join(&mut self) -> Option<State> {
        let queue = self.choose();
        while !self.over() {
            let body = json!({ "topic_id": queue.0, "room_type": queue.1 });
            let asked = self.now();
            count(&self.stage.counts.joins);
            let answer = self.phone.ask(Method::POST, "/api/matching", Some(body), NO_LONGER).await;
            let Ok(answer) = answer else {
                self.lost();
                self.note(asked, What::JoinLost { queue });
                self.pause(RETRY / 10, RETRY / 2).await;
                continue;
            };
            match answer.status {
                200 | 202 => {
                    let state = state(&answer.body)?;
                    self.note(asked, What::Joined { queue, state: state.clone() });
                    return Some(state);
                }
                409 => {
                    let state = state(&answer.body["state"]);
                    self.note(asked, What::NotJoined { state: state.clone() });
                    return state;
                }
                _ => {
                    if !self.held_off(&answer).await {
                        self.surprised("POST /api/matching", &answer);
                        return None;
                    }
                }
            }
        }
        None
    }

    /// Waits until something has come of it, in one way after the other.
    async fn wait(&mut self) {
        count(&self.stage.counts.waiting);
        while !self.over() && matches!(self.history.last(), Some((_, State::Waiting(_)))) {
            if self.chance.percent(6) {
                self.cancel().await;
            } else if self.chance.percent(8) {
                self.vanish().await;
            } else if self.chance.percent(5) {
                // A client that is not sure repeats itself.
                self.join_again().await;
            } else {
                self.wait_in_some_way().await;
            }
        }
        self.stage.counts.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    async fn wait_in_some_way(&mut self) {
        if self.chance.percent(20) {
            self.move_on();
        }
        match self.chance.below(4) {
            0 => {
                for _ in 0..4 {
                    let asked_for = match self.history.last() {
                        Some((_, State::Waiting(waiting))) => waiting.poll_after,
                        _ => return,
                    };
                    let every = self.stage.pace.poll.unwrap_or(Duration::from_millis(asked_for));
                    self.pause(every / 2, every).await;
                    self.poll(None).await;
                }
            }
            1 => {
                let seconds = 1 + self.chance.below(self.stage.pace.long_poll);
                self.poll(Some(seconds)).await;
            }
            2 => {
                let asked = self.now();
                let opened = self.phone.events().await;
                self.follow(asked, opened, How::Stream).await;
            }
            _ => {
                let asked = self.now();
                let opened = self.phone.socket().await;
                self.follow(asked, opened, How::Socket).await;
            }
        }
    }

    /// Reads pushed states for a while. A pushed state is true since the connection was opened or
    /// later, so that is when it counts as asked for.
    async fn follow(&mut self, asked: Moment, opened: Result<Pushed, Lost>, how: How) {
        let Ok(mut pushed) = opened else {
            self.lost();
            return self.pause(RETRY / 4, RETRY).await;
        };
        let most = Duration::from_secs(self.stage.pace.long_poll as u64);
        let patience = self.chance.time(most / 4, most).min(self.left());
        let _ = timeout(patience, async {
            loop {
                match pushed.next().await {
                    Ok(state) => {
                        let goes_on = matches!(state, State::Waiting(_));
                        self.note(asked, What::Told { state, how });
                        if !goes_on {
                            return;
                        }
                    }
                    Err(Lost) => {
                        self.lost();
                        return;
                    }
                }
            }
        })
        .await;
    }

    async fn poll(&mut self, seconds: Option<usize>) -> bool {
        let (route, longer, how) = match seconds {
            None => ("/api/matching".to_owned(), NO_LONGER, How::Poll),
            Some(seconds) => {
                let longer = Duration::from_secs(seconds as u64);
                (format!("/api/matching?wait={seconds}"), longer, How::LongPoll)
            }
        };
        let asked = self.now();
        match self.phone.ask(Method::GET, &route, None, longer).await {
            Ok(answer) if answer.status == 200 => match state(&answer.body) {
                Some(state) => {
                    self.note(asked, What::Told { state, how });
                    return true;
                }
                None => self.surprised("GET /api/matching", &answer),
            },
            Ok(answer) => {
                if !self.held_off(&answer).await {
                    self.surprised("GET /api/matching", &answer);
                }
            }
            Err(Lost) => {
                self.lost();
                sleep(RETRY / 10).await;
            }
        }
        false
    }

    async fn join_again(&mut self) {
        let queue = match self.history.last() {
            Some((_, State::Waiting(waiting))) => waiting.queue,
            _ => return,
        };
        let body = json!({ "topic_id": queue.0, "room_type": queue.1 });
        let asked = self.now();
        match self.phone.ask(Method::POST, "/api/matching", Some(body), NO_LONGER).await {
            Ok(answer) if matches!(answer.status, 200 | 202) => {
                if let Some(state) = state(&answer.body) {
                    self.note(asked, What::Joined { queue, state });
                }
            }
            Ok(answer) if answer.status == 409 => {
                self.note(asked, What::NotJoined { state: state(&answer.body["state"]) });
            }
            Ok(answer) => {
                if !self.held_off(&answer).await {
                    self.surprised("POST /api/matching", &answer);
                }
            }
            Err(Lost) => {
                self.lost();
                self.note(asked, What::JoinLost { queue });
            }
        }
    }

    async fn cancel(&mut self) {
        let asked = self.now();
        match self.phone.ask(Method::DELETE, "/api/matching", None, NO_LONGER).await {
            Ok(answer) if answer.status == 204 => {
                self.note(asked, What::Cancelled);
                // What the server says of it afterwards is what counts.
                self.poll(None).await;
            }
            Ok(answer) if answer.status == 409 => {
                self.note(asked, What::NotCancelled { state: state(&answer.body["state"]) });
            }
            Ok(answer) => {
                if !self.held_off(&answer).await {
                    self.surprised("DELETE /api/matching", &answer);
                }
            }
            Err(Lost) => {
                self.lost();
                self.note(asked, What::CancelLost);
                self.poll(None).await;
            }
        }
    }

    /// Is gone without a word, and after a while back, perhaps at another server.
    async fn vanish(&mut self) {
        count(&self.stage.counts.vanished);
        self.phone.hang_up();
        let most = self.stage.pace.vanish;
        self.pause(most / 20, most).await;
        self.move_on();
        self.poll(None).await;
        count(&self.stage.counts.returned);
    }
}
