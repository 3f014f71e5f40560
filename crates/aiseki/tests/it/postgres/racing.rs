use std::sync::Arc;

use aiseki::records::{RecordStore as _, Written};

use super::bed::{Bed, reserve};

/// Two servers write batches in which the same few people appear again and again, while others leave.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn however_servers_race_nobody_holds_two_seats() {
    const BATCHES: u64 = 250;
    const ROOMS: u64 = 8;
    const PEOPLE: u64 = 60;
    let bed = Bed::new().await;
    let mut servers = Vec::new();
    for server in 0..4_u64 {
        let store = Arc::new(bed.store());
        servers.push(tokio::spawn(async move {
            let mut seed = server + 1;
            let mut someone = move || {
                seed = seed
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (seed >> 33) % PEOPLE
            };
            let (mut live, mut occupied) = (0, 0);
            for _ in 0..BATCHES {
                let mut batch = Vec::new();
                while batch.len() < usize::try_from(ROOMS).unwrap() {
                    let (one, other) = (someone(), someone());
                    if one != other {
                        batch.push(reserve(&[one, other]));
                    }
                }
                let answers =
                    store.write_rooms(batch.clone()).await.expect("no outage, no deadlock");
                for (room, answer) in batch.iter().zip(answers) {
                    match answer {
                        Written::Live(people) => {
                            live += 1;
                            assert_eq!(people.len(), 2);
                            store.give_up_seat(people[0], room.room).await.expect("no outage");
                        }
                        Written::Occupied(held) => {
                            occupied += 1;
                            assert!(held.iter().all(|(_, seat)| seat.room != room.room));
                        }
                        other => panic!("{other:?}"),
                    }
                }
            }
            (live, occupied)
        }));
    }
    let watch = bed.client().await;
    let twice = "SELECT count(*) FROM (SELECT session_id FROM participants WHERE left_at IS NULL
        GROUP BY session_id HAVING count(*) > 1) AS twice";
    let (mut live, mut occupied) = (0, 0);
    for server in servers {
        while !server.is_finished() {
            let twice: i64 = watch.query_one(twice, &[]).await.unwrap().get(0);
            assert_eq!(twice, 0);
            tokio::task::yield_now().await;
        }
        let (more_live, more_occupied) = server.await.unwrap();
        live += more_live;
        occupied += more_occupied;
    }
    assert!(live > 1_000 && occupied > 100, "{live} live and {occupied} occupied are no race");
    assert_eq!(bed.count("SELECT count(*) FROM participants WHERE left_at IS NULL").await, 0);
    assert_eq!(bed.count("SELECT count(*) FROM conversations WHERE ended_at IS NULL").await, 0);
    assert_eq!(bed.count("SELECT count(*) FROM conversations").await, live);
    assert_eq!(bed.count("SELECT count(*) FROM participants").await, 2 * live);
}
