use std::time::Duration;

use rustix::process::Signal;

use crate::harness::{Directory, Frame, Metrics, Program, Settings, eventually, within};

#[tokio::test]
async fn it_ends_in_time_and_well_under_open_connections() {
    for signal in [Signal::TERM, Signal::INT] {
        let directory = Directory::new();
        let settings = Settings::new().data_dir(&directory.data());
        let mut program = Program::start(&settings).await;
        let topic = program.topic("t").await;
        let ann = program.person().await;
        let waiting = ann.join(topic, 2).await.expect(202);
        let mut polls = Vec::new();
        for _ in 0..5 {
            let ann = ann.clone();
            polls.push(tokio::spawn(async move { ann.long_poll(55).await }));
        }
        let mut stream = ann.client.stream("/api/matching/events").await;
        let mut socket = ann.client.socket("/ws/matching").await.ok().unwrap();
        assert_eq!(
            (stream.state().await, socket.state().await),
            (waiting.clone(), waiting.clone())
        );
        eventually("everything is open", async || {
            let open = Metrics::of(&program.client).await.value("aiseki_push_subscriptions");
            (open > 6.5).then_some(())
        })
        .await;
        let idle = tokio::net::TcpStream::connect(program.client.address).await.unwrap();

        program.tell(signal);
        let limit = Duration::from_secs(10);
        let status = within(limit, "it ends", program.end("it ends")).await;
        assert_eq!(status.code(), Some(0));
        for poll in polls {
            assert_eq!(poll.await.unwrap().expect(200)["status"], "waiting");
        }
        assert_eq!(stream.next().await, None);
        assert_eq!(socket.next().await, Frame::Closed(1001));
        drop(idle);
        // A file without a log is left behind, which can be copied as it is.
        let mut files: Vec<_> = std::fs::read_dir(directory.data())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        assert_eq!(files, ["aiseki.db", "aiseki.lock"]);

        let again = Program::start(&settings).await;
        assert_eq!(ann.at(&again.client).state().await, waiting);
    }
}
