//! The servers and the proxy do what the other crates' tests rely on.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

use aiseki_testkit::{
    Cluster, Flavour, Postgres, Proxy, Redis, Scratch, Warden, eventually_blocking,
};

#[test]
fn a_server_answers_and_ends_with_its_owner() -> anyhow::Result<()> {
    let redis = Redis::start()?;
    assert_eq!(redis.command("PING")?, "+PONG");
    let port = redis.port();
    let folder = redis.folder().to_owned();
    drop(redis);
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    assert!(!folder.exists());
    Ok(())
}

#[test]
fn a_server_and_its_folder_go_when_the_run_is_killed() -> anyhow::Result<()> {
    let scratch = Scratch::new("killed")?;
    let mut warden = Warden::start("sleep".as_ref(), &["600".to_owned()], scratch.path())?;
    let process = PathBuf::from(format!("/proc/{}", warden.server_id()));
    assert!(process.exists());
    warden.abandon();
    assert!(!process.exists());
    assert!(!scratch.path().exists());
    Ok(())
}

#[test]
fn a_killed_server_boots_again_with_its_files() -> anyhow::Result<()> {
    let mut redis = Redis::with_arguments(&["--appendonly", "yes", "--appendfsync", "always"])?;
    redis.command("SET kept 1")?;
    redis.kill();
    assert!(redis.command("PING").is_err());
    redis.boot()?;
    assert_eq!(redis.command("GET kept")?, "1");
    Ok(())
}

#[test]
fn the_proxy_loses_a_reply_but_not_the_request() -> anyhow::Result<()> {
    let redis = Redis::start()?;
    let proxy = Proxy::to(redis.port())?;
    proxy.lose_reply_to(b"INCR");
    let mut client = TcpStream::connect(("127.0.0.1", proxy.port()))?;
    client.write_all(b"INCR counter\r\n")?;
    let mut answer = Vec::new();
    client.read_to_end(&mut answer)?;
    assert!(answer.is_empty());
    assert_eq!(proxy.lost_replies(), 1);
    assert_eq!(redis.command("GET counter")?, "1");
    Ok(())
}

#[test]
fn the_proxy_cuts_and_swallows() -> anyhow::Result<()> {
    let redis = Redis::start()?;
    let proxy = Proxy::to(redis.port())?;
    let mut client = TcpStream::connect(("127.0.0.1", proxy.port()))?;
    client.write_all(b"PING\r\n")?;
    let mut pong = [0; 7];
    client.read_exact(&mut pong)?;
    proxy.black_hole(true);
    client.set_read_timeout(Some(Duration::from_millis(50)))?;
    client.write_all(b"PING\r\n")?;
    assert!(client.read_exact(&mut pong).is_err());
    assert_eq!(proxy.cut(), 1);
    client.set_read_timeout(None)?;
    assert_eq!(client.read(&mut pong)?, 0);
    Ok(())
}

#[test]
fn three_nodes_become_one_cluster() -> anyhow::Result<()> {
    let cluster = Cluster::start(&Flavour::Redis)?;
    let owned = |node: &Redis| node.command("CLUSTER INFO").unwrap_or_default();
    assert!(eventually_blocking(Duration::from_secs(5), || {
        cluster.nodes().iter().all(|node| owned(node).contains("cluster_slots_ok:16384"))
    }));
    Ok(())
}

#[test]
fn a_postgres_keeps_what_was_committed_when_it_crashes() -> anyhow::Result<()> {
    let mut postgres = Postgres::start()?;
    let url = postgres.fresh_database()?;
    postgres.psql(&url, "CREATE TABLE kept AS SELECT 42 AS number")?;
    postgres.stop_immediate();
    assert!(TcpStream::connect(("127.0.0.1", postgres.port())).is_err());
    assert!(postgres.psql(&url, "SELECT 1").is_err());
    postgres.start_again()?;
    assert_eq!(postgres.psql(&url, "SELECT number FROM kept")?, "42");
    postgres.restart()?;
    assert_eq!(postgres.psql(&url, "SELECT number FROM kept")?, "42");
    Ok(())
}

#[test]
fn a_frozen_postgres_answers_nothing_until_it_is_thawed() -> anyhow::Result<()> {
    let postgres = Postgres::without_fsync()?;
    let folder = postgres.folder().to_owned();
    postgres.freeze();
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| postgres.psql(&postgres.url(), "SELECT 1"));
        assert!(!eventually_blocking(Duration::from_millis(300), || asked.is_finished()));
        postgres.thaw();
        assert_eq!(asked.join().expect("no panic")?, "1");
        anyhow::Ok(())
    })?;
    drop(postgres);
    assert!(!folder.exists());
    Ok(())
}
