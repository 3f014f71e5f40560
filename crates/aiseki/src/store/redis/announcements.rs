//! Hearing of changes that any server made.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use aiseki_mq::{Heard, Server, Subscription};

use super::Inner;
use super::words;

/// A pause before the next try to listen.
const PAUSE: Duration = Duration::from_millis(250);

/// Listens for ever.
pub(super) async fn listen(inner: Arc<Inner>, server: Server) {
    let channel = inner.keys.announcements();
    loop {
        match Subscription::new(&server, &channel).await {
            Ok(mut subscription) => {
                // What was said before this moment was not heard here.
                (inner.listeners.missed)();
                while let Heard::Message(text) = subscription.next().await {
                    hear(&inner, &text);
                }
            }
            Err(error) => tracing::debug!(%error, "announcements cannot be heard"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// An announcement: its number, and the sessions that it is about; a plus marks those who were seated.
fn hear(inner: &Inner, text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    let mut words = text.split(' ');
    if let Some(number) = words.next().and_then(|number| number.parse::<u64>().ok()) {
        inner.heard.store(number, Ordering::Release);
    }
    let mut seated = Vec::new();
    for word in words {
        let (session, sits) = match word.strip_prefix('+') {
            Some(session) => (session, true),
            None => (word, false),
        };
        let Ok(session) = words::session(session) else { continue };
        if sits {
            seated.push(session);
        }
        (inner.listeners.changed)(session);
    }
    if !seated.is_empty() {
        (inner.listeners.seated)(&seated);
    }
}
