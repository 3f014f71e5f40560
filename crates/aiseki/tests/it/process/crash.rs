use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::ledger::{Ledger, Life};
use crate::harness::{Client, Directory, Program, Running, Settings, eventually};

/// How often the program is killed.
const ROUNDS: usize = 30;
/// People who come and go all the time.
const PEOPLE: u64 = 24;

/// Nobody's time is over while the test runs, so that every change has a cause that is known.
fn patient(directory: &Directory) -> Settings {
    Settings::new()
        .data_dir(&directory.data())
        .set("presence_timeout", "1h")
        .set("fallback_after", "1h")
        .set("wait_timeout", "2h")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_that_was_given_holds_after_a_kill_under_load() {
    let directory = Directory::new();
    let settings = patient(&directory);
    let mut program = Program::start(&settings).await;
    let topics = Arc::new([program.topic("a").await, program.topic("b").await]);
    let mut lives = Vec::new();
    for n in 0..PEOPLE {
        lives.push(Life::new(program.person().await, n));
    }
    let mut operator = Operator::default();
    for round in 0..ROUNDS {
        let answers = Arc::new(AtomicUsize::new(0));
        let mut tasks = Vec::new();
        for mut life in lives.drain(..) {
            life.moves_to(&program.client);
            let (topics, answers) = (Arc::clone(&topics), Arc::clone(&answers));
            tasks.push(tokio::spawn(async move {
                while life.step(&topics[..]).await {
                    answers.fetch_add(1, Ordering::Relaxed);
                }
                life
            }));
        }
        let admin = program.admin();
        let operating = tokio::spawn(async move {
            while operator.step(&admin).await {}
            operator
        });
        // The moment of the kill differs from round to round; now and then it is the moment at which
        // the log is being copied into the file.
        let enough = 40 + round * 37 % 200;
        let before = written(&directory);
        eventually("there is load", async || {
            let loaded = answers.load(Ordering::Relaxed) >= enough;
            let copied = round % 6 != 5 || written(&directory) != before;
            (loaded && copied).then_some(())
        })
        .await;
        program.kill().await;
        for task in tasks {
            lives.push(task.await.expect("a life without a surprise"));
        }
        operator = operating.await.expect("an operator without a surprise");

        program = Program::start(&settings).await;
        let mut ledger = Ledger::default();
        for life in &mut lives {
            life.moves_to(&program.client);
            life.judge(&mut ledger).await;
        }
        ledger.agrees_with(&program.admin()).await;
        operator.judge(&program.admin()).await;
    }
    program.terminate().await;
}

/// When the file was written last: commits go to its log, and checkpoints to the file itself.
fn written(directory: &Directory) -> std::time::SystemTime {
    let file = directory.data().join("aiseki.db");
    file.metadata().and_then(|metadata| metadata.modified()).expect("the file of the store")
}

/// Somebody who makes topics and bans, and remembers what was answered.
#[derive(Default)]
struct Operator {
    topics: Vec<Value>,
    bans: Vec<Value>,
    lifted: Vec<Value>,
    /// What was asked for and not answered.
    unsure: Option<Value>,
    steps: u64,
}

impl Operator {
    /// One call; false when the server has gone.
    async fn step(&mut self, admin: &Client) -> bool {
        self.steps += 1;
        let step = self.steps;
        let (method, path, body) = match step % 4 {
            0 => ("POST", "/admin/topics".to_owned(), json!({ "title": format!("topic {step}") })),
            1 | 2 => {
                let address = format!("2001:db8:{step:x}::/64");
                ("POST", "/admin/bans".to_owned(), json!({ "address": address }))
            }
            _ => match self.bans.pop() {
                Some(ban) => ("DELETE", format!("/admin/bans/{}", ban["id"]), ban),
                None => return true,
            },
        };
        self.unsure = Some(body.clone());
        let text = (method == "POST").then(|| body.to_string());
        let Ok(answer) = admin.try_call(method, &path, text).await else { return false };
        self.unsure = None;
        match (method, path.as_str()) {
            ("POST", "/admin/topics") => self.topics.push(answer.expect(201)),
            ("POST", _) => self.bans.push(answer.expect(201)),
            _ => {
                answer.expect(204);
                self.lifted.push(body);
            }
        }
        true
    }

    async fn judge(&mut self, admin: &Client) {
        let topics = admin.get("/admin/topics").await.expect(200)["topics"].clone();
        let topics = topics.as_array().unwrap();
        for made in &self.topics {
            let found = topics.iter().find(|topic| topic["id"] == made["id"]);
            assert_eq!(found.map(|topic| &topic["title"]), Some(&made["title"]));
        }
        let bans = admin.get("/admin/bans").await.expect(200)["bans"].clone();
        let bans = bans.as_array().unwrap();
        for made in &self.bans {
            assert!(bans.contains(made), "{made} is gone");
        }
        for lifted in &self.lifted {
            assert!(bans.iter().all(|ban| ban["id"] != lifted["id"]), "{lifted} is back");
        }
        // Whatever became of the last call, nothing is known of it any more.
        self.unsure = None;
    }
}

#[tokio::test]
async fn a_kill_while_the_store_is_being_made_leaves_one_that_opens() {
    for _ in 0..10 {
        let directory = Directory::new();
        let settings = Settings::new().data_dir(&directory.data());
        let file = directory.data().join("aiseki.db");
        let running = Running::begin(&settings);
        eventually("there is a file", async || file.exists().then_some(())).await;
        // Letting go of it kills it.
        drop(running);
        let program = Program::start(&settings).await;
        program.topic("t").await;
        program.terminate().await;
    }
}

#[tokio::test]
async fn a_stop_and_a_kill_take_turns_and_places_stay() {
    let directory = Directory::new();
    let settings = patient(&directory);
    let program = Program::start(&settings).await;
    let topic = program.topic("t").await;
    let (ann, bob) = (program.person().await, program.person().await);
    let waiting = ann.join(topic, 3).await.expect(202);
    bob.join(topic, 3).await.expect(202);
    let mut program = program;
    for round in 0..4 {
        if round % 2 == 0 {
            program.kill().await;
        } else {
            program.terminate().await;
        }
        program = Program::start(&settings).await;
        assert_eq!(ann.at(&program.client).state().await, waiting);
    }
    let cem = program.person().await;
    let matched = cem.join(topic, 3).await.expect(200);
    program.kill().await;
    let program = Program::start(&settings).await;
    for person in [&ann, &bob, &cem] {
        assert_eq!(person.at(&program.client).state().await, matched);
    }
}
