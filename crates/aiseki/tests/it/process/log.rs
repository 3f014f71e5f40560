use serde_json::json;

use crate::harness::{ADMIN_TOKEN, Directory, Person, Program, Settings};

#[tokio::test]
async fn no_token_is_in_the_log_or_in_an_answer_that_did_not_make_it() {
    for format in ["text", "json"] {
        let directory = Directory::new();
        let settings = Settings::new()
            .data_dir(&directory.data())
            .set("log", "trace")
            .set("log_format", format);
        let program = Program::start(&settings).await;
        let topic = program.topic("t").await;
        let (ann, bob) = (program.person().await, program.person().await);
        let mut answers = Vec::new();
        for person in [&ann, &bob] {
            answers.push(person.join(topic, 2).await);
            answers.extend(everything(person, &program.client.cookie(&person.token)).await);
            let forged = format!("{}x", person.token);
            for client in [program.client.bearer(&forged), program.client.cookie(&forged)] {
                answers.extend(everything(person, &client).await);
            }
        }
        let socket = program
            .client
            .with("sec-websocket-protocol", &format!("aiseki, aiseki.token.{}", ann.token));
        drop(socket.socket("/ws/matching").await);
        let admin = program.admin();
        answers.push(admin.post("/admin/bans", &json!({ "session": ann.token })).await);
        for path in ["/admin/topics", "/admin/bans", "/admin/rooms", "/admin/queues", "/metrics"] {
            answers.push(admin.get(path).await);
        }
        let log = program.terminate().await.join("\n");
        assert!(log.contains("listening on"), "{log}");
        for person in [&ann, &bob] {
            // Neither the token nor the part of it from which its session is derived.
            for part in person.token.split('.').filter(|part| part.len() > 8) {
                assert!(!log.contains(part), "the log shows a part of a token");
                for answer in &answers {
                    assert!(!answer.body.contains(part), "{answer:?}");
                }
            }
        }
        assert!(!log.contains(ADMIN_TOKEN), "the log shows the admin token");
        assert!(answers.iter().all(|answer| !answer.body.contains(ADMIN_TOKEN)));
    }
}

async fn everything(
    person: &Person,
    client: &crate::harness::Client,
) -> Vec<crate::harness::Answer> {
    let person = Person { client: client.clone(), token: person.token.clone() };
    vec![
        person.join(1, 2).await,
        person.join(4711, 9).await,
        person.client.get("/api/matching").await,
        person.client.get(&format!("/api/matching?wait={}", person.token)).await,
        person.cancel().await,
        person.room("0197f3a1-5b2c-7d4e-8f90-a1b2c3d4e5f6").await,
        person.client.call("POST", "/api/matching", Some("{".into())).await,
    ]
}
