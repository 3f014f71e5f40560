//! What operators do, and what it means for the people who wait or sit.

use std::sync::Arc;

use aiseki_lobby::{Millis, RoomId, TopicId};

use crate::bans::{Ban, BanSubject, Bans};
use crate::conversations::ConversationStore;
use crate::matching::LobbyStore;
use crate::port::Unavailable;
use crate::reports::{Report, ReportStore};
use crate::topics::{Title, Topic, Topics};

/// Whoever a report is about is banned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What to remember; `None` for the reason of the report.
    pub reason: Option<String>,
    /// Until when; `None` for ever.
    pub expires_at: Option<Millis>,
}

/// The use cases of operators. Each must be run to its end once it has begun, whoever is listening.
#[derive(Clone)]
pub struct Operators {
    topics: Arc<Topics>,
    bans: Arc<Bans>,
    lobby: Arc<dyn LobbyStore>,
    conversations: Arc<dyn ConversationStore>,
}

impl Operators {
    /// Operators of this store.
    pub fn new(
        topics: Arc<Topics>,
        bans: Arc<Bans>,
        lobby: Arc<dyn LobbyStore>,
        conversations: Arc<dyn ConversationStore>,
    ) -> Self {
        Self { topics, bans, lobby, conversations }
    }

    /// Makes the waiting people agree with the topics and bans, after a start: the server may have
    /// ended between storing a change and acting on it.
    pub async fn reconcile(&self) -> Result<(), Unavailable> {
        for queue in self.lobby.queues().await? {
            if self.topics.check(queue.queue.topic).is_err() {
                self.lobby.close_topic(queue.queue.topic).await?;
            }
        }
        self.lobby.expel_banned(Arc::clone(&self.bans)).await
    }

    /// Changes a topic. Switched off, it loses the people who wait for it.
    pub async fn change_topic(
        &self,
        id: TopicId,
        title: Option<Title>,
        active: Option<bool>,
    ) -> Result<Option<Topic>, Unavailable> {
        let topic = self.topics.change(id, title, active).await?;
        if topic.as_ref().is_some_and(|topic| !topic.active) {
            self.lobby.close_topic(id).await?;
        }
        Ok(topic)
    }

    /// Bans somebody, who is taken out of the queue.
    pub async fn ban(
        &self,
        subject: BanSubject,
        reason: String,
        expires_at: Option<Millis>,
    ) -> Result<Ban, Unavailable> {
        let ban = self.bans.add(subject, reason, expires_at).await?;
        self.lobby.expel_banned(Arc::clone(&self.bans)).await?;
        Ok(ban)
    }

    /// Marks a report as judged, and bans whom it is about if that is the verdict and has not been
    /// done. `None` when there is no report of this number.
    pub async fn judge(
        &self,
        reports: &dyn ReportStore,
        id: i64,
        verdict: Option<Verdict>,
    ) -> Result<Option<Report>, Unavailable> {
        let Some(report) = reports.report(id).await? else { return Ok(None) };
        let ban = match verdict.filter(|_| report.ban.is_none()) {
            Some(Verdict { reason, expires_at }) => {
                let subject = BanSubject::Session(report.about.reported);
                let reason = reason.unwrap_or(report.about.reason);
                Some(self.ban(subject, reason, expires_at).await?.id)
            }
            None => None,
        };
        reports.judge_report(id, ban).await
    }

    /// Ends a room; false when there never was one with this id.
    pub async fn close_room(&self, room: RoomId) -> Result<bool, Unavailable> {
        Ok(self.lobby.close_room(room).await?
            || self.conversations.conversation(room).await?.is_some())
    }
}
