use std::time::Duration;

use crate::harness::{Frame, Server, within};

#[tokio::test]
async fn open_long_polls_streams_and_sockets_end_cleanly() {
    let server = Server::start().await;
    let (ann, bob, cem) = (server.person().await, server.person().await, server.person().await);
    let mut polls = Vec::new();
    for person in [&ann, &bob, &cem] {
        person.join(server.topic("own").await, 2).await.expect(202);
        let person = person.clone();
        polls.push(tokio::spawn(async move { person.long_poll(55).await.expect(200) }));
    }
    let mut stream = bob.client.stream("/api/matching/events").await;
    let mut socket = cem.client.socket("/ws/matching").await.ok().unwrap();
    assert_eq!(stream.state().await["status"], "waiting");
    assert_eq!(socket.state().await["status"], "waiting");
    server.subscriptions(5).await;
    server.stop();
    let ends = async {
        for poll in polls {
            assert_eq!(poll.await.unwrap()["status"], "waiting");
        }
        assert_eq!(stream.next().await, None);
        assert_eq!(socket.next().await, Frame::Closed(1001));
    };
    within(Duration::from_secs(5), "clients are told", ends).await;
    within(Duration::from_secs(10), "the server ends", server.ended()).await;
}

#[tokio::test]
async fn a_client_that_never_ends_does_not_keep_the_server() {
    use tokio::io::AsyncWriteExt as _;
    let server = Server::start().await;
    let mut slow = tokio::net::TcpStream::connect(server.client.address).await.unwrap();
    slow.write_all(b"POST /api/session HTTP/1.1\r\nHost: x\r\nContent-").await.unwrap();
    let idle = tokio::net::TcpStream::connect(server.client.address).await.unwrap();
    // Whoever is served after them shows that both were accepted.
    server.client.get("/healthz").await.expect(200);
    server.stop();
    within(Duration::from_secs(10), "the server ends", server.ended()).await;
    drop((slow, idle));
}

#[tokio::test]
async fn everything_is_there_again_after_a_restart() {
    let server = Server::start().await;
    let topic = server.topic("t").await;
    let ann = server.person().await;
    let waiting = ann.join(topic, 3).await.expect(202);
    let (people, room) = server.seated(topic, 2).await;
    let left = server.person().await;
    left.join(topic, 2).await.expect(202);
    left.cancel().await.expect(204);
    let server = server.restart().await;
    let state = ann.at(&server.client).state().await;
    assert_eq!(state, waiting);
    assert_eq!(people[0].at(&server.client).state().await["room_id"], room);
    assert_eq!(left.at(&server.client).state().await["reason"], "left");
    assert_eq!(server.data().join("aiseki.db").metadata().unwrap().len() % 4096, 0);
}
