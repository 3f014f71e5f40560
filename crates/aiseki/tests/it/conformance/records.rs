use aiseki::bans::BanSubject;
use aiseki_lobby::{RoomId, TopicId};

use super::house::{House, person, title};
use super::stores::Place;

suite![
    a_room_is_written_down_before_anybody_is_told,
    live_rooms_come_in_pages_and_by_topic,
    topics_are_kept_exactly,
    bans_are_kept_and_their_numbers_are_never_used_again,
];

async fn a_room_is_written_down_before_anybody_is_told(place: Box<dyn Place>) {
    let house = House::open(place).await;
    let topic = house.topic().await;
    for n in 0..3 {
        house.join(person(n), topic, 3).await;
    }
    let seat = house.seat_of(person(0)).await;
    let written = house.conversation(seat.room).await;
    assert_eq!((written.room, written.topic, written.size), (seat.room, topic, 3));
    assert_eq!(written.ended_at, None);
    // The waiting and the written may have clocks of their own.
    assert!(written.created_at.abs_diff(seat.matched_at) < 5_000, "{written:?} {seat:?}");
    for (n, participant) in (0..).zip(&written.participants) {
        assert_eq!(participant.session, person(n));
        assert_eq!((u64::from(participant.seat), participant.requested), (n + 1, 3));
        assert_eq!((participant.joined_at, participant.left_at), (written.created_at, None));
    }
    let house = house.reopen().await;
    assert_eq!(house.conversation(seat.room).await, written);
    assert_eq!(house.store.conversation(RoomId([1; 16])).await.unwrap(), None);
}

async fn live_rooms_come_in_pages_and_by_topic(place: Box<dyn Place>) {
    let house = House::open(place).await;
    let topics = [house.topic().await, house.topic().await];
    let mut rooms = Vec::new();
    for n in 0..10 {
        let topic = topics[usize::try_from(n % 2).unwrap()];
        house.join(person(n * 2), topic, 2).await;
        house.join(person(n * 2 + 1), topic, 2).await;
        rooms.push(house.seat_of(person(n * 2)).await.room);
    }
    assert!(rooms.is_sorted(), "ids follow each other in the order of time");
    house.vacate(person(0), rooms[0]).await;
    let ids = async |topic, after, limit| {
        let found = house.store.live_conversations(topic, after, limit).await.unwrap();
        found.iter().map(|conversation| conversation.room).collect::<Vec<_>>()
    };
    assert_eq!(ids(None, None, 100).await, rooms[1..]);
    assert_eq!(ids(None, Some(rooms[3]), 2).await, rooms[4..6]);
    assert_eq!(ids(None, Some(rooms[9]), 2).await, []);
    let of_second: Vec<_> = rooms.iter().skip(1).step_by(2).copied().collect();
    assert_eq!(ids(Some(topics[1]), None, 100).await, of_second);
    assert_eq!(ids(Some(TopicId(4711)), None, 100).await, []);
}

async fn topics_are_kept_exactly(place: Box<dyn Place>) {
    let house = House::open(place).await;
    let titles = ["e\u{301}", "\u{e9}", "👩‍👩‍👧", "\u{200f}שלום", "42:3", "..%2F", "'; --"];
    let mut made = Vec::new();
    for text in titles {
        made.push(house.topics.add(title(text), true).await.unwrap());
    }
    let id = made[2].id;
    let changed = house.topics.change(id, Some(title("new")), Some(false)).await.unwrap();
    made[2] = changed.unwrap();
    assert_eq!((made[2].title.as_str(), made[2].active), ("new", false));
    let same = house.topics.change(id, None, None).await.unwrap();
    assert_eq!(same.as_ref(), Some(&made[2]));
    assert_eq!(house.topics.change(TopicId(4711), None, Some(true)).await.unwrap(), None);
    let house = house.reopen().await;
    assert_eq!(house.store.topics().await.unwrap(), made);
    assert!(house.topic().await > made[6].id);
}

async fn bans_are_kept_and_their_numbers_are_never_used_again(place: Box<dyn Place>) {
    let house = House::open(place).await;
    let subjects = [
        BanSubject::Session(person(0)),
        BanSubject::Network("192.0.2.0/24".parse().unwrap()),
        BanSubject::Network("2001:db8::/64".parse().unwrap()),
    ];
    let mut made = Vec::new();
    for subject in subjects {
        let until = house.now() + 1_000_000;
        made.push(house.store.add_ban(subject, "why".into(), Some(until)).await.unwrap());
        assert_eq!(made.last().unwrap().expires_at, Some(until));
    }
    let house = house.reopen().await;
    assert_eq!(house.store.bans().await.unwrap(), made);
    let last = made.pop().unwrap();
    assert!(house.store.remove_ban(last.id).await.unwrap());
    assert!(!house.store.remove_ban(last.id).await.unwrap());
    let house = house.reopen().await;
    assert_eq!(house.store.bans().await.unwrap(), made);
    assert!(house.ban(last.subject).await.id > last.id);
}
