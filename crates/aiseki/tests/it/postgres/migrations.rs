use aiseki::store::postgres::{MigrateError, PostgresSettings, PostgresStore, STATEMENTS};
use aiseki_testkit::Postgres;

use super::bed::Bed;

#[tokio::test]
async fn the_tables_are_made_once_by_whoever_comes_first() {
    let url = Postgres::shared().fresh_database().unwrap();
    let bed = Bed { url };
    let servers: Vec<_> = (0..8)
        .map(|_| {
            let store = bed.store();
            tokio::spawn(async move { store.migrate().await })
        })
        .collect();
    for server in servers {
        assert_eq!(server.await.unwrap(), Ok(()));
    }
    assert_eq!(bed.store().migrate().await, Ok(()));
    let newest = bed.count("SELECT max(version)::bigint FROM aiseki_migrations").await;
    assert_eq!(bed.count("SELECT count(*) FROM aiseki_migrations").await, newest);
}

#[tokio::test]
async fn tables_of_a_newer_or_another_program_are_refused() {
    let bed = Bed::new().await;
    let client = bed.client().await;
    client
        .batch_execute(
            "INSERT INTO aiseki_migrations (version, name, checksum) VALUES (99, 'later', '')",
        )
        .await
        .unwrap();
    let newer = bed.store().migrate().await.unwrap_err();
    assert!(matches!(newer, MigrateError::Newer { version: 99, .. }), "{newer:?}");
    assert!(newer.to_string().contains("newer") && !newer.to_string().contains('\n'), "{newer}");

    let change = "DELETE FROM aiseki_migrations WHERE version = 99;
        UPDATE aiseki_migrations SET checksum = 'another' WHERE version = 1";
    client.batch_execute(change).await.unwrap();
    let changed = bed.store().migrate().await.unwrap_err();
    assert!(matches!(changed, MigrateError::Changed { version: 1, .. }), "{changed:?}");
}

#[tokio::test]
async fn names_that_are_taken_and_accounts_without_rights_are_told_in_one_line() {
    let url = Postgres::shared().fresh_database().unwrap();
    let bed = Bed { url };
    let client = bed.client().await;
    client.batch_execute("CREATE TABLE topics (mine int)").await.unwrap();
    let taken = bed.store().migrate().await.unwrap_err().to_string();
    assert!(taken.contains("topics") && !taken.contains('\n'), "{taken}");
    // Nothing was done by half.
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";
    assert_eq!(bed.count(tables).await, 1);

    client.batch_execute("DROP TABLE topics; CREATE ROLE nobody_much LOGIN").await.unwrap();
    let url = bed.url.replace("postgres@", "nobody_much@");
    let poor = PostgresStore::open(&PostgresSettings::new(url)).unwrap();
    let refused = poor.migrate().await.unwrap_err().to_string();
    assert!(refused.contains("permission denied"), "{refused}");
}

#[tokio::test]
async fn every_statement_fits_the_tables() {
    let bed = Bed::new().await;
    let client = bed.client().await;
    for (name, sql) in STATEMENTS {
        if let Err(error) = client.prepare(sql).await {
            panic!("{name}: {error:?}");
        }
    }
    let source = include_str!("../../../src/store/postgres/sql.rs");
    let constants =
        source.lines().filter(|line| line.contains("const ") && line.contains(": &str"));
    assert_eq!(constants.count(), STATEMENTS.len(), "a statement is missing from the list");
}
