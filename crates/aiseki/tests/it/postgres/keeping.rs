use std::sync::Arc;

use aiseki::bans::{BanStore as _, BanSubject, Bans};
use aiseki::conversations::ConversationStore as _;
use aiseki::records::RecordStore as _;
use aiseki::topics::{Title, TopicStore as _, Topics};
use aiseki_lobby::TopicId;

use super::bed::{Bed, person, reserve};

fn title(text: &str) -> Title {
    Title::try_from(text.to_owned()).unwrap()
}

#[tokio::test]
async fn topics_are_kept_exactly_and_under_numbers_that_never_return() {
    let bed = Bed::new().await;
    let store = bed.store();
    let cats =
        store.add_topic(title("猫と暮らす\u{301} '; DROP TABLE topics"), true).await.unwrap();
    let dogs = store.add_topic(title("dogs"), false).await.unwrap();
    assert_eq!(store.topics().await.unwrap(), [cats.clone(), dogs.clone()]);
    let changed = store.change_topic(cats.id, None, Some(false)).await.unwrap().unwrap();
    assert_eq!((&changed.title, changed.active), (&cats.title, false));
    let changed = store.change_topic(cats.id, Some(title("cats")), None).await.unwrap().unwrap();
    assert_eq!((changed.title.as_str(), changed.active), ("cats", false));
    assert_eq!(store.topic(cats.id).await.unwrap(), Some(changed));
    assert_eq!(store.change_topic(TopicId(99), None, Some(true)).await.unwrap(), None);
    assert_eq!(store.topic(TopicId(99)).await.unwrap(), None);
    bed.client().await.batch_execute("DELETE FROM topics").await.unwrap();
    assert!(store.add_topic(title("birds"), true).await.unwrap().id > dogs.id);
    // A title that an operator wrote by hand and that is none takes no other topic away.
    let blank = "INSERT INTO topics (title, active) VALUES ('', true)";
    bed.client().await.batch_execute(blank).await.unwrap();
    assert_eq!(store.topics().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_topic_of_another_server_is_looked_up() {
    let bed = Bed::new().await;
    let (one, other) = (Arc::new(bed.store()), Arc::new(bed.store()));
    let one = Topics::load(one).await.unwrap();
    let other = Topics::load(other).await.unwrap();
    let cats = one.add(title("cats"), true).await.unwrap();
    assert_eq!(other.get(cats.id), None);
    assert_eq!(other.look_up(cats.id).await.unwrap(), Some(cats.clone()));
    assert_eq!(other.check(cats.id), Ok(()));
    assert_eq!(other.look_up(TopicId(99)).await.unwrap(), None);
    one.change(cats.id, None, Some(false)).await.unwrap();
    assert_eq!(other.refresh().await, Ok(true));
    assert!(other.check(cats.id).is_err());
    assert_eq!(other.refresh().await, Ok(false));
    assert_eq!(one.refresh().await, Ok(false));
}

#[tokio::test]
async fn bans_of_people_and_networks_are_kept() {
    let bed = Bed::new().await;
    let (store, other) = (Arc::new(bed.store()), Arc::new(bed.store()));
    let bans = Bans::load(store.clone()).await.unwrap();
    let elsewhere = Bans::load(other).await.unwrap();
    let soon = 4_000_000_000_000;
    for (subject, expires_at) in [
        (BanSubject::Session(person(1)), Some(soon)),
        (BanSubject::Network("192.0.2.7/24".parse().unwrap()), None),
        (BanSubject::Network("2001:db8::1/128".parse().unwrap()), Some(soon + 1)),
    ] {
        let ban = bans.add(subject, "for 'reasons'".into(), expires_at).await.unwrap();
        assert_eq!((ban.subject, ban.expires_at), (subject, expires_at));
        assert!(ban.created_at > 1_000_000_000_000);
    }
    // Later than any time that PostgreSQL knows is late enough.
    let late =
        bans.add(BanSubject::Session(person(2)), String::new(), Some(u64::MAX)).await.unwrap();
    assert!(late.expires_at > Some(soon));
    assert_eq!(store.bans().await.unwrap(), bans.in_force(0));
    let address = "192.0.2.200".parse().unwrap();
    assert!(!elsewhere.banned(person(5), address, soon));
    assert_eq!(elsewhere.refresh().await, Ok(true));
    assert!(elsewhere.banned(person(5), address, soon));
    assert_eq!(elsewhere.in_force(0), bans.in_force(0));
    assert_eq!(elsewhere.refresh().await, Ok(false));
    assert_eq!(bans.remove(late.id).await, Ok(true));
    assert_eq!(bans.remove(late.id).await, Ok(false));
    assert_eq!(elsewhere.refresh().await, Ok(true));
    assert!(!elsewhere.banned(person(2), "::1".parse().unwrap(), 0));
}

#[tokio::test]
async fn live_conversations_are_paged_through() {
    let bed = Bed::new().await;
    let store = bed.store();
    let mut rooms: Vec<_> = (0..9).map(|i| reserve(&[2 * i, 2 * i + 1])).collect();
    rooms[4].topic = TopicId(7);
    store.write_rooms(rooms.clone()).await.unwrap();
    store.end_room(rooms[0].room).await.unwrap();
    let page = store.live_conversations(None, Some(rooms[2].room), 3).await.unwrap();
    let ids: Vec<_> = page.iter().map(|one| one.room).collect();
    assert_eq!(ids, [rooms[3].room, rooms[4].room, rooms[5].room]);
    assert!(page.iter().all(|one| one.participants.len() == 2));
    let seven = store.live_conversations(Some(TopicId(7)), None, 3).await.unwrap();
    assert_eq!(seven.len(), 1);
    assert_eq!(store.live_conversations(None, None, 100).await.unwrap().len(), 8);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_start_together_sign_with_the_same_key() {
    let bed = Bed::new().await;
    let servers: Vec<_> = (0..8)
        .map(|_| {
            let store = bed.store();
            tokio::spawn(async move { store.session_keys().await })
        })
        .collect();
    let mut secrets = Vec::new();
    for server in servers {
        let keys = server.await.unwrap().unwrap();
        assert_eq!((keys.len(), keys[0].number), (1, 1));
        secrets.push(keys[0].secret);
    }
    secrets.dedup();
    assert_eq!(secrets.len(), 1);
}
