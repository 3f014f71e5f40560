use std::time::Duration;

use aiseki::bans::{BanStore as _, BanSubject};
use aiseki::store::postgres::Notice;
use aiseki::topics::{Title, TopicStore as _};
use aiseki_testkit::Postgres;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::timeout;

use super::bed::{Bed, person};

async fn next(notices: &mut UnboundedReceiver<Notice>) -> Notice {
    timeout(Duration::from_secs(10), notices.recv()).await.expect("in time").expect("it goes on")
}

#[tokio::test]
async fn every_change_is_told_to_other_servers() {
    let bed = Bed::new().await;
    let (one, other) = (bed.store(), bed.store());
    let mut notices = other.notices();
    assert_eq!(next(&mut notices).await, Notice::Reconnected);
    let title = Title::try_from("cats".to_owned()).unwrap();
    let cats = one.add_topic(title, true).await.unwrap();
    assert_eq!(next(&mut notices).await, Notice::Topics);
    one.change_topic(cats.id, None, Some(false)).await.unwrap();
    assert_eq!(next(&mut notices).await, Notice::Topics);
    let ban = one.add_ban(BanSubject::Session(person(1)), String::new(), None).await.unwrap();
    assert_eq!(next(&mut notices).await, Notice::Bans);
    one.remove_ban(ban.id).await.unwrap();
    assert_eq!(next(&mut notices).await, Notice::Bans);
    // An operator with SQL is heard as well.
    bed.client().await.batch_execute("UPDATE topics SET active = true").await.unwrap();
    assert_eq!(next(&mut notices).await, Notice::Topics);
}

#[tokio::test]
async fn a_lost_connection_is_made_again_and_said_so() {
    let mut server = Postgres::without_fsync().unwrap();
    let bed = Bed::on(&server).await;
    let store = bed.store();
    let mut notices = store.notices();
    assert_eq!(next(&mut notices).await, Notice::Reconnected);
    server.stop_immediate();
    server.start_again().unwrap();
    assert_eq!(next(&mut notices).await, Notice::Reconnected);
    let title = Title::try_from("cats".to_owned()).unwrap();
    store.add_topic(title, true).await.unwrap();
    assert_eq!(next(&mut notices).await, Notice::Topics);
}
