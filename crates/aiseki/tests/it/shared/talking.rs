use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aiseki::sessions::{SessionKey, Sessions};
use serde_json::{Value, json};

use crate::harness::{Client, Frame, Person, Plan, Socket, eventually, pass, within};

/// What each of three people says.
const LINES: usize = 120;

fn say(id: &str, text: &str) -> String {
    json!({ "type": "say", "id": id, "text": text }).to_string()
}

/// The next frame of this type.
async fn frame_of(socket: &mut Socket, kind: &str) -> Value {
    within(Duration::from_secs(30), kind, async {
        loop {
            let frame = socket.state().await;
            if frame["type"] == kind {
                return frame;
            }
        }
    })
    .await
}

async fn closed(socket: &mut Socket) -> Frame {
    within(Duration::from_secs(20), "the socket is closed", async {
        loop {
            match socket.next().await {
                Frame::Ping | Frame::State(_) => {}
                end => return end,
            }
        }
    })
    .await
}

/// Where the servers are now; one of them may be dead.
type Servers = Arc<Mutex<[Client; 2]>>;

/// Says everything and hears everything, over connections to one server after the other that break
/// at any time.
async fn talk(servers: Servers, person: Person, number: usize, room: String) -> Vec<Value> {
    let (mut heard, mut turn): (Vec<Value>, usize) = (Vec::new(), number);
    while heard.len() < 3 * LINES {
        turn += 1;
        let client = servers.lock().unwrap_or_else(PoisonError::into_inner)[turn % 2].clone();
        let path = format!("/ws/rooms/{room}?after={}", heard.len());
        let Some(mut socket) = person.at(&client).client.try_socket(&path).await else {
            pass(Duration::from_millis(20)).await;
            continue;
        };
        // What was lost with the connection before is said again under the same id.
        let known: HashSet<String> = heard.iter().map(|said| said["id"].to_string()).collect();
        let missing = (0..LINES).map(|line| format!("{number}-{line}"));
        let missing = missing.filter(|id| !known.contains(&json!(id).to_string()));
        for id in missing.take(12) {
            socket.try_say(&say(&id, &id)).await;
        }
        let enough = heard.len() + 40;
        while heard.len() < enough.min(3 * LINES) {
            let said = match tokio::time::timeout(Duration::from_millis(400), socket.next()).await {
                Ok(Frame::State(frame)) if frame["type"] == "said" => vec![frame],
                Ok(Frame::State(frame)) if frame["type"] == "welcome" => {
                    frame["history"].as_array().expect("a list").clone()
                }
                Ok(Frame::State(_) | Frame::Ping) => Vec::new(),
                // Silence, or a connection that broke.
                Ok(Frame::Closed(_) | Frame::Broken) | Err(_) => break,
            };
            for said in said {
                assert_eq!(said["seq"], heard.len() + 1, "without a gap");
                heard.push(said);
            }
        }
    }
    heard
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_are_killed_lose_and_repeat_nothing_that_was_said() {
    let plan = Plan::new().set("message_limit", "off").set("away_timeout", "off");
    let mut pair = plan.start().await;
    let topic = pair.topic("t").await;
    let (people, room) = pair.seated(topic, 3).await;
    let servers = Arc::new(Mutex::new([0, 1].map(|server| pair.client(server).clone())));
    let mut talkers = Vec::new();
    for (number, person) in people.iter().enumerate() {
        let talk = talk(Arc::clone(&servers), person.clone(), number, room.clone());
        talkers.push(tokio::spawn(talk));
    }
    for round in 0..4 {
        let server = round % 2;
        pass(Duration::from_millis(300)).await;
        pair.kill(server).await;
        pass(Duration::from_millis(300)).await;
        pair.start(server).await;
        servers.lock().unwrap_or_else(PoisonError::into_inner)[server] =
            pair.client(server).clone();
    }
    let mut logs = Vec::new();
    for talker in talkers {
        logs.push(within(Duration::from_mins(1), "all is heard", talker).await.expect("a log"));
    }
    let ids: HashSet<String> = logs[0].iter().map(|said| said["id"].to_string()).collect();
    assert_eq!(ids.len(), 3 * LINES);
    for log in &logs {
        assert_eq!(log, &logs[0]);
    }
    pair.sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_whose_log_is_lost_ends_and_never_goes_on_under_a_new_count() {
    let pair = Plan::new().start().await;
    let topic = pair.topic("t").await;
    let mut rooms = Vec::new();
    for _ in 0..2 {
        let (people, room) = pair.seated(topic, 2).await;
        let path = format!("/ws/rooms/{room}");
        let mut ann = pair.at(0, &people[0]).client.socket(&path).await.expect("a socket");
        let mut bob = pair.at(1, &people[1]).client.socket(&path).await.expect("a socket");
        frame_of(&mut bob, "welcome").await;
        ann.say(&say("1", "one")).await;
        assert_eq!(frame_of(&mut bob, "said").await["seq"], 1);
        rooms.push((people, room, [ann, bob]));
    }
    pair.ask("FLUSHALL");
    // In one room somebody says something, in the other nobody does.
    rooms[0].2[1].say(&say("2", "two")).await;
    for (people, room, sockets) in &mut rooms {
        for socket in sockets {
            assert_eq!(frame_of(socket, "closed").await["reason"], "store_lost");
            assert_eq!(closed(socket).await, Frame::Closed(4404));
        }
        for person in people {
            person.becomes("idle").await;
        }
        let ended = format!("SELECT ended_at IS NOT NULL FROM conversations WHERE id = '{room}'");
        assert_eq!(pair.sql(&ended).trim(), "t");
    }
    pair.sound().await;
}

/// A token lives for thirty days.
const LIFETIME_MS: u64 = 30 * 86_400_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_ends_ends_its_connections() {
    let pair = Plan::new().set("away_timeout", "off").start().await;
    let topic = pair.topic("t").await;
    // The key that the servers sign with makes a token that is almost over.
    let key = pair.sql("SELECT number, encode(secret, 'hex') FROM session_keys");
    let (number, secret) = key.trim().split_once('|').expect("a key");
    let digits = |at: usize| u8::from_str_radix(&secret[2 * at..2 * at + 2], 16).expect("hex");
    let secret = std::array::from_fn(digits);
    let sessions = Sessions::new(vec![SessionKey { number: number.parse().expect("one"), secret }]);
    let now = pair.sql("SELECT floor(extract(epoch FROM now()) * 1000)");
    let now: u64 = now.parse().expect("a number");
    let token = sessions.issue(now - LIFETIME_MS + 9_000).token;
    let ann = Person { client: pair.client(0).bearer(&token), token };
    ann.join(topic, 2).await.expect(202);
    let bob = pair.person(1).await;
    bob.join(topic, 2).await;
    let rooms = pair.matched(&[ann.clone(), bob]).await;
    let path = format!("/ws/rooms/{}", rooms[0]);
    let mut socket = ann.client.socket(&path).await.expect("a socket");
    assert_eq!(closed(&mut socket).await, Frame::Closed(4401));
    eventually("the token is refused", async || {
        (ann.client.get("/api/matching").await.status == 401).then_some(())
    })
    .await;
}
