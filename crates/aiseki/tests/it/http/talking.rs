use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Frame, Person, Server, Settings, Socket, eventually, within};

/// How connections end that nobody closes, and what rude clients get.
mod ends;

on_both_stores![
    two_people_talk_in_one_order_and_a_second_tab_sees_it_too,
    who_may_not_come_in_is_told_so_before_the_socket,
    bad_frames_are_answered_and_then_end_the_socket,
    who_never_comes_loses_the_seat_and_the_room_closes,
    a_ban_removes_at_once_and_an_operator_closes,
    three_people_say_a_hundred_things_a_second_each_in_one_order,
];

/// An open connection to a room, and its welcome.
async fn enter(person: &Person, room: &str, query: &str) -> (Socket, Value) {
    let path = format!("/ws/rooms/{room}{query}");
    let mut socket = person.client.socket(&path).await.ok().unwrap();
    let welcome = frame(&mut socket).await;
    assert_eq!(welcome["type"], "welcome", "{welcome}");
    (socket, welcome)
}

/// The next frame, with pings passed over.
async fn frame(socket: &mut Socket) -> Value {
    within(Duration::from_secs(20), "a frame", socket.state()).await
}

/// The next frame of this type, with others passed over.
async fn frame_of(socket: &mut Socket, kind: &str) -> Value {
    loop {
        let frame = frame(socket).await;
        if frame["type"] == kind {
            return frame;
        }
    }
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

fn say(id: &str, text: &str) -> String {
    json!({ "type": "say", "id": id, "text": text }).to_string()
}

async fn two_people_talk_in_one_order_and_a_second_tab_sees_it_too(settings: Settings) {
    let server = Server::with(settings).await;
    let topic = server.topic("t").await;
    let (people, room) = server.seated(topic, 2).await;
    let (mut ann, welcome) = enter(&people[0], &room, "").await;
    assert_eq!((&welcome["room_id"], &welcome["room_type"]), (&json!(room), &json!(2)));
    assert_eq!((&welcome["me"], &welcome["history"]), (&json!(1), &json!([])));
    let seats = json!([{ "seat": 1, "state": "here" }, { "seat": 2, "state": "away" }]);
    assert_eq!(welcome["seats"], seats);
    let (mut bob, _) = enter(&people[1], &room, "").await;
    assert_eq!(frame(&mut ann).await, json!({ "type": "here", "seat": 2 }));
    let (mut tab, welcome) = enter(&people[0], &room, "").await;
    assert_eq!(welcome["seats"][1]["state"], "here");

    let text = "鮨 👩‍👩‍👧‍👦 e\u{301}\nsecond line\t<b>\"\\";
    ann.say(&say("a1", text)).await;
    let said = frame(&mut ann).await;
    assert_eq!(
        (&said["type"], &said["seq"], &said["seat"]),
        (&json!("said"), &json!(1), &json!(1))
    );
    assert_eq!((&said["text"], &said["id"]), (&json!(text), &json!("a1")));
    assert_eq!(frame(&mut bob).await, said);
    assert_eq!(frame(&mut tab).await, said);
    // A repetition is said once; another sender may use the same id.
    tab.say(&say("a1", "again")).await;
    bob.say(&say("a1", "mine")).await;
    for socket in [&mut ann, &mut bob, &mut tab] {
        let said = frame(socket).await;
        assert_eq!((&said["seq"], &said["seat"]), (&json!(2), &json!(2)), "{said}");
    }
    bob.say(r#"{"type":"typing"}"#).await;
    for socket in [&mut ann, &mut tab] {
        assert_eq!(frame(socket).await, json!({ "type": "typing", "seat": 2 }));
    }
    // One of two tabs closes, and the person is still here; with the other they are away.
    tab.close().await;
    drop(ann);
    assert_eq!(frame(&mut bob).await, json!({ "type": "away", "seat": 1 }));
    let (mut ann, welcome) = enter(&people[0], &room, "?after=1").await;
    assert_eq!(welcome["history"].as_array().unwrap().len(), 1);
    assert_eq!(welcome["history"][0]["seq"], 2);
    assert_eq!(frame(&mut bob).await, json!({ "type": "here", "seat": 1 }));
    ann.say(r#"{"type":"leave"}"#).await;
    for socket in [&mut ann, &mut bob] {
        let end = json!({ "type": "closed", "reason": "left" });
        assert_eq!(frame_of(socket, "closed").await, end);
        assert_eq!(closed(socket).await, Frame::Closed(1000));
    }
    assert_eq!(people[1].state().await["reason"], "room_closed");
    // Whoever comes again is told why there is nothing to come to.
    let mut late = people[1].client.socket(&format!("/ws/rooms/{room}")).await.ok().unwrap();
    assert_eq!(frame(&mut late).await, json!({ "type": "closed", "reason": "left" }));
    assert_eq!(closed(&mut late).await, Frame::Closed(1000));
}

async fn who_may_not_come_in_is_told_so_before_the_socket(settings: Settings) {
    let server = Server::with(settings).await;
    let topic = server.topic("t").await;
    let (people, room) = server.seated(topic, 3).await;
    let path = format!("/ws/rooms/{room}");
    let refused = async |client: &crate::harness::Client, path: &str| {
        client.socket(path).await.err().expect("a refusal")
    };
    refused(&server.client, &path).await.refused(401, "unauthenticated");
    let stranger = server.person().await;
    refused(&stranger.client, &path).await.refused(403, "not_a_member");
    let nowhere = "/ws/rooms/0197f3a1-5b2c-7d4e-8f90-a1b2c3d4e5f6";
    refused(&stranger.client, nowhere).await.refused(404, "not_found");
    refused(&people[0].client, "/ws/rooms/x").await.refused(404, "not_found");
    refused(&people[0].client, &format!("{path}?after=x")).await.refused(400, "invalid_query");
    let foreign = people[0].client.with("origin", "https://elsewhere.example");
    refused(&foreign, &path).await.refused(403, "cross_site");
    people[0].client.get(&path).await.refused(426, "upgrade_required");
    people[0].leave(&room).await.expect(204);
    refused(&people[0].client, &path).await.refused(403, "not_a_member");
    let token = format!("aiseki, aiseki.token.{}", people[1].token);
    let by_protocol = server.client.with("sec-websocket-protocol", &token);
    let mut socket = by_protocol.socket(&path).await.ok().unwrap();
    assert_eq!(frame(&mut socket).await["me"], 2);
}

async fn bad_frames_are_answered_and_then_end_the_socket(settings: Settings) {
    let server = Server::with(settings.set("message_limit", "3/10m")).await;
    let topic = server.topic("t").await;
    let (people, room) = server.seated(topic, 2).await;
    let (mut ann, _) = enter(&people[0], &room, "").await;
    for (text, code) in [
        ("", "invalid_frame"),
        ("[\"typing\"]", "invalid_frame"),
        (r#"{"type":"shout"}"#, "invalid_frame"),
        (r#"{"type":"say","id":"x"}"#, "invalid_frame"),
        (&say("", "x"), "invalid_frame"),
        (&say("x", "a\u{0}"), "invalid_frame"),
        (&say("x", &"鮨".repeat(2001)), "too_long"),
    ] {
        ann.say(text).await;
        let error = frame(&mut ann).await;
        assert_eq!((&error["type"], &error["code"]), (&json!("error"), &json!(code)), "{text}");
    }
    ann.say(&say("long", &"鮨".repeat(2000))).await;
    assert_eq!(frame(&mut ann).await["seq"], 1);
    for _ in 0..20 {
        ann.say("nonsense").await;
    }
    assert_eq!(closed(&mut ann).await, Frame::Closed(1008));
    let (mut ann, _) = enter(&people[0], &room, "").await;
    for i in 0..3 {
        ann.say(&say(&format!("fast{i}"), "x")).await;
    }
    assert_eq!(frame_of(&mut ann, "error").await["code"], "too_fast");
    ann.say(&say("x", &"x".repeat(40_000))).await;
    assert_eq!(closed(&mut ann).await, Frame::Closed(1009));
}

async fn who_never_comes_loses_the_seat_and_the_room_closes(settings: Settings) {
    let server = Server::with(settings.set("away_timeout", "700ms")).await;
    let topic = server.topic("t").await;
    let (people, room) = server.seated(topic, 3).await;
    let (mut ann, welcome) = enter(&people[0], &room, "").await;
    assert!(welcome["seats"][1]["until"].is_string(), "{welcome}");
    let (mut bob, _) = enter(&people[1], &room, "").await;
    assert_eq!(frame(&mut ann).await, json!({ "type": "here", "seat": 2 }));
    assert_eq!(frame(&mut ann).await, json!({ "type": "left", "seat": 3 }));
    assert_eq!(people[2].state().await["reason"], "absent");
    drop(bob);
    let away = frame(&mut ann).await;
    assert_eq!((&away["type"], &away["seat"]), (&json!("away"), &json!(2)));
    assert!(away["until"].is_string());
    let seats = people[0].room(&room).await.expect(200)["seats"].clone();
    assert_eq!((&seats[0]["state"], &seats[1]["state"]), (&json!("here"), &json!("away")));
    // In time, somebody comes back.
    (bob, _) = enter(&people[1], &room, "").await;
    assert_eq!(frame(&mut ann).await["type"], "here");
    drop(bob);
    assert_eq!(frame_of(&mut ann, "closed").await["reason"], "away");
    assert_eq!(closed(&mut ann).await, Frame::Closed(1000));
    assert_eq!(people[0].state().await["reason"], "room_closed");
}

async fn a_ban_removes_at_once_and_an_operator_closes(settings: Settings) {
    let server = Server::with(settings).await;
    let topic = server.topic("t").await;
    let (people, room) = server.seated(topic, 3).await;
    let (mut ann, _) = enter(&people[0], &room, "").await;
    let (mut bob, _) = enter(&people[1], &room, "").await;
    let ban = json!({ "session": people[1].token, "reason": "r" });
    server.admin().post("/admin/bans", &ban).await.expect(201);
    assert_eq!(frame_of(&mut bob, "closed").await["reason"], "banned");
    assert_eq!(closed(&mut bob).await, Frame::Closed(1008));
    assert_eq!(people[1].state().await["reason"], "banned");
    assert_eq!(frame_of(&mut ann, "left").await["seat"], 2);
    let close = format!("/admin/rooms/{room}/close");
    server.admin().call("POST", &close, None).await.expect(204);
    assert_eq!(frame_of(&mut ann, "closed").await["reason"], "closed");
    assert_eq!(closed(&mut ann).await, Frame::Closed(1000));
}

#[tokio::test]
async fn what_was_said_survives_a_restart_and_not_the_room() {
    let server = Server::start().await;
    let topic = server.topic("t").await;
    let (people, room) = server.seated(topic, 2).await;
    let (mut ann, _) = enter(&people[0], &room, "").await;
    for i in 1..=120 {
        ann.say(&say(&format!("{i}"), &format!("whisper {i}"))).await;
        assert_eq!(frame(&mut ann).await["seq"], i);
    }
    server.stop();
    assert_eq!(closed(&mut ann).await, Frame::Closed(1001));
    drop(ann);
    let server = server.restart().await;
    let ann = people[0].at(&server.client);
    let (mut socket, welcome) = enter(&ann, &room, "").await;
    assert_eq!(welcome["history"].as_array().unwrap().len(), 50);
    for seq in 51..=120 {
        assert_eq!(frame(&mut socket).await["seq"], seq);
    }
    // An id is known over a restart, and the count goes on.
    socket.say(&say("7", "again")).await;
    socket.say(&say("new", "new")).await;
    let said = frame(&mut socket).await;
    assert_eq!((&said["seq"], &said["text"]), (&json!(121), &json!("new")));
    ann.leave(&room).await.expect(204);
    assert_eq!(closed(&mut socket).await, Frame::Closed(1000));
    let file = server.data().join("aiseki.db");
    eventually("nothing said is left in the file", async || {
        let rows = messages_in(&file);
        (rows == 0).then_some(())
    })
    .await;
}

fn messages_in(file: &std::path::Path) -> u32 {
    let copy = file.with_extension("copy");
    let _ = std::fs::remove_file(&copy);
    aiseki::app::backup(file.parent().unwrap(), &copy).expect("a copy");
    let bytes = std::fs::read(&copy).expect("the copy");
    u32::try_from(bytes.windows(8).filter(|window| window == b"whisper ").count()).unwrap()
}

async fn three_people_say_a_hundred_things_a_second_each_in_one_order(settings: Settings) {
    let server = Server::with(settings).await;
    let topic = server.topic("t").await;
    let (people, room) = server.seated(topic, 3).await;
    let mut tasks = Vec::new();
    for (n, person) in people.into_iter().enumerate() {
        let room = room.clone();
        tasks.push(tokio::spawn(async move {
            let mut heard: Vec<Value> = Vec::new();
            let mut said = 0;
            // Each of them loses the connection again and again, and repeats what is not heard.
            while heard.len() < 600 {
                let after = heard.last().map_or(0, |said| said["seq"].as_u64().unwrap());
                let (mut socket, welcome) = enter(&person, &room, &format!("?after={after}")).await;
                heard.extend(welcome["history"].as_array().unwrap().iter().cloned());
                for _ in 0..70 {
                    if said < 200 {
                        socket.say(&say(&format!("{n}-{said}"), &format!("{n} {said}"))).await;
                        said += 1;
                    }
                }
                let until = heard.len() + 60;
                while heard.len() < until.min(600) {
                    // Silence means that something was lost with a connection.
                    match tokio::time::timeout(Duration::from_millis(500), socket.state()).await {
                        Ok(frame) if frame["type"] == "said" => heard.push(frame),
                        Ok(_) => {}
                        Err(_) => break,
                    }
                }
                // What was lost with the connection is said again under the same id.
                said = (0..said)
                    .find(|i| !heard.iter().any(|it| it["id"] == format!("{n}-{i}")))
                    .unwrap_or(said);
            }
            heard
        }));
    }
    let mut logs = Vec::new();
    for task in tasks {
        logs.push(within(Duration::from_mins(1), "all is heard", task).await.unwrap());
    }
    for log in &logs {
        let seqs: Vec<u64> = log.iter().map(|said| said["seq"].as_u64().unwrap()).collect();
        assert_eq!(seqs, (1..=600).collect::<Vec<u64>>());
        assert_eq!(log, &logs[0]);
    }
}
