use aiseki::conversations::ConversationStore as _;
use aiseki::records::{RecordStore as _, Written};
use aiseki_lobby::TopicId;

use super::bed::{Bed, FORMED_AT, people, person, reserve};

#[tokio::test]
async fn a_batch_of_rooms_is_written_and_read() {
    let bed = Bed::new().await;
    let store = bed.store();
    let rooms = vec![reserve(&[1, 2]), reserve(&[5, 4, 3])];
    let written = store.write_rooms(rooms.clone()).await.unwrap();
    assert_eq!(written, [Written::Live(people(&[1, 2])), Written::Live(people(&[5, 4, 3]))]);

    let read = store.conversation(rooms[1].room).await.unwrap().unwrap();
    assert_eq!((read.topic, read.size, read.ended_at), (TopicId(42), 3, None));
    let seats: Vec<_> = read.participants.iter().map(|one| (one.seat, one.session)).collect();
    assert_eq!(seats, [(1, person(5)), (2, person(4)), (3, person(3))]);
    assert!(read.participants.iter().all(|one| one.requested == 3 && one.left_at.is_none()));
    // By PostgreSQL's clock, and not by that of whoever formed the room.
    assert!(read.created_at > FORMED_AT * 1_000);

    let mut seats = store.seats_of(people(&[9, 4, 1])).await.unwrap();
    seats.sort_by_key(|(session, _)| *session);
    let [(one, _), (four, seat)] = seats[..] else { panic!("{seats:?}") };
    assert_eq!((one, four), (person(1), person(4)));
    assert_eq!((seat.room, seat.topic, seat.size), (rooms[1].room, TopicId(42), 3));
    assert_eq!((seat.requested, seat.matched_at), (3, read.created_at));
}

#[tokio::test]
async fn a_repeated_batch_changes_nothing_and_answers_the_same() {
    let bed = Bed::new().await;
    let rooms = vec![reserve(&[1, 2]), reserve(&[3, 4])];
    let first = bed.store().write_rooms(rooms.clone()).await.unwrap();
    let again = bed.store().write_rooms(rooms.clone()).await.unwrap();
    assert_eq!(first, again);
    // A queue that delivers a message twice may do so within one batch.
    let twice = vec![reserve(&[5, 6]), reserve(&[7, 8])];
    let twice = [twice.clone(), twice].concat();
    let answers = bed.store().write_rooms(twice).await.unwrap();
    let live = |numbers: &[u64]| Written::Live(people(numbers));
    assert_eq!(answers, [live(&[5, 6]), live(&[7, 8]), live(&[5, 6]), live(&[7, 8])]);
    assert_eq!(bed.count("SELECT count(*) FROM participants").await, 8);
    assert_eq!(bed.store().write_rooms(Vec::new()).await, Ok(Vec::new()));
}

#[tokio::test]
async fn a_room_with_somebody_seated_elsewhere_is_not_written() {
    let bed = Bed::new().await;
    let store = bed.store();
    let seated = reserve(&[1, 2]);
    store.write_rooms(vec![seated.clone()]).await.unwrap();
    let batch = vec![reserve(&[3, 4]), reserve(&[2, 5]), reserve(&[6, 7])];
    let answers = store.write_rooms(batch).await.unwrap();
    assert_eq!(answers[0], Written::Live(people(&[3, 4])));
    assert_eq!(answers[2], Written::Live(people(&[6, 7])));
    let Written::Occupied(held) = &answers[1] else { panic!("{answers:?}") };
    let [(who, seat)] = held[..] else { panic!("{held:?}") };
    assert_eq!((who, seat.room), (person(2), seated.room));
    // Whoever sits nowhere may be seated by the next room.
    assert_eq!(store.write_rooms(vec![reserve(&[5, 8])]).await.unwrap().len(), 1);
    assert_eq!(bed.count("SELECT count(*) FROM conversations").await, 4);
}

#[tokio::test]
async fn of_two_rooms_of_a_batch_with_one_person_the_first_is_written() {
    let bed = Bed::new().await;
    let store = bed.store();
    let batch = vec![reserve(&[1, 2]), reserve(&[2, 3]), reserve(&[3, 4])];
    let answers = store.write_rooms(batch.clone()).await.unwrap();
    assert_eq!(answers[0], Written::Live(people(&[1, 2])));
    let Written::Occupied(held) = &answers[1] else { panic!("{answers:?}") };
    assert_eq!(held.len(), 1);
    // The second was not written, so nobody is in the way of the third.
    assert_eq!(answers[2], Written::Live(people(&[3, 4])));

    // When the first cannot be written, the second is.
    let batch = vec![reserve(&[1, 10]), reserve(&[10, 11])];
    let answers = store.write_rooms(batch).await.unwrap();
    assert!(matches!(answers[0], Written::Occupied(_)), "{answers:?}");
    assert_eq!(answers[1], Written::Live(people(&[10, 11])));
}

#[tokio::test]
async fn one_impossible_room_keeps_no_other_from_being_written() {
    let bed = Bed::new().await;
    let client = bed.client().await;
    // An operator's own trigger, a table's rule, and a person who would sit beside themselves.
    let trigger = "
        CREATE FUNCTION no_cats() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN IF new.topic_id = 13 THEN RAISE EXCEPTION 'no cats'; END IF; RETURN new; END $$;
        CREATE TRIGGER no_cats BEFORE INSERT ON conversations
            FOR EACH ROW EXECUTE FUNCTION no_cats()";
    client.batch_execute(trigger).await.unwrap();
    let mut cats = reserve(&[3, 4]);
    cats.topic = TopicId(13);
    let batch =
        vec![reserve(&[1, 2]), cats.clone(), reserve(&[5]), reserve(&[6, 6]), reserve(&[7, 8])];
    let answers = bed.store().write_rooms(batch.clone()).await.unwrap();
    let live = |numbers: &[u64]| Written::Live(people(numbers));
    let refused = Written::Refused;
    let expected =
        [live(&[1, 2]), refused.clone(), refused.clone(), refused.clone(), live(&[7, 8])];
    assert_eq!(answers, expected);
    assert_eq!(bed.store().write_rooms(batch).await.unwrap(), expected);
    assert_eq!(bed.store().write_rooms(vec![cats]).await.unwrap(), [refused]);
    assert_eq!(bed.count("SELECT count(*) FROM conversations").await, 2);
    assert_eq!(bed.store().ping().await, Ok(()));
}

#[tokio::test]
async fn live_seats_are_paged_through_by_their_people() {
    let bed = Bed::new().await;
    let store = bed.store();
    let rooms: Vec<_> = (0..25).map(|i| reserve(&[2 * i, 2 * i + 1])).collect();
    store.write_rooms(rooms.clone()).await.unwrap();
    store.end_room(rooms[3].room).await.unwrap();
    let mut seen = Vec::new();
    loop {
        let page = store.live_seats(seen.last().copied(), 7).await.unwrap();
        if page.is_empty() {
            break;
        }
        assert!(page.len() <= 7);
        seen.extend(page.into_iter().map(|(session, _)| session));
    }
    let mut expected: Vec<_> = (0..50).filter(|i| !(6..8).contains(i)).map(person).collect();
    expected.sort();
    assert_eq!(seen, expected);
    let last = aiseki_lobby::SessionId([0xff; 16]);
    assert_eq!(store.live_seats(Some(last), 7).await, Ok(Vec::new()));
}
