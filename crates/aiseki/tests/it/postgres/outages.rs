use std::time::Duration;

use aiseki::port::Unavailable;
use aiseki::records::{RecordStore, Written};
use aiseki::store::postgres::{MigrateError, PostgresSettings, PostgresStore};
use aiseki_testkit::{Postgres, Proxy, eventually};
use tokio::time::timeout;

use super::bed::{Bed, people, person, reserve};

/// Under the lease of a message about a room, which is five seconds.
const ANSWERED: Duration = Duration::from_millis(4_500);

async fn comes_back(store: &PostgresStore) {
    let deadline = Duration::from_secs(10);
    eventually("it works again", deadline, || async { store.ping().await.is_ok() }).await;
}

#[tokio::test]
async fn a_store_opens_before_its_database_is_there() {
    let mut server = Postgres::without_fsync().unwrap();
    server.stop();
    let store = PostgresStore::open(&PostgresSettings::new(server.url())).unwrap();
    assert_eq!(store.migrate().await, Err(MigrateError::Unavailable(Unavailable)));
    assert_eq!(store.ping().await, Err(Unavailable));
    assert!(!store.available());
    server.start_again().unwrap();
    store.migrate().await.unwrap();
    assert_eq!(store.ping().await, Ok(()));
    assert!(store.available());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_answered_outlives_a_crash_and_the_store_goes_on() {
    let mut server = Postgres::start().unwrap();
    let bed = Bed::on(&server).await;
    let store = std::sync::Arc::new(bed.store());
    for _ in 0..2 {
        let writers: Vec<_> = (0..4_u64)
            .map(|writer| {
                let store = store.clone();
                tokio::spawn(async move {
                    let mut answered = Vec::new();
                    for i in 0.. {
                        let number = (i * 4 + writer) * 2 + 1_000_000;
                        let room = reserve(&[number, number + 1]);
                        match store.write_rooms(vec![room.clone()]).await {
                            Ok(written) => assert!(!matches!(written[0], Written::Refused)),
                            Err(Unavailable) => return (answered, room),
                        }
                        answered.push(room);
                    }
                    unreachable!("the server is stopped")
                })
            })
            .collect();
        let busy = || async { bed.count("SELECT count(*) FROM conversations").await > 40 };
        eventually("rooms are written", Duration::from_secs(10), busy).await;
        server.stop_immediate();
        let mut rooms = Vec::new();
        let mut unanswered = Vec::new();
        for writer in writers {
            let (answered, room) = writer.await.unwrap();
            rooms.extend(answered);
            unanswered.push(room);
        }
        server.start_again().unwrap();
        comes_back(&store).await;
        // What was not answered is repeated, and finds itself written or not.
        rooms.extend(unanswered);
        for batch in rooms.chunks(64) {
            for (room, written) in
                batch.iter().zip(store.write_rooms(batch.to_vec()).await.unwrap())
            {
                let sessions = room.people.iter().map(|one| one.session).collect();
                assert_eq!(written, Written::Live(sessions));
            }
        }
        assert_eq!(
            bed.count("SELECT count(*) FROM conversations").await,
            i64::try_from(rooms.len()).unwrap()
        );
        bed.client().await.batch_execute("TRUNCATE conversations, participants").await.unwrap();
    }
}

#[tokio::test]
async fn a_restart_between_two_calls_costs_at_most_one_of_them() {
    let mut server = Postgres::without_fsync().unwrap();
    let bed = Bed::on(&server).await;
    let store = bed.store();
    // Several connections, all of which the restart ends.
    let asked = (0..6).map(|_| store.ping());
    futures_util::future::join_all(asked).await.into_iter().for_each(|answer| answer.unwrap());
    server.restart().unwrap();
    let failed = store.write_rooms(vec![reserve(&[1, 2])]).await.is_err();
    let answers = [
        store.write_rooms(vec![reserve(&[3, 4])]).await,
        store.write_rooms(vec![reserve(&[5, 6])]).await,
    ];
    assert!(answers.iter().all(Result::is_ok), "{answers:?} after the first one failed: {failed}");
}

#[tokio::test]
async fn a_database_that_can_only_be_read_is_no_database() {
    let server = Postgres::without_fsync().unwrap();
    let bed = Bed::on(&server).await;
    let store = bed.store();
    assert_eq!(store.ping().await, Ok(()));
    let read_only =
        |value: &str| format!("ALTER SYSTEM SET default_transaction_read_only = {value}");
    let client = bed.client().await;
    client.batch_execute(&read_only("on")).await.unwrap();
    client.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    eventually("it is closed", Duration::from_secs(10), || async { store.ping().await.is_err() })
        .await;
    assert_eq!(store.write_rooms(vec![reserve(&[1, 2])]).await, Err(Unavailable));
    // The tables are as they should be, so a server starts, and says that it cannot seat anybody.
    assert_eq!(bed.store().migrate().await, Ok(()));
    client.batch_execute("SET default_transaction_read_only = off").await.unwrap();
    client.batch_execute(&read_only("off")).await.unwrap();
    client.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    comes_back(&store).await;
    assert_eq!(
        store.write_rooms(vec![reserve(&[1, 2])]).await.unwrap(),
        [Written::Live(people(&[1, 2]))]
    );
}

#[tokio::test]
async fn a_lock_that_is_held_for_long_makes_nobody_wait_for_long() {
    let bed = Bed::new().await;
    let store = bed.store();
    let room = reserve(&[1, 2]);
    store.write_rooms(vec![room.clone()]).await.unwrap();
    let mut client = bed.client().await;
    let holder = client.transaction().await.unwrap();
    holder.batch_execute("LOCK TABLE conversations IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let leave = timeout(ANSWERED, store.give_up_seat(person(1), room.room)).await;
    assert_eq!(leave.expect("in time"), Err(Unavailable));
    let write =
        timeout(ANSWERED, store.write_rooms(vec![reserve(&[3, 4]), reserve(&[5, 6])])).await;
    assert_eq!(write.expect("in time"), Err(Unavailable));
    holder.rollback().await.unwrap();
    let seats = store.seats_of(people(&[1, 2, 3])).await.unwrap();
    assert_eq!(seats.len(), 2, "nothing was done later either");
    assert!(store.give_up_seat(person(1), room.room).await.is_ok());
}

#[tokio::test]
async fn a_frozen_server_is_answered_for_and_taken_back() {
    let server = Postgres::without_fsync().unwrap();
    let bed = Bed::on(&server).await;
    let store = bed.store();
    store.ping().await.unwrap();
    server.freeze();
    let room = reserve(&[1, 2]);
    let write = timeout(ANSWERED, store.write_rooms(vec![room.clone()])).await;
    assert_eq!(write.expect("in time"), Err(Unavailable));
    server.thaw();
    comes_back(&store).await;
    // What the frozen server had read, it may do: the repetition finds it done.
    assert_eq!(store.write_rooms(vec![room]).await.unwrap(), [Written::Live(people(&[1, 2]))]);
}

#[tokio::test]
async fn a_way_that_swallows_everything_is_left() {
    let server = Postgres::shared();
    let bed = Bed::on(server).await;
    let proxy = Proxy::to(server.port()).unwrap();
    let url = bed.url.replace(&server.port().to_string(), &proxy.port().to_string());
    let store = PostgresStore::open(&PostgresSettings::new(url)).unwrap();
    let asked = (0..4).map(|_| store.ping());
    futures_util::future::join_all(asked).await.into_iter().for_each(|answer| answer.unwrap());
    proxy.black_hole(true);
    let write = timeout(ANSWERED, store.write_rooms(vec![reserve(&[1, 2])])).await;
    assert_eq!(write.expect("in time"), Err(Unavailable));
    proxy.black_hole(false);
    comes_back(&store).await;
    assert!(store.write_rooms(vec![reserve(&[3, 4])]).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_who_goes_away_leaves_no_connection_in_disorder() {
    let bed = Bed::new().await;
    let settings = PostgresSettings { url: bed.url.clone(), max_connections: 2 };
    let store = PostgresStore::open(&settings).unwrap();
    for i in 0..100_u64 {
        let room = reserve(&[2 * i, 2 * i + 1]);
        store.write_rooms(vec![room.clone()]).await.unwrap();
        let leave = store.give_up_seat(person(2 * i), room.room);
        let _ = timeout(Duration::from_micros(i * 20), leave).await;
        // Whether that was done or not, the next call does it, and it stays done.
        store.give_up_seat(person(2 * i), room.room).await.unwrap();
    }
    assert_eq!(bed.count("SELECT count(*) FROM participants WHERE left_at IS NULL").await, 0);
}
