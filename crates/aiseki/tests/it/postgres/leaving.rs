use aiseki::conversations::ConversationStore as _;
use aiseki::records::{Departure, RecordStore as _, Written};
use aiseki_lobby::{RoomId, Vacate};

use super::bed::{Bed, people, person, reserve};

#[tokio::test]
async fn a_room_of_three_goes_on_with_two_and_ends_with_one() {
    let bed = Bed::new().await;
    let store = bed.store();
    let room = reserve(&[1, 2, 3]);
    store.write_rooms(vec![room.clone()]).await.unwrap();
    let room = room.room;
    let left = store.give_up_seat(person(2), room).await.unwrap();
    let departure =
        |vacate, ended_for| Departure { vacate, ended_for, everybody: people(&[1, 2, 3]) };
    assert_eq!(left, departure(Vacate::Left, Vec::new()));
    assert!(store.lately_ended(60_000).await.unwrap().is_empty());
    // The same call again, and one for somebody who never sat there.
    for stranger in [2, 9] {
        let left = store.give_up_seat(person(stranger), room).await.unwrap();
        assert_eq!(left, departure(Vacate::NotSeated, Vec::new()));
    }
    let left = store.give_up_seat(person(1), room).await.unwrap();
    assert_eq!(left, departure(Vacate::Left, people(&[3])));
    // It has ended, and who was there is told to whoever repeats it; of no room, nobody.
    let left = store.give_up_seat(person(1), room).await.unwrap();
    assert_eq!(left, departure(Vacate::NotSeated, Vec::new()));
    let left = store.give_up_seat(person(1), RoomId([7; 16])).await.unwrap();
    assert_eq!((left.vacate, left.everybody), (Vacate::NotSeated, Vec::new()));

    let read = store.conversation(room).await.unwrap().unwrap();
    assert!(read.ended_at.is_some() && read.size == 3);
    assert!(read.participants.iter().all(|one| one.left_at.is_some()));
    let ended = store.lately_ended(60_000).await.unwrap();
    let flags = vec![(person(1), true), (person(2), true), (person(3), false)];
    assert_eq!(ended, [(room, flags)]);
    assert!(store.live_seats(None, 10).await.unwrap().is_empty());
    assert!(store.live_conversations(None, None, 10).await.unwrap().is_empty());
    assert_eq!(
        store.write_rooms(vec![reserve(&[1, 2, 3])]).await.unwrap(),
        [Written::Live(people(&[1, 2, 3]))]
    );
}

#[tokio::test]
async fn a_closed_room_ends_for_everybody_once() {
    let bed = Bed::new().await;
    let store = bed.store();
    let room = reserve(&[1, 2, 3]);
    store.write_rooms(vec![room.clone()]).await.unwrap();
    store.give_up_seat(person(1), room.room).await.unwrap();
    assert_eq!(store.end_room(room.room).await.unwrap(), Some(people(&[2, 3])));
    assert_eq!(store.end_room(room.room).await.unwrap(), None);
    assert_eq!(store.end_room(RoomId([7; 16])).await.unwrap(), None);
    let ended = store.lately_ended(60_000).await.unwrap();
    let flags = vec![(person(1), true), (person(2), false), (person(3), false)];
    assert_eq!(ended, [(room.room, flags)]);
    let long_ago = "UPDATE conversations SET ended_at = ended_at - interval '2 minutes'";
    bed.client().await.batch_execute(long_ago).await.unwrap();
    assert!(store.lately_ended(60_000).await.unwrap().is_empty());
    assert_eq!(store.lately_ended(u64::MAX).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_people_who_leave_at_once_exactly_one_ends_the_room() {
    let bed = Bed::new().await;
    let (one, other) = (bed.store(), bed.store());
    for round in 0..200 {
        let pair = reserve(&[2 * round, 2 * round + 1]);
        one.write_rooms(vec![pair.clone()]).await.unwrap();
        let (first, second) = tokio::join!(
            one.give_up_seat(person(2 * round), pair.room),
            other.give_up_seat(person(2 * round + 1), pair.room),
        );
        let (first, second) = (first.unwrap(), second.unwrap());
        // The second to come finds that the room has ended and the seat is gone.
        let left = [&first, &second].iter().filter(|d| d.vacate == Vacate::Left).count();
        assert_eq!(left, 1, "{first:?} {second:?}");
        assert_eq!(first.ended_for.len() + second.ended_for.len(), 1);
    }
    assert_eq!(bed.count("SELECT count(*) FROM participants WHERE left_at IS NULL").await, 0);
    assert_eq!(bed.count("SELECT count(*) FROM conversations WHERE ended_at IS NULL").await, 0);
}
