use std::sync::Arc;

use aiseki::clock::Stopwatch;
use aiseki::records::RecordStore as _;
use aiseki::store::postgres::STATEMENTS;
use aiseki_testkit::Postgres;

use super::bed::{Bed, reserve};

/// Statements that are made for every room look into an index for each person, also when the tables
/// were empty as they were planned.
#[tokio::test]
async fn rooms_are_written_without_reading_whole_tables() {
    let bed = Bed::new().await;
    let store = bed.store();
    for i in 0..40_u64 {
        let batch = (0..50).map(|j| (i * 50 + j) * 2).map(|n| reserve(&[n, n + 1])).collect();
        store.write_rooms(batch).await.unwrap();
    }
    store.close();
    let scanned = "SELECT coalesce(sum(seq_tup_read), 0)::bigint FROM pg_stat_user_tables
        WHERE relname IN ('conversations', 'participants')";
    // Statistics are written when a connection ends, and at the latest a second later.
    let written = "SELECT coalesce(sum(n_tup_ins), 0)::bigint FROM pg_stat_user_tables
        WHERE relname = 'participants'";
    aiseki_testkit::eventually("statistics", std::time::Duration::from_secs(20), || async {
        bed.count(written).await == 4_000
    })
    .await;
    assert_eq!(bed.count(scanned).await, 0);
}

/// What stands in an index is asked of it, whatever the values: each scan has a condition.
#[tokio::test]
async fn every_statement_has_an_index_to_go_by() {
    let bed = Bed::new().await;
    let client = bed.client().await;
    let settings = "SET enable_seqscan = off; SET enable_bitmapscan = off;
        SET plan_cache_mode = force_generic_plan";
    client.batch_execute(settings).await.unwrap();
    for (name, sql) in STATEMENTS {
        // These read small tables whole, or are no queries.
        if ["TOPICS", "BANS", "SESSION_KEYS", "LOCK_TOPICS"].contains(name) {
            continue;
        }
        client.batch_execute(&format!("PREPARE {name} AS {sql}")).await.unwrap();
        let parameters = (1..9).filter(|i| sql.contains(&format!("${i}"))).count();
        let nulls = match parameters {
            0 => String::new(),
            some => format!("({})", vec!["NULL"; some].join(", ")),
        };
        let explain = format!("EXPLAIN (COSTS OFF) EXECUTE {name} {nulls}");
        let rows = client.query(&explain, &[]).await.unwrap();
        let plan: Vec<&str> = rows.iter().map(|row| row.get(0)).collect();
        let count = |words: &[&str]| {
            plan.iter().filter(|line| words.iter().any(|word| line.contains(word))).count()
        };
        let scans = count(&["Index Scan", "Index Only Scan"]);
        let whole = count(&["Seq Scan"]);
        assert_eq!((whole, count(&["Index Cond"])), (0, scans), "{name}: {plan:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement: it needs an idle machine"]
#[expect(clippy::print_stderr, reason = "its result is a figure")]
async fn rooms_written_in_a_second() {
    let server = Postgres::start().unwrap();
    for (batch, batches, writers) in
        [(256, 40, 1), (256, 40, 4), (16, 200, 1), (16, 200, 4), (1, 400, 4)]
    {
        let bed = Bed::on(&server).await;
        let store = Arc::new(bed.store());
        let work: Vec<Vec<_>> = (0..writers * batches)
            .map(|i| {
                (0..batch).map(|j| (i * batch + j) * 2).map(|n| reserve(&[n, n + 1])).collect()
            })
            .collect();
        let mut parts: Vec<Vec<_>> = (0..writers).map(|_| Vec::new()).collect();
        for (i, each) in work.into_iter().enumerate() {
            let writers = parts.len();
            parts[i % writers].push(each);
        }
        let watch = Stopwatch::start();
        let tasks: Vec<_> = parts
            .into_iter()
            .map(|part| {
                let store = store.clone();
                tokio::spawn(async move {
                    for each in part {
                        store.write_rooms(each).await.unwrap();
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        let seconds = watch.elapsed().as_secs_f64();
        let rooms = f64::from(u32::try_from(writers * batches * batch).unwrap());
        eprintln!("batches of {batch}, {writers} at once: {:.0} rooms/s", rooms / seconds);
    }
}
