//! `aiseki mq`, on a real server.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use aiseki_testkit::{Redis, eventually_blocking};
use serde_json::{Value, json};

use crate::program::Program;

const SOON: Duration = Duration::from_secs(20);
const ENGINES: [&str; 3] = ["lists", "plain", "streams"];

struct Bed {
    redis: Redis,
    program: Program,
}

impl Bed {
    fn new() -> Self {
        Self::with(&[])
    }

    fn with(arguments: &[&str]) -> Self {
        let redis = Redis::with_arguments(arguments).expect("a server");
        let program = Program::new().variable("AISEKI_REDIS_URL", &redis.url());
        let program = program.variable("PATH", "/usr/local/bin:/usr/bin:/bin");
        Self { redis, program }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        self.program.command(&[&["mq"], arguments].concat())
    }

    /// Runs a subcommand with this standard input; it must succeed.
    fn mq(&self, arguments: &[&str], input: &[u8]) -> String {
        let output = self.ended(arguments, input);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {errors}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    fn ended(&self, arguments: &[&str], input: &[u8]) -> Output {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        // A command that needs no input may have ended before this.
        let _ = child.stdin.take().expect("its input").write_all(input);
        child.wait_with_output().expect("it ends")
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let text = self.mq(&[arguments, &["--json"]].concat(), b"");
        serde_json::from_str(&text).expect("JSON")
    }
}

#[test]
fn messages_are_published_worked_on_and_counted_with_every_engine() {
    for engine in ENGINES {
        let bed = Bed::new();
        let mq = |arguments: &[&str], input: &[u8]| {
            bed.mq(&[arguments, &["--engine", engine]].concat(), input)
        };
        mq(&["publish", "jobs", "--lines"], b"one\ntwo\nthree");
        let stats = || bed.json(&["stats", "jobs", "--engine", engine]);
        let mut expected = json!({
            "ready": 3, "delayed": 0, "leased": 0, "dead": 0, "acked": 0, "oldest_ms": 0,
        });
        let mut found = stats();
        assert!(found["oldest_ms"].is_u64(), "{engine}: {found}");
        found["oldest_ms"] = json!(0);
        assert_eq!(found, expected, "{engine}");
        let script = "cat >> out; printf ' %s %s\\n' \"$AISEKI_ATTEMPT\" \
            \"${AISEKI_MESSAGE_ID:+id}${AISEKI_TOKEN:+token}\" >> out";
        mq(&["work", "jobs", "--exec", script, "--until-empty"], b"");
        let out = std::fs::read_to_string(bed.program.path("out")).expect("the commands ran");
        assert_eq!(out, "one 1 idtoken\ntwo 1 idtoken\nthree 1 idtoken\n", "{engine}");
        expected["ready"] = json!(0);
        expected["acked"] = json!(3);
        assert_eq!(stats(), expected, "{engine}");
    }
}

#[test]
fn a_failing_command_ends_among_the_dead_letters_with_every_engine() {
    for engine in ENGINES {
        let bed = Bed::new();
        let with = |arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
            arguments
                .into_iter()
                .chain(["--engine".to_owned(), engine.to_owned()])
                .collect::<Vec<_>>()
        };
        let run = |arguments: &[&str], input: &[u8]| {
            let arguments = with(arguments);
            bed.mq(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), input)
        };
        run(&["publish", "jobs"], b"bad\xff");
        let retries = ["--failure-budget", "3", "--backoff", "1ms"];
        let work = ["work", "jobs", "--exec", "exit 7", "--until-empty", "--json"];
        let report = run(&[&work[..], &retries].concat(), b"");
        let report: Value = serde_json::from_str(&report).expect("JSON");
        assert_eq!(report, json!({ "acked": 0, "failed": 3, "released": 0, "lost": 0 }));
        let letters = run(&["dead", "list", "jobs", "--json"], b"");
        let letters: Value = serde_json::from_str(&letters).expect("JSON");
        assert_eq!(letters[0]["reason"], "exit 7", "{engine}");
        assert_eq!(letters[0]["payload_base64"], "YmFk/w==");
        assert_eq!((&letters[0]["payload"], &letters[0]["failures"]), (&Value::Null, &json!(3)));
        assert!(run(&["dead", "list", "jobs"], b"").contains("exit 7"));
        assert_eq!(run(&["dead", "replay", "jobs"], b""), "1 replayed\n");
        run(&["work", "jobs", "--exec", "exit 0", "--until-empty"], b"");
        assert_eq!(run(&["dead", "drop", "jobs"], b""), "0 dropped\n");
    }
}

#[test]
fn exit_75_asks_for_a_retry_that_does_not_count() {
    let bed = Bed::new();
    bed.mq(&["publish", "jobs"], b"x");
    // The third attempt succeeds; a failure budget of one would not have borne a failure.
    let script = "echo $AISEKI_ATTEMPT >> out; [ $(wc -l < out) -ge 2 ] || exit 75";
    let work = ["work", "jobs", "--exec", script, "--until-empty", "--failure-budget", "1"];
    let report = bed.json(&work);
    assert_eq!(report, json!({ "acked": 1, "failed": 0, "released": 1, "lost": 0 }));
    let out = std::fs::read_to_string(bed.program.path("out")).expect("it ran");
    assert_eq!(out, "1\n1\n");
}

#[test]
fn ids_delays_and_unique_keys() {
    let bed = Bed::new();
    assert_eq!(bed.mq(&["publish", "jobs", "--id", "a"], b"x"), "a\n");
    assert_eq!(bed.mq(&["publish", "jobs", "--id", "a"], b"x"), "a is published already\n");
    let delayed = ["publish", "jobs", "--id", "b", "--delay", "5s", "--unique", "k"];
    bed.mq(&delayed, b"x");
    let taken = bed.json(&["publish", "jobs", "--id", "c", "--unique", "k"]);
    assert_eq!(taken, json!({ "id": "c", "result": "taken", "by": "b" }));
    let stats = bed.json(&["stats", "jobs"]);
    assert_eq!((&stats["ready"], &stats["delayed"]), (&json!(1), &json!(1)));
    let full = bed.ended(&["publish", "jobs", "--max-length", "2"], b"x");
    assert_eq!(full.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&full.stderr).contains("the queue is full"));
    let elsewhere = bed.ended(&["publish", "jobs", "--delay", "5s", "--engine", "plain"], b"x");
    assert_eq!(elsewhere.status.code(), Some(1), "refused, rather than left out in silence");
    let fsync = bed.ended(&["publish", "jobs", "--durability", "fsync"], b"x");
    assert_eq!(fsync.status.code(), Some(1));
}

#[test]
fn any_client_fills_a_plain_queue() {
    let bed = Bed::new();
    bed.redis.command("LPUSH jobs first").expect("pushed");
    bed.redis.command("LPUSH jobs second").expect("pushed");
    let script = "cat >> out; echo >> out";
    bed.mq(&["work", "jobs", "--engine", "plain", "--exec", script, "--until-empty"], b"");
    let out = std::fs::read_to_string(bed.program.path("out")).expect("it ran");
    assert_eq!(out, "first\nsecond\n");
}

#[test]
fn a_paused_queue_delivers_nothing_until_it_is_resumed() {
    let bed = Bed::new();
    bed.mq(&["pause", "jobs"], b"");
    bed.mq(&["publish", "jobs"], b"x");
    let work = ["work", "jobs", "--exec", "cat > out"];
    let mut worker = bed.command(&work).stdout(Stdio::null()).spawn().expect("it starts");
    let blocked = || bed.redis.command("INFO clients").unwrap().contains("blocked_clients:1");
    assert!(eventually_blocking(SOON, blocked), "the worker blocks");
    assert!(!bed.program.path("out").exists());
    assert!(bed.mq(&["stats", "jobs"], b"").contains("the queue is paused"));
    bed.mq(&["resume", "jobs"], b"");
    let done = || bed.json(&["stats", "jobs"])["acked"] == 1;
    assert!(eventually_blocking(SOON, done), "it is worked on");
    terminate(worker.id());
    assert!(worker.wait().expect("it ends").success());
}

fn terminate(id: u32) {
    let status = Command::new("kill").args(["-TERM", &id.to_string()]).status();
    assert!(status.expect("kill").success());
}

#[test]
fn sigterm_lets_the_running_command_end() {
    let bed = Bed::new();
    bed.mq(&["publish", "jobs", "--lines"], b"1\n2");
    // The command ends only after the worker was told to.
    let script = "touch started; while [ ! -e stopped ]; do sleep 0.01; done; cat >> out";
    let mut worker = bed
        .command(&["work", "jobs", "--exec", script, "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    assert!(eventually_blocking(SOON, || bed.program.path("started").exists()));
    terminate(worker.id());
    std::fs::write(bed.program.path("stopped"), "").expect("a file");
    let ended = worker.wait().expect("it ends");
    assert!(ended.success());
    assert_eq!(std::fs::read_to_string(bed.program.path("out")).expect("it ran"), "1");
    let stats = bed.json(&["stats", "jobs"]);
    assert_eq!(
        (&stats["ready"], &stats["leased"], &stats["acked"]),
        (&json!(1), &json!(0), &json!(1))
    );
}

#[test]
fn the_doctor_tells_right_from_wrong_by_its_exit_code() {
    let bed = Bed::new();
    bed.mq(&["publish", "jobs"], b"x");
    let report = bed.json(&["doctor", "jobs"]);
    assert_eq!(report["wrong"], 0);
    assert!(report.to_string().contains("loses every message"), "{report}");
    bed.redis.command("DEL mq:{jobs}:ready").expect("deleted");
    let ended = bed.ended(&["doctor", "jobs"], b"");
    assert_eq!(ended.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&ended.stdout).contains("in no state"));
    let evicting = Bed::with(&["--maxmemory", "50mb", "--maxmemory-policy", "allkeys-lru"]);
    assert_eq!(evicting.ended(&["doctor"], b"").status.code(), Some(1));
}

#[test]
fn the_benchmark_measures_every_engine_and_leaves_nothing() {
    let bed = Bed::new();
    let few = ["--messages", "2000", "--singles", "50", "--consumers", "2"];
    let figures = bed.json(&[&["bench"], &few[..]].concat());
    let engines: Vec<_> = figures.as_array().expect("a list").iter().collect();
    assert_eq!(engines.len(), 3);
    for each in engines {
        for figure in ["publish_per_second", "receive_per_second", "one_by_one_per_second"] {
            assert!(each[figure].as_f64().expect("a number") > 0.0, "{each}");
        }
        assert!(each["latency_p50_ms"].as_f64().expect("a number") > 0.0, "{each}");
    }
    assert_eq!(bed.redis.command("DBSIZE").expect("an answer"), ":0");
}

#[test]
fn a_server_that_is_not_there_or_not_named_is_one_clear_line() {
    let program = Program::new();
    assert!(program.refused(&["mq", "stats", "jobs"]).contains("--redis-url"));
    assert!(program.refused(&["mq", "stats", "jobs", "--redis-url", "http://x"]).contains("http"));
    let nobody = aiseki_testkit::free_port().expect("a port");
    let url = format!("redis://127.0.0.1:{nobody}");
    let ended = program.run(&["mq", "stats", "jobs", "--redis-url", &url]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.starts_with("aiseki: the server: "), "{}", ended.stderr);
}
