//! What people can choose to talk about.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use aiseki_lobby::TopicId;

use crate::port::{Pending, Unavailable};

/// A title has at most so many characters.
pub const TITLE_CHARACTERS: usize = 200;

/// Something to talk about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    /// Its number, which is never used again.
    pub id: TopicId,
    /// What people read.
    pub title: Title,
    /// Whether people can wait for it.
    pub active: bool,
}

/// A title: 1 to [`TITLE_CHARACTERS`] characters, not all of them white space, none of them a control
/// character. Kept exactly as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Title(String);

/// Why a text is no title. Its `Display` is a sentence for an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTitle {
    /// Nothing, or white space alone.
    #[error("a title has at least one visible character")]
    Blank,
    /// More than [`TITLE_CHARACTERS`].
    #[error("a title has at most 200 characters")]
    TooLong,
    /// Control characters, among them line breaks.
    #[error("a title has no control characters")]
    ControlCharacter,
}

impl Title {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Title {
    type Error = BadTitle;

    fn try_from(text: String) -> Result<Self, BadTitle> {
        if text.trim().is_empty() {
            Err(BadTitle::Blank)
        } else if text.chars().count() > TITLE_CHARACTERS {
            Err(BadTitle::TooLong)
        } else if text.chars().any(char::is_control) {
            Err(BadTitle::ControlCharacter)
        } else {
            Ok(Self(text))
        }
    }
}

/// Where topics are kept.
pub trait TopicStore: Send + Sync {
    /// All topics.
    fn topics(&self) -> Pending<'_, Vec<Topic>>;
    /// The topic with this number.
    fn topic(&self, id: TopicId) -> Pending<'_, Option<Topic>>;
    /// Adds a topic under a new number.
    fn add_topic(&self, title: Title, active: bool) -> Pending<'_, Topic>;
    /// Changes what is given; `None` when there is no such topic.
    fn change_topic(
        &self,
        id: TopicId,
        title: Option<Title>,
        active: Option<bool>,
    ) -> Pending<'_, Option<Topic>>;
}

/// Why nobody can wait for a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicRefusal {
    /// There is none with this number.
    Unknown,
    /// It is switched off.
    Inactive,
}

/// The topics, known on this server without asking the store.
pub struct Topics {
    store: Arc<dyn TopicStore>,
    known: RwLock<Known>,
}

#[derive(Default)]
struct Known {
    topics: BTreeMap<TopicId, Topic>,
    /// How many changes were learned one by one. What was read before one of them may lack it.
    learned: u64,
}

impl Topics {
    /// Reads the topics from their store.
    pub async fn load(store: Arc<dyn TopicStore>) -> Result<Self, Unavailable> {
        let topics = Self { store, known: RwLock::default() };
        topics.refresh().await?;
        Ok(topics)
    }

    /// Reads all topics again, which other servers may have changed, and says whether they have.
    pub async fn refresh(&self) -> Result<bool, Unavailable> {
        loop {
            let learned = self.known().learned;
            let topics = self.store.topics().await?;
            let topics = topics.into_iter().map(|topic| (topic.id, topic)).collect();
            let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
            if known.learned == learned {
                let changed = known.topics != topics;
                known.topics = topics;
                return Ok(changed);
            }
        }
    }

    /// All topics by number.
    pub fn all(&self) -> Vec<Topic> {
        self.known().topics.values().cloned().collect()
    }

    /// The topic with this number.
    pub fn get(&self, id: TopicId) -> Option<Topic> {
        self.known().topics.get(&id).cloned()
    }

    /// The topic with this number; one that is not known here is asked of the store, because another
    /// server may have added it a moment ago.
    pub async fn look_up(&self, id: TopicId) -> Result<Option<Topic>, Unavailable> {
        if let Some(topic) = self.get(id) {
            return Ok(Some(topic));
        }
        let found = self.store.topic(id).await?;
        if let Some(topic) = &found {
            self.learn(topic.clone());
        }
        Ok(found)
    }

    /// Whether people can wait for this topic.
    pub fn check(&self, id: TopicId) -> Result<(), TopicRefusal> {
        match self.known().topics.get(&id) {
            None => Err(TopicRefusal::Unknown),
            Some(topic) if !topic.active => Err(TopicRefusal::Inactive),
            Some(_) => Ok(()),
        }
    }

    /// Adds a topic.
    pub async fn add(&self, title: Title, active: bool) -> Result<Topic, Unavailable> {
        let topic = self.store.add_topic(title, active).await?;
        self.learn(topic.clone());
        Ok(topic)
    }

    /// Changes a topic; `None` when there is none with this number.
    pub async fn change(
        &self,
        id: TopicId,
        title: Option<Title>,
        active: Option<bool>,
    ) -> Result<Option<Topic>, Unavailable> {
        let topic = self.store.change_topic(id, title, active).await?;
        if let Some(topic) = &topic {
            self.learn(topic.clone());
        }
        Ok(topic)
    }

    fn learn(&self, topic: Topic) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.learned += 1;
        known.topics.insert(topic.id, topic);
    }

    fn known(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_kept_exactly_or_refused() {
        for text in
            ["猫と暮らす", "e\u{301}", "\u{e9}", "👩‍👩‍👧", "\u{200f}שלום", "42:3", "..%2F", " a "]
        {
            assert_eq!(Title::try_from(text.to_owned()).unwrap().as_str(), text);
        }
        assert!(Title::try_from("あ".repeat(TITLE_CHARACTERS)).is_ok());
        for (text, error) in [
            ("", BadTitle::Blank),
            (" \u{3000}", BadTitle::Blank),
            ("a\nb", BadTitle::ControlCharacter),
            ("a\0", BadTitle::ControlCharacter),
            ("\u{85}x", BadTitle::ControlCharacter),
        ] {
            assert_eq!(Title::try_from(text.to_owned()), Err(error), "{text:?}");
        }
        let long = Title::try_from("a".repeat(TITLE_CHARACTERS + 1));
        assert_eq!(long, Err(BadTitle::TooLong));
    }
}
