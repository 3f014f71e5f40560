use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use aiseki::bans::{Ban, BanStore, BanSubject, Bans};
use aiseki::conversations::{Conversation, ConversationStore};
use aiseki::matching::{Door, Entered, Join, LobbyStore, NotEntered, QueueLength};
use aiseki::port::Pending;
use aiseki::rate_limit::{AddressGroup, Limited};
use aiseki::reports::{NewReport, Report, ReportStore, TooMany};
use aiseki::rooms::RoomRules;
use aiseki::shared::{Keeper, Recorder, SharedLobby};
use aiseki::store::postgres::{PostgresSettings, PostgresStore};
use aiseki::store::redis::{Listeners, RedisStore, Settings};
use aiseki::topics::{Title, Topic, TopicStore};
use aiseki_lobby::{Millis, Queue, RoomId, SessionId, Sign, State, TopicId, Vacate};
use aiseki_mq::Server;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::stores::{Rules, Store};
use crate::harness::redis_url;

/// One server's share of the shared store, as the product wires it. A join holds its answer for longer
/// than in the product, so that a busy machine does not change what it is.
pub(crate) struct SharedStore {
    lobby: Arc<SharedLobby>,
    records: Arc<PostgresStore>,
    tasks: Mutex<JoinSet<()>>,
}

impl SharedStore {
    pub(crate) async fn open(database_url: &str, namespace: &str, rules: Rules) -> Self {
        let records = PostgresStore::open(&PostgresSettings::new(database_url)).expect("a URL");
        records.migrate().await.expect("the tables");
        let records = Arc::new(records);
        let settings = Settings {
            server: Server::new(&redis_url()).expect("a URL"),
            namespace: namespace.to_owned(),
            policy: rules.policy.clone(),
            rate_limits: rules.limits,
            rooms: RoomRules::default(),
            rematch_after: rules.rematch_after,
            eviction_accepted: false,
            virtual_time: None,
        };
        let lobby = Arc::new(OnceLock::<Arc<SharedLobby>>::new());
        let seated = Arc::clone(&lobby);
        let listeners = Listeners {
            changes: Box::new(|_| {}),
            changed: Box::new(|_| {}),
            seated: Box::new(move |people| seated.get().expect("set at once").seated(people)),
            missed: Box::new(|| {}),
            room: Box::new(|_| {}),
        };
        let waiting = Arc::new(RedisStore::new(settings, listeners).expect("a store"));
        let hold = Duration::from_secs(20);
        let shared = Arc::new(SharedLobby::new(waiting.clone(), records.clone(), hold, None));
        assert!(lobby.set(shared.clone()).is_ok());
        waiting.check().await.expect("a fit Redis");
        waiting.begin().await.expect("Redis answers");
        shared.end_abolished(&rules.policy).await.expect("Redis answers");
        let recorder =
            Recorder::new(waiting.clone(), waiting.clone(), records.clone(), shared.clone());
        let keeper = Arc::new(Keeper::new(
            waiting.clone(),
            records.clone(),
            shared.clone(),
            waiting.tick_every(),
            || u64::MAX,
            || {},
        ));
        keeper.check_seats().await.expect("both answer");
        recorder.feel().await;
        let mut tasks = JoinSet::new();
        tasks.spawn(Arc::clone(&recorder).pulse());
        tasks.spawn(recorder.record(CancellationToken::new()));
        tasks.spawn(Arc::clone(&keeper).keep());
        tasks.spawn(Arc::clone(&keeper).keep_seats());
        tasks.spawn(keeper.keep_endings());
        Self { lobby: shared, records, tasks: Mutex::new(tasks) }
    }
}

impl Store for SharedStore {
    fn close(&self) {
        self.tasks.lock().expect("whole").abort_all();
        self.records.close();
    }
}

impl LobbyStore for SharedStore {
    fn enter(&self, join: Join, door: Arc<dyn Door>) -> Pending<'_, Result<Entered, NotEntered>> {
        LobbyStore::enter(&*self.lobby, join, door)
    }

    fn cancel(&self, session: SessionId) -> Pending<'_, Result<(), State>> {
        self.lobby.cancel(session)
    }

    fn poll(&self, session: SessionId) -> Pending<'_, State> {
        self.lobby.poll(session)
    }

    fn touch(&self, sessions: Vec<SessionId>, sign: Sign) -> Pending<'_, ()> {
        self.lobby.touch(sessions, sign)
    }

    fn vacate(&self, session: SessionId, room: RoomId) -> Pending<'_, Vacate> {
        self.lobby.vacate(session, room)
    }

    fn block(&self, by: SessionId, whom: SessionId) -> Pending<'_, ()> {
        self.lobby.block(by, whom)
    }

    fn close_room(&self, room: RoomId) -> Pending<'_, bool> {
        self.lobby.close_room(room)
    }

    fn close_topic(&self, topic: TopicId) -> Pending<'_, ()> {
        self.lobby.close_topic(topic)
    }

    fn expel_banned(&self, bans: Arc<Bans>) -> Pending<'_, ()> {
        self.lobby.expel_banned(bans)
    }

    fn count_new_session(&self, address: AddressGroup) -> Pending<'_, Result<(), Limited>> {
        self.lobby.count_new_session(address)
    }

    fn lengths(&self) -> Pending<'_, Vec<(Queue, usize)>> {
        self.lobby.lengths()
    }

    fn queues(&self) -> Pending<'_, Vec<QueueLength>> {
        self.lobby.queues()
    }

    fn now(&self) -> Millis {
        self.lobby.now()
    }

    fn available(&self) -> bool {
        self.lobby.available()
    }
}

impl TopicStore for SharedStore {
    fn topics(&self) -> Pending<'_, Vec<Topic>> {
        self.records.topics()
    }

    fn topic(&self, id: TopicId) -> Pending<'_, Option<Topic>> {
        self.records.topic(id)
    }

    fn add_topic(&self, title: Title, active: bool) -> Pending<'_, Topic> {
        self.records.add_topic(title, active)
    }

    fn add_first_topics(&self, titles: Vec<Title>) -> Pending<'_, Vec<Topic>> {
        self.records.add_first_topics(titles)
    }

    fn change_topic(
        &self,
        id: TopicId,
        title: Option<Title>,
        active: Option<bool>,
    ) -> Pending<'_, Option<Topic>> {
        self.records.change_topic(id, title, active)
    }
}

impl BanStore for SharedStore {
    fn bans(&self) -> Pending<'_, Vec<Ban>> {
        self.records.bans()
    }

    fn add_ban(
        &self,
        subject: BanSubject,
        reason: String,
        expires_at: Option<Millis>,
    ) -> Pending<'_, Ban> {
        self.records.add_ban(subject, reason, expires_at)
    }

    fn remove_ban(&self, id: i64) -> Pending<'_, bool> {
        self.records.remove_ban(id)
    }
}

impl ConversationStore for SharedStore {
    fn conversation(&self, room: RoomId) -> Pending<'_, Option<Conversation>> {
        self.records.conversation(room)
    }

    fn live_conversations(
        &self,
        topic: Option<TopicId>,
        after: Option<RoomId>,
        limit: usize,
    ) -> Pending<'_, Vec<Conversation>> {
        self.records.live_conversations(topic, after, limit)
    }
}

impl ReportStore for SharedStore {
    fn add_report(&self, report: NewReport) -> Pending<'_, Result<(), TooMany>> {
        self.records.add_report(report)
    }

    fn reports(&self, before: Option<i64>, limit: usize, open: bool) -> Pending<'_, Vec<Report>> {
        self.records.reports(before, limit, open)
    }

    fn report(&self, id: i64) -> Pending<'_, Option<Report>> {
        self.records.report(id)
    }

    fn judge_report(&self, id: i64, ban: Option<i64>) -> Pending<'_, Option<Report>> {
        self.records.judge_report(id, ban)
    }
}
