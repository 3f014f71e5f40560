use std::time::Duration;

use aiseki_lobby::simulation::Random;
use aiseki_testkit::Proxy;
use serde_json::json;

use super::{closed, enter, frame_of, say};
use crate::harness::{Client, Frame, Person, Server, Settings, pass, within};

on_both_stores![
    a_seat_given_up_elsewhere_ends_the_connection,
    a_slow_reader_is_told_so_and_catches_up,
    a_half_open_connection_is_found,
    whatever_one_sends_the_others_go_on,
    without_rooms_nobody_is_away,
    a_banned_network_loses_its_seats,
];

async fn a_seat_given_up_elsewhere_ends_the_connection(settings: Settings) {
    let server = Server::with(settings).await;
    let topic = server.topic("t").await;
    let (people, room) = server.seated(topic, 3).await;
    let (mut ann, _) = enter(&people[0], &room, "").await;
    let (mut bob, _) = enter(&people[1], &room, "").await;
    people[0].leave(&room).await.expect(204);
    assert_eq!(frame_of(&mut ann, "closed").await["reason"], "left");
    assert_eq!(closed(&mut ann).await, Frame::Closed(4403));
    assert_eq!(frame_of(&mut bob, "left").await["seat"], 1);
}

/// What is said until the buffers between are full: the kernel's and the server's.
const LINES: usize = 2_500;

async fn a_slow_reader_is_told_so_and_catches_up(settings: Settings) {
    let server = Server::with(settings.set("message_limit", "off")).await;
    let topic = server.topic("t").await;
    let (people, room) = server.seated(topic, 2).await;
    let (mut ann, _) = enter(&people[0], &room, "").await;
    let (mut bob, _) = enter(&people[1], &room, "").await;
    let long = "鮨".repeat(2_000);
    for n in 0..LINES {
        bob.say(&say(&n.to_string(), &long)).await;
        assert_eq!(frame_of(&mut bob, "said").await["seq"], n + 1);
    }
    // She has read nothing of that, and the server has waited for her until it was enough.
    pass(Duration::from_secs(13)).await;
    let mut heard = 0;
    let end = loop {
        match within(Duration::from_secs(20), "a frame", ann.next()).await {
            Frame::State(frame) if frame["type"] == "said" => {
                heard += 1;
                assert_eq!(frame["seq"], heard);
            }
            Frame::State(_) | Frame::Ping => {}
            end => break end,
        }
    };
    assert_eq!(end, Frame::Closed(4408));
    assert!(heard < LINES, "{heard} were read");
    let (mut ann, welcome) = enter(&people[0], &room, &format!("?after={heard}")).await;
    for said in welcome["history"].as_array().expect("a list") {
        heard += 1;
        assert_eq!(said["seq"], heard);
    }
    while heard < LINES {
        heard += 1;
        assert_eq!(frame_of(&mut ann, "said").await["seq"], heard);
    }
}

async fn a_half_open_connection_is_found(settings: Settings) {
    let server = Server::with(settings).await;
    let topic = server.topic("t").await;
    let (people, room) = server.seated(topic, 2).await;
    let (mut bob, _) = enter(&people[1], &room, "").await;
    let wire = Proxy::to(server.client.address().port()).expect("a proxy");
    let ann = people[0].at(&Client::new(([127, 0, 0, 1], wire.port()).into()));
    let (socket, _) = enter(&ann, &room, "").await;
    assert_eq!(frame_of(&mut bob, "here").await["seat"], 1);
    wire.black_hole(true);
    within(Duration::from_secs(30), "the silence is noticed", async {
        while bob.state().await["type"] != "away" {}
    })
    .await;
    drop(socket);
}

async fn a_banned_network_loses_its_seats(settings: Settings) {
    let server = Server::with(settings.set("trusted_proxies", "127.0.0.1")).await;
    let topic = server.topic("t").await;
    let (people, room) = server.seated(topic, 3).await;
    let mut sockets = Vec::new();
    for (person, address) in people.iter().zip(["198.51.100.1", "192.0.2.9", "198.51.100.2"]) {
        let client = person.client.with("x-forwarded-for", address);
        let person = Person { client, token: person.token.clone() };
        sockets.push(enter(&person, &room, "").await.0);
    }
    let ban = json!({ "address": "192.0.2.0/24", "reason": "r" });
    server.admin().post("/admin/bans", &ban).await.expect(201);
    assert_eq!(frame_of(&mut sockets[1], "closed").await["reason"], "banned");
    assert_eq!(closed(&mut sockets[1]).await, Frame::Closed(1008));
    assert_eq!(people[1].state().await["reason"], "banned");
    for other in [0, 2] {
        assert_eq!(frame_of(&mut sockets[other], "left").await["seat"], 2);
        assert_eq!(people[other].state().await["status"], "matched");
    }
}

/// Frames that nobody should send: texts that are no JSON, too much, too deep, binary.
fn rude(random: &mut Random) -> String {
    let valid = [
        r#"{"type":"typing"}"#,
        r#"{"type":"say","id":"i","text":"t"}"#,
        r#"{"type":"say","id":7,"text":["t"]}"#,
        r#"{"type":"say","id":"i","text":"\ud800"}"#,
        r#"{"type":"leaves"}"#,
    ];
    let mut text = random.pick(&valid).to_owned();
    match random.below(5) {
        0 => text = "[".repeat(usize::try_from(random.below(20_000)).unwrap()),
        1 => {
            let at = usize::try_from(random.below(text.len() as u64)).unwrap();
            text.replace_range(at..=at, random.pick(&["\u{0}", "\u{202e}", "}", "\"", "1e999"]));
        }
        2 => text = text.repeat(usize::try_from(random.below(40)).unwrap()),
        3 => text.truncate(usize::try_from(random.below(text.len() as u64)).unwrap()),
        _ => text.insert_str(1, &format!("\"{}\":{{}},", random.below(1 << 40))),
    }
    text
}

async fn whatever_one_sends_the_others_go_on(settings: Settings) {
    let server = Server::with(settings.set("message_limit", "off")).await;
    let topic = server.topic("t").await;
    let (people, room) = server.seated(topic, 3).await;
    let (mut ann, _) = enter(&people[0], &room, "").await;
    let (mut bob, _) = enter(&people[1], &room, "").await;
    let mut random = Random::new(7);
    let (mut closed_by_server, mut sent) = (0, 0);
    while sent < 2_000 {
        let (mut socket, _) = enter(&people[2], &room, "").await;
        // A connection takes some of it, and is then closed.
        for _ in 0..40 {
            let text = rude(&mut random);
            let gone = match random.below(3) {
                0 => !socket.try_send_bytes(text.into_bytes()).await,
                _ => !socket.try_say(&text).await,
            };
            sent += 1;
            if gone {
                break;
            }
        }
        if let Frame::Closed(code) = closed(&mut socket).await {
            assert!([1008, 1009].contains(&code), "{code}");
            closed_by_server += 1;
        }
    }
    assert!(closed_by_server > 20, "{closed_by_server} of them were closed");
    ann.say(&say("still", "here")).await;
    for socket in [&mut ann, &mut bob] {
        loop {
            let said = frame_of(socket, "said").await;
            if said["id"] == "still" {
                break;
            }
            assert_eq!((&said["seat"], &said["text"]), (&json!(3), &json!("t")));
        }
    }
    server.client.get("/healthz").await.expect(200);
}

async fn without_rooms_nobody_is_away(settings: Settings) {
    let settings = settings.set("rooms", "off").set("away_timeout", "300ms");
    let server = Server::with(settings).await;
    let topic = server.topic("t").await;
    let (people, room) = server.seated(topic, 2).await;
    let path = format!("/ws/rooms/{room}");
    let refusal = people[0].client.socket(&path).await.err().expect("a refusal");
    refusal.refused(404, "not_found");
    pass(Duration::from_millis(1_500)).await;
    for person in &people {
        assert_eq!(person.state().await["status"], "matched");
    }
    people[0].leave(&room).await.expect(204);
    assert_eq!(people[0].state().await["reason"], "left");
    assert_eq!(people[1].state().await["reason"], "room_closed");
    let (_, room) = server.seated(topic, 2).await;
    let close = format!("/admin/rooms/{room}/close");
    server.admin().call("POST", &close, None).await.expect(204);
}
