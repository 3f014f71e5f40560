use std::time::Duration;

use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::harness::{Directory, Program, Settings, within};

/// As many half-open connections as a single machine can easily hold against a server.
const HALF_OPEN: usize = 2_000;

#[tokio::test]
async fn slow_senders_and_half_open_connections_keep_nobody_out() {
    // Also this side of the connections needs files.
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).expect("more files");
    let directory = Directory::new();
    let program = Program::start(&Settings::new().data_dir(&directory.data())).await;
    let topic = program.topic("t").await;
    let mut open = Vec::new();
    for n in 0..HALF_OPEN {
        let mut stream = TcpStream::connect(program.client.address).await.unwrap();
        if n % 2 == 0 {
            stream.write_all(b"GET /api/topics HTTP/1.1\r\nHost: x\r\nX-").await.unwrap();
        }
        open.push(stream);
    }
    let seating = async {
        let (ann, bob) = (program.person().await, program.person().await);
        ann.join(topic, 2).await.expect(202);
        bob.join(topic, 2).await.expect(200);
    };
    within(Duration::from_secs(5), "others are seated", seating).await;
    // Each of them is sent away when its time is over, however it drips.
    let mut slow = open.swap_remove(0);
    let mut silent = open.swap_remove(1);
    let drip = async {
        loop {
            tokio::time::sleep(Duration::from_millis(500)).await;
            if slow.write_all(b"a").await.is_err() {
                return;
            }
        }
    };
    let ends = async {
        let mut rest = Vec::new();
        let _ = silent.read_to_end(&mut rest).await;
        drip.await;
    };
    within(Duration::from_secs(30), "slow ones are sent away", ends).await;
    program.terminate().await;
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_and_are_served_when_there_is_room() {
    let directory = Directory::new();
    let settings = Settings::new().data_dir(&directory.data()).set("max_connections", "5");
    let program = Program::start(&settings).await;
    let mut open = Vec::new();
    for _ in 0..5 {
        open.push(TcpStream::connect(program.client.address).await.unwrap());
    }
    let client = program.client.clone();
    let waiting = tokio::spawn(async move { client.get("/healthz").await });
    assert!(!waiting.is_finished());
    drop(open);
    within(Duration::from_secs(5), "there is room", waiting).await.unwrap().expect(200);
}
