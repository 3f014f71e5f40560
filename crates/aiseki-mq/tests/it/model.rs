//! Random operations with virtual time, compared with a simple model; a failure prints its seed.

mod queue;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aiseki_mq::{Consumer, Lists, ListsOptions, Message, Nack, Queue, Receipt, Verdict, Which};

use crate::bed::{Bed, VirtualTime};
use queue::Model;

const OPERATIONS: usize = 400;
const LEASE: Duration = Duration::from_secs(10);
const WORKERS: usize = 3;
const FAILURES: u32 = 3;
const CRASHES: u32 = 2;
const LONGEST: u64 = 40;

/// Small numbers that depend on the seed alone.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    fn count(&mut self, sides: u64) -> usize {
        usize::try_from(self.roll(sides)).expect("small")
    }
}

/// The queue and its model, side by side.
struct Both {
    queue: Lists,
    model: Model,
    time: VirtualTime,
    consumers: Vec<Arc<dyn Consumer>>,
    /// Every receipt that was ever given, so that old ones are tried as well.
    receipts: Vec<Vec<Receipt>>,
}

impl Both {
    fn new(bed: &Bed, name: &str) -> Self {
        let time = VirtualTime::new();
        let options = ListsOptions {
            max_length: Some(LONGEST),
            failure_budget: FAILURES,
            crash_budget: CRASHES,
            memo_limit: 1_000_000,
            memo_age: Duration::from_hours(1_000_000),
            ..time.options()
        };
        let name = aiseki_mq::QueueName::new(name).expect("a name");
        let queue = Lists::new(&bed.server, name, options);
        let consumers =
            (0..WORKERS).map(|_| queue.consumer("w", LEASE).expect("a consumer")).collect();
        let model = Model::new(LONGEST, FAILURES, CRASHES);
        Self { queue, model, time, consumers, receipts: vec![Vec::new(); WORKERS] }
    }

    fn now(&self) -> u64 {
        self.time.0.load(std::sync::atomic::Ordering::SeqCst)
    }

    async fn publish(&mut self, dice: &mut Dice) {
        let messages: Vec<Message> = (0..=dice.count(5))
            .map(|_| {
                let mut message = Message::new("x").with_id(format!("id-{}", dice.roll(150)));
                if dice.roll(3) == 0 {
                    message = message.with_delay(Duration::from_secs(1 + dice.roll(20)));
                }
                if dice.roll(4) == 0 {
                    message = message.with_unique(format!("key-{}", dice.roll(8)));
                }
                message
            })
            .collect();
        let real = self.queue.publish(&messages).await;
        let expected = self.model.publish(self.now(), &messages);
        match (real, expected) {
            (Ok(real), Some(expected)) => assert_eq!(real, expected, "publish"),
            (Err(aiseki_mq::Error::Full), None) => {}
            other => panic!("publish: {other:?}"),
        }
    }

    async fn exchange(&mut self, dice: &mut Dice) {
        let worker = dice.count(WORKERS as u64);
        let acks: Vec<Receipt> =
            (0..dice.count(4)).filter_map(|_| self.any(dice, worker)).collect();
        let max = dice.count(5);
        let real = self.consumers[worker].exchange(&acks, max).await.expect("an exchange");
        let now = self.now();
        let settled: Vec<_> = acks.iter().map(|ack| self.model.ack(ack)).collect();
        assert_eq!(real.settled, settled, "ack {acks:?}");
        let expected = self.model.claim(now, worker, max, LEASE);
        let got: Vec<_> = real
            .deliveries
            .iter()
            .map(|each| (each.receipt.id.clone(), each.failures, each.crashes))
            .collect();
        assert_eq!(got, expected, "claim of {max}");
        for delivery in real.deliveries {
            self.model.delivered(&delivery.receipt);
            self.receipts[worker].push(delivery.receipt);
        }
    }

    fn any(&self, dice: &mut Dice, worker: usize) -> Option<Receipt> {
        let all = &self.receipts[worker];
        // Mostly those in hand, now and then an old one.
        let recent = if dice.roll(4) == 0 { all.len() } else { all.len().min(6) };
        let back = dice.count(recent.max(1) as u64) + 1;
        all.len().checked_sub(back).map(|index| all[index].clone())
    }

    async fn nack(&mut self, dice: &mut Dice) {
        let worker = dice.count(WORKERS as u64);
        let Some(receipt) = self.any(dice, worker) else { return };
        let delay = Duration::from_secs(dice.roll(3) * 4);
        let verdict = match dice.roll(6) {
            0 => Verdict::Bury { reason: "buried".to_owned() },
            1 | 2 => Verdict::Release { delay },
            _ => Verdict::Fail { delay, reason: "failed".to_owned() },
        };
        let nack = Nack { receipt, verdict };
        let real = self.consumers[worker].nack(std::slice::from_ref(&nack)).await.expect("nacked");
        assert_eq!(real, [self.model.nack(self.now(), &nack)], "{nack:?}");
    }

    async fn renew(&mut self, dice: &mut Dice) {
        let worker = dice.count(WORKERS as u64);
        let Some(receipt) = self.any(dice, worker) else { return };
        let held = [receipt];
        let real = self.consumers[worker].renewer().renew(&held).await.expect("renewed");
        assert_eq!(real, [self.model.renew(self.now(), &held[0], LEASE)], "renew {held:?}");
    }

    async fn cancel(&mut self, dice: &mut Dice) {
        let ids = [format!("id-{}", dice.roll(150)), format!("id-{}", dice.roll(150))];
        let real = self.queue.cancel(&ids).await.expect("cancelled");
        let expected: Vec<_> = ids.iter().map(|id| self.model.cancel(id)).collect();
        assert_eq!(real, expected, "cancel {ids:?}");
    }

    async fn letters(&mut self, dice: &mut Dice) {
        let listed = self.queue.dead_letters(0, 1_000).await.expect("letters");
        let real: BTreeMap<_, _> =
            listed.iter().map(|each| (each.id.clone(), (each.failures, each.crashes))).collect();
        assert_eq!(real, self.model.letters(), "dead letters");
        let Some(letter) = listed.get(dice.count(listed.len().max(1) as u64)) else { return };
        let which = Which::Ids(vec![letter.id.clone()]);
        if dice.roll(2) == 0 {
            let real = self.queue.replay(&which).await.expect("replayed");
            assert_eq!(real, u64::from(self.model.replay(&letter.id)), "replay {}", letter.id);
        } else {
            let real = self.queue.drop_dead(&which).await.expect("dropped");
            assert_eq!(real, u64::from(self.model.drop_dead(&letter.id)), "drop {}", letter.id);
        }
    }

    async fn step(&mut self, dice: &mut Dice) {
        match dice.roll(20) {
            0..=5 => self.publish(dice).await,
            6..=11 => self.exchange(dice).await,
            12..=13 => self.nack(dice).await,
            14 => self.renew(dice).await,
            15 => self.cancel(dice).await,
            16 => self.letters(dice).await,
            17 => {
                let paused = dice.roll(3) == 0;
                self.queue.pause(paused).await.expect("paused");
                self.model.paused = paused;
            }
            _ => self.time.pass(Duration::from_millis(500 * (1 + dice.roll(16)))),
        }
        let stats = self.queue.stats().await.expect("stats");
        let real = [stats.ready, stats.delayed, stats.leased, stats.dead, stats.acked];
        assert_eq!(real, self.model.counts(), "ready, delayed, leased, dead, acked");
    }
}

/// Seeds that are the same in every run, and one that is new.
fn seeds() -> Vec<u64> {
    let fresh = getrandom::u64().expect("randomness");
    (1..=11).chain([fresh]).collect()
}

#[tokio::test]
async fn the_scripts_do_what_the_model_does() {
    let bed = Bed::new();
    for seed in seeds() {
        let mut dice = Dice(seed);
        let mut both = Both::new(&bed, &format!("jobs-{seed}"));
        for operation in 0..OPERATIONS {
            let told = Told { seed, operation };
            both.step(&mut dice).await;
            drop(told);
        }
        let findings = aiseki_mq::doctor::examine_queue(&both.queue).await.expect("examined");
        let wrong = findings.iter().find(|each| each.level == aiseki_mq::doctor::Level::Wrong);
        assert_eq!(wrong, None, "seed {seed}");
    }
}

/// Says where it was when a comparison fails.
struct Told {
    seed: u64,
    operation: usize,
}

impl Drop for Told {
    #[expect(clippy::print_stderr, reason = "a failed test says how to repeat it")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}, operation {}", self.seed, self.operation);
        }
    }
}
