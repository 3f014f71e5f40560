//! Steps of the workers of one process, brought to the server together when there are many.
//!
//! What a step costs the server is mostly the script itself: a step of one message costs as much as
//! one of some ten. So a worker that finds two steps on their way hands its own over, and the
//! next one takes all that were handed over meanwhile. A worker that is alone never waits for
//! anybody, and large steps go by themselves: they gain nothing.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::Value;
use tokio::sync::oneshot;

use super::{BATCH, Shared};
use crate::answer::{self, Head};
use crate::error::{Error, Result};
use crate::message::{Delivery, Settled};
use crate::script::{self, millis};

/// How many steps of one shard may be on their way before others are handed over: the server works
/// on one while the answer of the other is read.
const ON_THE_WAY: usize = 2;
/// Steps with more acks, or for more messages, go by themselves.
const SMALL: usize = 16;
/// The most workers of one call.
const TOGETHER: usize = 62;

/// One worker's step.
#[derive(Debug, Clone)]
pub(super) struct Ask {
    pub(super) worker: Arc<str>,
    pub(super) lease: Duration,
    /// The sequence number of its claim.
    pub(super) sequence: u64,
    pub(super) max: usize,
    /// Ids and tokens.
    pub(super) acks: Vec<(String, u64)>,
}

/// The answer.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) wait: Option<Duration>,
    pub(super) paused: bool,
    pub(super) left: u64,
    pub(super) settled: Vec<Settled>,
    pub(super) deliveries: Vec<Delivery>,
}

/// Where the steps of one shard meet.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    on_the_way: usize,
    handed_over: VecDeque<Handed>,
}

#[derive(Debug)]
struct Handed {
    ask: Ask,
    answer: oneshot::Sender<Result<Step>>,
}

enum Turn {
    Alone(Way),
    Handed(oneshot::Receiver<Result<Step>>),
}

/// One step.
pub(super) async fn step(queue: &Arc<Shared>, shard: usize, ask: Ask) -> Result<Step> {
    if ask.max > SMALL || ask.acks.len() > SMALL {
        return alone(queue, shard, &ask).await;
    }
    match turn(queue, shard, &ask) {
        Turn::Alone(_way) => alone(queue, shard, &ask).await,
        Turn::Handed(answer) => match answer.await {
            Ok(step) => step,
            // Whoever took it over is gone. It may be repeated, so it goes by itself.
            Err(_) => alone(queue, shard, &ask).await,
        },
    }
}

fn turn(queue: &Arc<Shared>, shard: usize, ask: &Ask) -> Turn {
    let mut state = queue.desks[shard].lock();
    if state.on_the_way < ON_THE_WAY {
        state.on_the_way += 1;
        return Turn::Alone(Way { queue: Arc::clone(queue), shard, driven: false });
    }
    let (answer, receiver) = oneshot::channel();
    state.handed_over.push_back(Handed { ask: ask.clone(), answer });
    Turn::Handed(receiver)
}

async fn alone(queue: &Shared, shard: usize, ask: &Ask) -> Result<Step> {
    let mut steps = call(queue, shard, std::slice::from_ref(ask)).await?;
    steps.pop().ok_or(Error::Answer("a step was expected"))
}

/// One of the steps that may be on their way; when it ends, however it ends, what was handed over
/// meanwhile goes on.
struct Way {
    queue: Arc<Shared>,
    shard: usize,
    /// It is a task of its own that brings what others hand over.
    driven: bool,
}

impl Drop for Way {
    fn drop(&mut self) {
        let mut state = self.queue.desks[self.shard].lock();
        if state.handed_over.is_empty() {
            state.on_the_way -= 1;
            return;
        }
        if !self.driven
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            drop(state);
            let way = Self { queue: Arc::clone(&self.queue), shard: self.shard, driven: true };
            runtime.spawn(drive(way));
            return;
        }
        // The runtime is going down. Those who wait learn of it, and go by themselves.
        state.on_the_way -= 1;
        let left = std::mem::take(&mut state.handed_over);
        drop(state);
        drop(left);
    }
}

async fn drive(way: Way) {
    loop {
        let group = way.queue.desks[way.shard].take();
        if group.is_empty() {
            return;
        }
        let (asks, answers): (Vec<_>, Vec<_>) =
            group.into_iter().map(|each| (each.ask, each.answer)).unzip();
        match call(&way.queue, way.shard, &asks).await {
            Ok(steps) => {
                for (answer, step) in answers.into_iter().zip(steps) {
                    // Who does not wait any more repeats its claim, and gets the same.
                    let _ = answer.send(Ok(step));
                }
            }
            Err(error) => {
                for answer in answers {
                    let _ = answer.send(Err(error.copy()));
                }
            }
        }
        // Those who were answered come again at once; with this they come together.
        tokio::task::yield_now().await;
    }
}

impl Desk {
    /// What goes together next: steps with the same lease, within the bounds of one call. A worker
    /// that gave its step up may have handed it over again: only the one that is waited for goes.
    fn take(&self) -> Vec<Handed> {
        let mut state = self.lock();
        state.handed_over.retain(|each| !each.answer.is_closed());
        let lease = state.handed_over.front().map(|first| first.ask.lease);
        let (mut group, mut rest) = (Vec::new(), VecDeque::new());
        for each in state.handed_over.drain(..) {
            if group.len() < TOGETHER && Some(each.ask.lease) == lease {
                group.push(each);
            } else {
                rest.push_back(each);
            }
        }
        state.handed_over = rest;
        group
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// The bounds of the script.
const _: () = assert!(TOGETHER * SMALL <= BATCH);

/// The call of the script for these steps, which have the same lease.
pub(super) async fn call(queue: &Shared, shard: usize, asks: &[Ask]) -> Result<Vec<Step>> {
    let options = &queue.options;
    let lease = asks.first().map_or(Duration::ZERO, |ask| ask.lease);
    let mut command = script::STEP.on(&queue.keys[shard]);
    command.arg(queue.now()).arg(millis(lease)).arg(options.crash_budget);
    command.arg(options.memo_limit).arg(millis(options.memo_age)).arg(asks.len());
    for ask in asks {
        command.arg(&*ask.worker).arg(ask.sequence).arg(ask.max).arg(ask.acks.len());
    }
    for (id, token) in asks.iter().flat_map(|ask| &ask.acks) {
        command.arg(id).arg(token);
    }
    read(shard, asks, queue.link.run(&script::STEP, &command).await?)
}

fn read(shard: usize, asks: &[Ask], value: Value) -> Result<Vec<Step>> {
    let mut values = answer::list(value)?.into_iter();
    let Head { wait, paused, left, settled } = answer::head(&mut values)?;
    let mut settled = settled.into_iter();
    let mut steps: Vec<Step> = asks
        .iter()
        .map(|ask| {
            let settled = settled.by_ref().take(ask.acks.len()).collect();
            Step { wait, paused, left, settled, deliveries: Vec::new() }
        })
        .collect();
    if let [step] = steps.as_mut_slice() {
        step.deliveries = answer::deliveries(shard, values)?;
        return Ok(steps);
    }
    while let Some((delivery, worker)) = answer::delivery(shard, &mut values)? {
        let mut places = asks.iter().zip(&mut steps);
        let place = places.find(|(ask, _)| ask.worker.as_bytes() == worker);
        let (_, step) = place.ok_or(Error::Answer("a delivery for nobody"))?;
        step.deliveries.push(delivery);
    }
    Ok(steps)
}
