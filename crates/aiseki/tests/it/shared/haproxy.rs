use std::net::SocketAddr;
use std::path::Path;

use aiseki_testkit::{Postgres, Redis, Scratch, Warden, free_port};

use crate::harness::{Client, Metrics, Person, Program, Settings, eventually};

/// People who hold a long poll.
const PEOPLE: u32 = 12;

/// haproxy with the configuration that is deployed.
struct Haproxy {
    client: Client,
    // Before the folder that it writes its log to.
    _running: Warden,
    _folder: Scratch,
}

impl Haproxy {
    async fn before(one: SocketAddr, two: SocketAddr) -> Self {
        let folder = Scratch::new("haproxy").expect("a folder");
        let address = SocketAddr::from(([127, 0, 0, 1], free_port().expect("a port")));
        let configuration = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/haproxy.cfg");
        let arguments = [
            format!("FRONT={address}"),
            format!("ONE={one}"),
            format!("TWO={two}"),
            "haproxy".into(),
            "-db".into(),
            "-f".into(),
            configuration.into(),
        ];
        let running = Warden::start(Path::new("/usr/bin/env"), &arguments, folder.path());
        let client = Client::new(address);
        let running = running.expect("the package haproxy");
        eventually("haproxy has found the servers", async || {
            let answer = client.try_call("GET", "/readyz", None).await.ok()?;
            (answer.status == 200).then_some(())
        })
        .await;
        Self { client, _running: running, _folder: folder }
    }
}

async fn held(server: &Program) -> f64 {
    Metrics::of(&server.client).await.value("aiseki_push_subscriptions")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_behind_haproxy_costs_nobody_the_place() {
    let redis = Redis::start().expect("a Redis");
    let database = Postgres::shared().fresh_database().expect("a database");
    let settings = Settings::new()
        .set("redis_url", &redis.url())
        .set("database_url", &database)
        .set("trusted_proxies", "127.0.0.1");
    let one = Program::start(&settings).await;
    let two = Program::start(&settings).await;
    let haproxy = Haproxy::before(one.client.address, two.client.address).await;
    let front = &haproxy.client;

    // Each waits for another topic, so that nobody is seated before the partner comes.
    let mut waiting = Vec::new();
    for n in 0..PEOPLE {
        let topic = two.topic(&format!("topic {n}")).await;
        let person = Person::new(front).await;
        let state = person.join(topic, 2).await.expect(202);
        waiting.push((person, topic, state["waiting_since"].clone()));
    }
    let streaming = &waiting[0];
    let mut stream = streaming.0.client.stream("/api/matching/events").await;
    assert_eq!(stream.state().await["waiting_since"], streaming.2);
    let socket = streaming.0.client.socket("/ws/matching").await;
    let mut socket = socket.unwrap_or_else(|refusal| panic!("{refusal:?}"));
    assert_eq!(socket.state().await["waiting_since"], streaming.2);
    drop((stream, socket));
    let polls: Vec<_> = waiting
        .iter()
        .map(|(person, ..)| {
            let person = person.clone();
            tokio::spawn(async move { person.long_poll(50).await })
        })
        .collect();
    let all = f64::from(PEOPLE);
    let of_one = eventually("all long polls are held", async || {
        let (one, two) = (held(&one).await, held(&two).await);
        (one + two > all - 0.5 && one + two < all + 0.5).then_some(one)
    })
    .await;
    assert!(of_one > 0.5 && of_one < all - 0.5, "both servers hold some: {of_one}");

    one.kill().await;
    // haproxy asks the other one again: people need not even notice.
    eventually("all long polls are held by the other", async || {
        (held(&two).await > all - 0.5).then_some(())
    })
    .await;
    for (person, topic, since) in &waiting {
        let state = person.state().await;
        assert_eq!((&state["status"], &state["waiting_since"]), (&"waiting".into(), since));
        let mut stream = person.client.stream("/api/matching/events").await;
        assert_eq!(stream.state().await["waiting_since"], *since);
        drop(stream);
        let partner = Person::new(front).await;
        let joined = partner.join(*topic, 2).await;
        assert!([200, 202].contains(&joined.status), "{joined:?}");
    }
    for poll in polls {
        let answer = poll.await.expect("a long poll ends with an answer").expect(200);
        assert_eq!(answer["status"], "matched", "{answer}");
    }
}
