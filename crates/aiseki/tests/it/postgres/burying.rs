use std::time::Duration;

use aiseki::conversations::ConversationStore as _;
use aiseki::records::{RecordStore as _, Written};
use aiseki_testkit::eventually;

use super::bed::{Bed, people, reserve};

/// How many statements of ours wait for a lock.
const WAITING: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE application_name = 'aiseki' AND wait_event_type = 'Lock' AND datname = current_database()";

#[tokio::test]
async fn a_buried_room_is_never_written() {
    let bed = Bed::new().await;
    let store = bed.store();
    let room = reserve(&[1, 2]);
    let buried = store.bury_rooms(vec![room.clone()]).await.unwrap();
    assert_eq!(buried, [Written::Buried]);
    assert_eq!(store.write_rooms(vec![room.clone()]).await.unwrap(), [Written::Buried]);
    assert_eq!(store.bury_rooms(vec![room.clone()]).await.unwrap(), [Written::Buried]);
    let read = store.conversation(room.room).await.unwrap().unwrap();
    assert!(read.ended_at.is_some() && read.participants.is_empty(), "{read:?}");
    assert!(store.lately_ended(60_000).await.unwrap().is_empty());
    assert_eq!(
        store.write_rooms(vec![reserve(&[2, 1])]).await.unwrap(),
        [Written::Live(people(&[2, 1]))]
    );
}

#[tokio::test]
async fn a_room_that_was_written_is_left_as_it_is() {
    let bed = Bed::new().await;
    let store = bed.store();
    let (live, ended) = (reserve(&[1, 2]), reserve(&[3, 4]));
    store.write_rooms(vec![live.clone(), ended.clone()]).await.unwrap();
    store.end_room(ended.room).await.unwrap();
    let rooms = vec![live, ended, reserve(&[5, 6])];
    let answers = [Written::Live(people(&[1, 2])), Written::Ended, Written::Buried];
    assert_eq!(store.bury_rooms(rooms.clone()).await.unwrap(), answers);
    assert_eq!(store.write_rooms(rooms).await.unwrap(), answers);
}

/// Somebody's transaction holds the id of the room, and both sides wait for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_slow_write_and_a_burial_the_first_one_counts() {
    for written_first in [true, false] {
        let bed = Bed::new().await;
        let room = reserve(&[1, 2]);
        let mut client = bed.client().await;
        let holder = client.transaction().await.unwrap();
        let id = uuid::Uuid::from_bytes(room.room.0);
        let insert = "INSERT INTO conversations (id, topic_id, size, created_at)
            VALUES ($1, 42, 2, now())";
        holder.execute(insert, &[&id]).await.unwrap();

        let (writer, burier) = (bed.store(), bed.store());
        let (one, other) = (room.clone(), room.clone());
        let write = async move { writer.write_rooms(vec![one]).await };
        let bury = async move { burier.bury_rooms(vec![other]).await };
        let (write, bury) = if written_first {
            let write = tokio::spawn(write);
            wait_for(&bed, 1).await;
            (write, tokio::spawn(bury))
        } else {
            let bury = tokio::spawn(bury);
            wait_for(&bed, 1).await;
            (tokio::spawn(write), bury)
        };
        wait_for(&bed, 2).await;
        holder.rollback().await.unwrap();
        let (write, bury) = (write.await.unwrap().unwrap(), bury.await.unwrap().unwrap());
        assert_eq!(write, bury, "both are told the same");
        let people_there = bed.count("SELECT count(*) FROM participants").await;
        match &write[..] {
            [Written::Live(live)] => assert_eq!((live, people_there), (&people(&[1, 2]), 2)),
            [Written::Buried] => assert_eq!(people_there, 0),
            other => panic!("{other:?}"),
        }
    }
}

async fn wait_for(bed: &Bed, waiting: i64) {
    let deadline = Duration::from_secs(2);
    eventually("they wait", deadline, || async { bed.count(WAITING).await >= waiting }).await;
}

/// A write whose commit is slow: the burial waits for it, and finds the room live.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burial_waits_for_a_write_that_is_under_way() {
    let bed = Bed::new().await;
    let room = reserve(&[1, 2]);
    let mut client = bed.client().await;
    let writing = client.transaction().await.unwrap();
    let id = uuid::Uuid::from_bytes(room.room.0);
    let sessions: Vec<_> =
        people(&[1, 2]).iter().map(|session| uuid::Uuid::from_bytes(session.0)).collect();
    let insert = "WITH room AS (INSERT INTO conversations VALUES ($1, 42, 2, now(), NULL))
        INSERT INTO participants SELECT $1, session, seat, 2, now()
        FROM unnest($2::uuid[]) WITH ORDINALITY AS person (session, seat)";
    writing.execute(insert, &[&id, &sessions]).await.unwrap();
    let store = bed.store();
    let bury = tokio::spawn(async move { store.bury_rooms(vec![room]).await });
    wait_for(&bed, 1).await;
    writing.commit().await.unwrap();
    assert_eq!(bury.await.unwrap().unwrap(), [Written::Live(people(&[1, 2]))]);
}
