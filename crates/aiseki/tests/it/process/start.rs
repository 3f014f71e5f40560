use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rusqlite::Connection;

use crate::harness::{Directory, Program, Settings};

/// The one line by which the program refuses to start.
async fn refusal(settings: &Settings) -> String {
    let ended = Program::refused(settings).await;
    assert_eq!(ended.code, Some(1), "{:?}", ended.lines);
    // What was logged until then has a time in front of it.
    let lines: Vec<_> = ended.lines.iter().filter(|line| !line.starts_with("20")).collect();
    let [line] = &lines[..] else { panic!("one line is enough: {:?}", ended.lines) };
    let line = line.strip_prefix("aiseki: ").expect("the program's name first");
    let mut clauses: Vec<_> = line.split([':', ';', '(', ')']).map(str::trim).collect();
    clauses.sort_unstable();
    clauses.retain(|clause| !clause.is_empty());
    let all = clauses.len();
    clauses.dedup();
    assert_eq!(clauses.len(), all, "it repeats itself: {line}");
    line.to_owned()
}

/// Everything in a directory but the lock, with its bytes.
fn contents(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut contents: Vec<_> = fs::read_dir(directory)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path())
        .map(|path| {
            (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(&path).unwrap())
        })
        .filter(|(name, _)| name != "aiseki.lock")
        .collect();
    contents.sort();
    contents
}

/// A store of ours that was closed in order.
async fn with_a_store(directory: &Directory) -> Settings {
    let settings = Settings::new().data_dir(&directory.data());
    let program = Program::start(&settings).await;
    program.topic("t").await;
    program.terminate().await;
    settings
}

#[tokio::test]
async fn a_second_process_on_the_same_directory_is_refused() {
    let directory = Directory::new();
    let settings = Settings::new().data_dir(&directory.data());
    let first = Program::start(&settings).await;
    let topic = first.topic("t").await;
    let line = refusal(&settings).await;
    let (path, pid) = (directory.data(), first.pid().as_raw_nonzero());
    let expected = format!(
        "{} is in use by another aiseki (process {pid}): one directory serves one process",
        path.display()
    );
    assert_eq!(line, expected);
    // The first one does not notice, and its successor is let in.
    first.person().await.join(topic, 2).await.expect(202);
    first.kill().await;
    Program::start(&settings).await.terminate().await;
}

#[tokio::test]
async fn what_cannot_be_a_directory_is_refused() {
    let directory = Directory::new();
    let file = directory.path().join("file");
    fs::write(&file, "mine").unwrap();
    for path in [&file, &file.join("below")] {
        let line = refusal(&Settings::new().data_dir(path)).await;
        let start = format!("{} cannot be used as data directory: ", path.display());
        assert!(line.starts_with(&start), "{line}");
    }
    assert_eq!(fs::read(&file).unwrap(), b"mine");
    // Nobody, root included, can write here.
    let line = refusal(&Settings::new().data_dir(Path::new("/proc/aiseki"))).await;
    assert!(line.starts_with("/proc/aiseki cannot be used as data directory: "), "{line}");
}

#[tokio::test]
async fn the_files_are_nobody_elses_to_read() {
    let directory = Directory::new();
    with_a_store(&directory).await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory.data()), 0o700);
    assert_eq!(mode(&directory.data().join("aiseki.db")), 0o600);
    assert_eq!(mode(&directory.data().join("aiseki.lock")), 0o600);
}

#[tokio::test]
async fn a_foreign_file_is_refused_and_left_alone() {
    let directory = Directory::new();
    let data = directory.data();
    fs::create_dir(&data).unwrap();
    let file = data.join("aiseki.db");
    let foreign = Connection::open(&file).unwrap();
    foreign.execute_batch("CREATE TABLE mine (x); INSERT INTO mine VALUES (1)").unwrap();
    foreign.close().unwrap();
    let settings = Settings::new().data_dir(&data);
    let before = contents(&data);
    let line = refusal(&settings).await;
    let expected =
        format!("{} is not a store of aiseki; choose another --data-dir", file.display());
    assert_eq!(line, expected);
    assert_eq!(contents(&data), before);

    for garbage in [&b"not a database at all, but a text of some length"[..], &[0xff; 10_000]] {
        fs::write(&file, garbage).unwrap();
        let line = refusal(&settings).await;
        assert!(line.starts_with(&format!("{} is damaged (", file.display())), "{line}");
        assert_eq!(contents(&data), [("aiseki.db".to_owned(), garbage.to_vec())]);
    }
}

#[tokio::test]
async fn a_truncated_file_is_refused_and_left_alone() {
    let directory = Directory::new();
    let settings = with_a_store(&directory).await;
    let file = directory.data().join("aiseki.db");
    let whole = fs::read(&file).unwrap();
    for length in [whole.len() - 4096, whole.len() - 1000, 4096, 1000, 100, 99] {
        fs::write(&file, &whole[..length]).unwrap();
        let line = refusal(&settings).await;
        assert!(line.starts_with(&format!("{} is damaged (", file.display())), "{length}: {line}");
        let left = contents(&directory.data());
        assert!(left == [("aiseki.db".to_owned(), whole[..length].to_vec())], "{length}");
    }
    fs::write(&file, &whole).unwrap();
    let program = Program::start(&settings).await;
    let topics = program.client.get("/api/topics").await.expect(200);
    assert_eq!(topics["topics"][0]["title"], "t");
}

#[tokio::test]
async fn a_file_of_a_newer_version_is_refused_and_left_alone() {
    let directory = Directory::new();
    let settings = with_a_store(&directory).await;
    let file = directory.data().join("aiseki.db");
    let connection = Connection::open(&file).unwrap();
    connection.pragma_update(None, "user_version", 4711).unwrap();
    connection.close().unwrap();
    let before = contents(&directory.data());
    let line = refusal(&settings).await;
    let start = format!("{} was written by a newer aiseki (schema 4711, ", file.display());
    assert!(line.starts_with(&start), "{line}");
    assert_eq!(contents(&directory.data()), before);
}

#[tokio::test]
async fn an_empty_store_gets_demonstration_topics_once_and_the_log_says_so() {
    let directory = Directory::new();
    let settings = Settings::new().unset("demo").data_dir(&directory.data());
    let program = Program::start(&settings).await;
    let topics = program.client.get("/api/topics").await.expect(200);
    assert_eq!(topics["topics"].as_array().unwrap().len(), 6);
    let log = program.terminate().await;
    assert!(log.iter().any(|line| line.contains("demonstration topics were added")), "{log:?}");
    let program = Program::start(&settings).await;
    assert_eq!(program.client.get("/api/topics").await.expect(200), topics);
    let log = program.terminate().await;
    assert!(!log.iter().any(|line| line.contains("demonstration")), "{log:?}");
}

#[tokio::test]
async fn a_port_that_is_taken_is_named() {
    let directory = Directory::new();
    let first = Program::start(&Settings::new().data_dir(&directory.data())).await;
    let address = first.client.address.to_string();
    let settings = Settings::new().set("listen", &address).data_dir(&directory.path().join("b"));
    let line = refusal(&settings).await;
    assert!(line.starts_with(&format!("cannot listen on {address}: ")), "{line}");
}
