use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::Path;
use std::process::Command;

use aiseki::records::RecordStore as _;
use aiseki::store::postgres::{Notice, PostgresSettings, PostgresStore};
use aiseki_testkit::Postgres;

use super::bed::Bed;

fn openssl(folder: &Path, arguments: &str) {
    let done = Command::new("openssl").args(arguments.split(' ')).current_dir(folder).output();
    let done = done.expect("openssl");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// An authority of one's own, and a certificate that it has signed for this server.
fn certify(folder: &Path) {
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    openssl(
        folder,
        &format!("req -x509 {key} -days 2 -keyout ca.key -out ca.crt -subj /CN=authority"),
    );
    openssl(folder, &format!("req {key} -keyout key.pem -out request.pem -subj /CN=database"));
    std::fs::write(folder.join("names"), "subjectAltName=IP:127.0.0.1\n").unwrap();
    let sign = "x509 -req -in request.pem -CA ca.crt -CAkey ca.key -CAcreateserial -days 2";
    openssl(folder, &format!("{sign} -extfile names -out cert.pem"));
    // PostgreSQL takes no key that others could read or have written.
    let account = std::fs::metadata(folder.join("data")).unwrap();
    chown(folder.join("key.pem"), Some(account.uid()), Some(account.gid())).unwrap();
}

#[tokio::test]
async fn an_encrypted_connection_is_made_to_a_server_that_proves_its_name() {
    let server = Postgres::without_fsync().unwrap();
    certify(server.folder());
    let folder = server.folder().display().to_string();
    for setting in [
        format!("ssl_cert_file = '{folder}/cert.pem'"),
        format!("ssl_key_file = '{folder}/key.pem'"),
        "ssl = on".to_owned(),
    ] {
        server.psql(&server.url(), &format!("ALTER SYSTEM SET {setting}")).unwrap();
    }
    server.psql(&server.url(), "SELECT pg_reload_conf()").unwrap();
    let bed = Bed::on(&server).await;
    let open = |options: &str| {
        let url = format!("{}?{options}", bed.url);
        PostgresStore::open(&PostgresSettings::new(url)).unwrap()
    };
    let known = open(&format!("sslmode=verify-full&sslrootcert={folder}/ca.crt"));
    aiseki_testkit::eventually("TLS is on", std::time::Duration::from_secs(10), || async {
        known.ping().await.is_ok()
    })
    .await;
    let mut notices = known.notices();
    assert_eq!(notices.recv().await, Some(Notice::Reconnected));
    let encrypted = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
        WHERE ssl AND application_name = 'aiseki'";
    assert_eq!(bed.count(encrypted).await, 2);
    // No public authority knows this server.
    assert!(open("sslmode=require").ping().await.is_err());
    // It has no certificate for another of its names.
    let url = bed.url.replace("127.0.0.1", "localhost");
    let url = format!("{url}?sslmode=require&sslrootcert={folder}/ca.crt");
    let other = PostgresStore::open(&PostgresSettings::new(url)).unwrap();
    assert!(other.ping().await.is_err());
}

#[tokio::test]
async fn a_server_without_tls_is_not_spoken_to_in_plain_when_it_was_asked_for() {
    let bed = Bed::new().await;
    let url = format!("{}?sslmode=require", bed.url);
    let store = PostgresStore::open(&PostgresSettings::new(url)).unwrap();
    assert!(store.ping().await.is_err());
}
