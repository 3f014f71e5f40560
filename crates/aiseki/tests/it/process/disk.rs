use std::path::Path;
use std::process::Command;

use rustix::process::{Resource, Rlimit, prlimit};

use crate::harness::{Client, Directory, Person, Program, Settings, Since, eventually};

/// Writing fails beyond this size of a file, and works again when the limit is lifted. A process
/// that ignores the signal is told by an error, just as by a full disk.
fn limit_files(program: &Program, bytes: Option<u64>) {
    let limit = Rlimit { current: bytes, maximum: None };
    prlimit(Some(program.pid()), Resource::Fsize, limit).expect("the limit can be set");
}

/// The program with the signal of that limit ignored.
fn patient(settings: &Settings) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "trap '' XFSZ; exec \"$0\"", env!("CARGO_BIN_EXE_aiseki")]);
    command.env_clear().envs(settings.variables().iter().map(|(name, value)| (name, value)));
    command
}

/// People who wait in places of their own, and what they were told.
async fn waiting(program: &Program, topic: i64, n: usize) -> Vec<(Person, serde_json::Value)> {
    let mut people = Vec::new();
    for _ in 0..n {
        let person = program.person().await;
        let state = person.join(topic, 8).await.expect(202);
        people.push((person, state));
    }
    people
}

async fn unavailable(client: &Client) {
    let answer = client.get("/readyz").await;
    assert_eq!(answer.expect(503)["checks"]["store"], "away");
    client.get("/healthz").await.expect(200);
}

async fn ready(client: &Client) {
    eventually("the store can be written again", async || {
        (client.get("/readyz").await.status == 200).then_some(())
    })
    .await;
}

/// Joins, until the store is away; whoever was accepted is remembered.
async fn fill(program: &Program, topics: &[i64]) -> Vec<(Person, serde_json::Value)> {
    let mut accepted = Vec::new();
    for topic in topics.iter().cycle().take(3_000) {
        let session = program.client.call("POST", "/api/session", None).await;
        if session.status == 503 {
            assert!(session.retry_after() >= 1);
            return accepted;
        }
        let token = session.expect(201)["token"].as_str().unwrap().to_owned();
        let person = Person { client: program.client.bearer(&token), token };
        let answer = person.join(*topic, 8).await;
        match answer.status {
            202 => accepted.push((person, answer.json())),
            200 => {}
            _ => {
                answer.refused(503, "unavailable");
                assert!(answer.retry_after() >= 1);
                return accepted;
            }
        }
    }
    panic!("the disk never filled up");
}

async fn nobody_is_lost(client: &Client, people: &[(Person, serde_json::Value)]) {
    for (person, told) in people {
        let state = person.at(client).state().await;
        match state["status"].as_str() {
            Some("waiting") => assert_eq!(state["waiting_since"], told["waiting_since"]),
            Some("matched") => assert_eq!(state["topic_id"], told["topic_id"]),
            _ => panic!("{told} became {state}"),
        }
    }
}

/// The whole story of a disk that fills up and has room again, told by whoever can fill it.
async fn fills_up_and_empties(
    settings: &Settings,
    program: Program,
    fill_up: impl FnOnce(&Program),
    make_room: impl FnOnce(&Program),
) {
    let topics = [program.topic("a").await, program.topic("b").await, program.topic("c").await];
    let mut people = waiting(&program, topics[0], 5).await;
    fill_up(&program);
    people.extend(fill(&program, &topics).await);
    unavailable(&program.client).await;
    let (somebody, _) = &people[0];
    for answer in [
        somebody.cancel().await,
        somebody.client.get("/api/matching").await,
        somebody.join(topics[1], 2).await,
        somebody.leave("0197f3a1-5b2c-7d4e-8f90-a1b2c3d4e5f6").await,
        program.admin().post("/admin/topics", &serde_json::json!({ "title": "t" })).await,
    ] {
        answer.refused(503, "unavailable");
        assert!(answer.retry_after() >= 1);
        let shown = answer.body.to_lowercase();
        assert!(!shown.contains("sql") && !shown.contains("disk") && !shown.contains('/'));
    }
    make_room(&program);
    ready(&program.client).await;
    nobody_is_lost(&program.client, &people).await;
    people.extend(waiting(&program, topics[2], 1).await);
    people[0].0.cancel().await;
    people.swap_remove(0);
    // Memory and file agree: a fresh start from the file tells the same.
    program.kill().await;
    let again = Program::start(settings).await;
    nobody_is_lost(&again.client, &people).await;
    again.terminate().await;
}

fn room_types(path: &Path) -> Settings {
    Settings::new().data_dir(path).set("room_types", "2,8")
}

#[tokio::test]
async fn a_file_that_may_not_grow_makes_the_store_unavailable_until_it_may() {
    let directory = Directory::new();
    let settings = room_types(&directory.data());
    let program = Program::start_as(patient(&settings)).await;
    let full = |program: &Program| {
        let log = directory.data().join("aiseki.db-wal");
        let length = std::fs::metadata(log).expect("the log of the store").len();
        limit_files(program, Some(length + 100_000));
    };
    fills_up_and_empties(&settings, program, full, |program| limit_files(program, None)).await;
}

#[tokio::test]
async fn an_outage_makes_nobody_absent_and_ends_no_stream() {
    let directory = Directory::new();
    let settings = room_types(&directory.data()).set("presence_timeout", "1s");
    let program = Program::start_as(patient(&settings)).await;
    let topic = program.topic("a").await;
    let (ann, bob) = (program.person().await, program.person().await);
    let mut stream = ann.client.stream("/api/matching/events").await;
    stream.state().await;
    limit_files(&program, Some(0));
    ann.join(topic, 2).await.refused(503, "unavailable");
    limit_files(&program, None);
    ready(&program.client).await;
    let told = ann.join(topic, 2).await.expect(202);
    assert_eq!(stream.state().await, told);
    let silent = waiting(&program, topic, 3).await;
    limit_files(&program, Some(0));
    bob.join(topic, 8).await.refused(503, "unavailable");
    let since = Since::now();
    eventually("the presence time has passed", async || {
        unavailable(&program.client).await;
        ann.long_poll(55).await.refused(503, "unavailable");
        (since.millis() > 1_500).then_some(())
    })
    .await;
    limit_files(&program, None);
    ready(&program.client).await;
    // Those who could not show a sign of life had no fault in it.
    nobody_is_lost(&program.client, &silent).await;
    bob.join(topic, 2).await.expect(200);
    assert_eq!(stream.state().await["status"], "matched");
}

#[tokio::test]
async fn a_disk_that_cannot_be_written_is_named_at_the_start() {
    let directory = Directory::new();
    let Some(disk) = Disk::mount(&directory.path().join("disk")) else {
        // Only root may mount; others meet the same in `process::start`.
        return;
    };
    let settings = room_types(&disk.0.join("data"));
    Program::start(&settings).await.terminate().await;
    disk.make_read_only();
    let ended = Program::refused(&settings).await;
    assert_eq!(ended.code, Some(1));
    let [line] = &ended.lines[..] else { panic!("one line: {:?}", ended.lines) };
    let expected = format!(
        "aiseki: {} cannot be used as data directory: Read-only file system (os error 30)",
        disk.0.join("data").display()
    );
    assert_eq!(*line, expected);
}

#[tokio::test]
async fn a_store_that_finds_no_room_to_be_made_is_made_when_there_is_some() {
    let directory = Directory::new();
    let Some(disk) = Disk::mount(&directory.path().join("disk")) else {
        // Only root may mount, and a limit on files cannot tell this story: it ends the program.
        return;
    };
    let settings = room_types(&disk.0.join("data"));
    let ballast = disk.0.join("ballast");
    for free in [0, 8_192, 40_960] {
        // What is written beyond the end of the disk is refused, and the disk is full to that point.
        let _ = std::fs::write(&ballast, vec![0; 5_000_000]);
        let length = std::fs::metadata(&ballast).expect("the ballast").len();
        let file = std::fs::File::options().write(true).open(&ballast).expect("the ballast");
        file.set_len(length - free).expect("some room");
        drop(file);
        let ended = Program::refused(&settings).await;
        assert_eq!(ended.code, Some(1), "{free}: {:?}", ended.lines);
        let [line] = &ended.lines[..] else { panic!("one line: {:?}", ended.lines) };
        assert!(line.starts_with(&format!("aiseki: {}", disk.0.display())), "{line}");
        std::fs::remove_file(&ballast).expect("removed");
        if free == 0 {
            continue;
        }
        // Nothing half-made stands in the way.
        let program = Program::start(&settings).await;
        program.topic("a").await;
        program.terminate().await;
        std::fs::remove_dir_all(disk.0.join("data")).expect("removed");
    }
}

#[tokio::test]
async fn a_full_disk_makes_the_store_unavailable_until_there_is_room() {
    let directory = Directory::new();
    let disk = Disk::mount(&directory.path().join("disk"));
    let Some(disk) = disk else {
        // Only root may mount; the test above tells the same story with a limit on the file.
        return;
    };
    let settings = room_types(&disk.0.join("data"));
    let program = Program::start(&settings).await;
    let ballast = disk.0.join("ballast");
    let full = |_: &Program| {
        // Less is free afterwards than the joins of the test need.
        let written = std::fs::write(&ballast, vec![0; 3_500_000]);
        written.expect("the ballast fits");
    };
    let make_room = |_: &Program| std::fs::remove_file(&ballast).expect("removed");
    fills_up_and_empties(&settings, program, full, make_room).await;
}

/// A small disk of the test's own.
struct Disk(std::path::PathBuf);

impl Disk {
    fn mount(path: &Path) -> Option<Self> {
        std::fs::create_dir(path).expect("a directory");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=4m", "none"])
            .arg(path)
            .output()
            .is_ok_and(|output| output.status.success());
        mounted.then(|| Self(path.to_owned()))
    }

    fn make_read_only(&self) {
        let remounted = Command::new("mount").args(["-o", "remount,ro"]).arg(&self.0).status();
        assert!(remounted.is_ok_and(|status| status.success()), "mounted anew");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}
