//! A server in this process, on a free port and in a directory of its own.

use aiseki::app;
use aiseki::config::Config;
use serde_json::json;

use super::{ADMIN_TOKEN, Client, Directory, Metrics, Person, Settings, eventually};

pub(crate) struct Server {
    pub(crate) client: Client,
    config: Config,
    running: app::Server,
    // After the server, so that its files go last.
    directory: Directory,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::with(Settings::new()).await
    }

    pub(crate) async fn with(settings: Settings) -> Self {
        Self::configured(settings, |_| {}).await
    }

    /// With changes that no setting makes.
    pub(crate) async fn configured(settings: Settings, change: impl FnOnce(&mut Config)) -> Self {
        let directory = Directory::new();
        let mut config = settings.data_dir(&directory.data()).config();
        change(&mut config);
        let running = app::Server::start(config.clone()).await.expect("the server starts");
        let client = Client::new(running.address());
        Self { client, config, running, directory }
    }

    /// Ends it and starts another one on the same files.
    pub(crate) async fn restart(self) -> Self {
        let Self { config, running, directory, .. } = self;
        running.stop();
        running.ended().await;
        let running = app::Server::start(config.clone()).await.expect("the server starts again");
        let client = Client::new(running.address());
        Self { client, config, running, directory }
    }

    /// Tells it to end, without waiting for that.
    pub(crate) fn stop(&self) {
        self.running.stop();
    }

    /// Waits until it has ended.
    pub(crate) async fn ended(self) {
        self.running.ended().await;
    }

    pub(crate) fn admin(&self) -> Client {
        self.client.bearer(ADMIN_TOKEN)
    }

    pub(crate) async fn person(&self) -> Person {
        Person::new(&self.client).await
    }

    pub(crate) async fn topic(&self, title: &str) -> i64 {
        let topic = self.admin().post("/admin/topics", &json!({ "title": title })).await;
        topic.expect(201)["id"].as_i64().expect("a number")
    }

    /// Waits until so many long polls, streams and sockets are open.
    pub(crate) async fn subscriptions(&self, n: u32) {
        eventually("connections are open", async || {
            let open = Metrics::of(&self.client).await.value("aiseki_push_subscriptions");
            ((open - f64::from(n)).abs() < 0.5).then_some(())
        })
        .await;
    }

    /// How many wait for the topic now, asked without a sign of life of anybody.
    pub(crate) async fn waiting(&self, topic: i64) -> u64 {
        let queues = self.admin().get("/admin/queues").await.expect(200);
        let queues = queues["queues"].as_array().expect("a list").iter();
        let of_topic = queues.filter(|queue| queue["topic_id"] == topic);
        of_topic.map(|queue| queue["waiting"].as_u64().expect("a number")).sum()
    }

    /// Waits until nobody waits for the topic any more.
    pub(crate) async fn emptied(&self, topic: i64) {
        eventually("nobody waits any more", async || {
            (self.waiting(topic).await == 0).then_some(())
        })
        .await;
    }

    pub(crate) fn data(&self) -> std::path::PathBuf {
        self.directory.data()
    }

    /// `n` people seated together on `topic`, in the order of their seats, and their room.
    pub(crate) async fn seated(&self, topic: i64, n: u8) -> (Vec<Person>, String) {
        let mut people = Vec::new();
        for _ in 1..n {
            let person = self.person().await;
            person.join(topic, n).await.expect(202);
            people.push(person);
        }
        let last = self.person().await;
        let matched = last.join(topic, n).await.expect(200);
        people.push(last);
        (people, matched["room_id"].as_str().expect("a room").to_owned())
    }
}
