//! A connection of its own on which PostgreSQL says what others have changed.

use std::time::Duration;

use futures_util::future::poll_fn;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{sleep, timeout};
use tokio_postgres::AsyncMessage;

use super::link::{CREATE_TIMEOUT, Cause, DEADLINE};
use super::outage::Outage;
use super::url::Address;

/// The channel, which the triggers of the schema write to.
const LISTEN: &str = "LISTEN aiseki";
/// Between two attempts to connect, first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// A connection on which nothing is said may be dead without a sign: it is asked so often.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// What there is to be read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A topic was added or changed.
    Topics,
    /// A ban was added or removed.
    Bans,
    /// A connection was made: whatever changed before it was not told.
    Reconnected,
}

pub(super) fn listen(address: Address) -> UnboundedReceiver<Notice> {
    let (notices, receiver) = unbounded_channel();
    tokio::spawn(async move {
        tokio::select! {
            () = notices.closed() => {}
            () = keep_listening(&address, &notices) => {}
        }
    });
    receiver
}

async fn keep_listening(address: &Address, notices: &UnboundedSender<Notice>) {
    let outage = Outage::new("database's channel for notices");
    let mut pause = FIRST_PAUSE;
    loop {
        let mut connected = false;
        let cause = session(address, notices, || {
            connected = true;
            outage.succeeded();
        })
        .await;
        outage.failed("listening", &cause);
        pause = if connected { FIRST_PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
        sleep(pause).await;
    }
}

/// One connection, until it fails.
async fn session(
    address: &Address,
    notices: &UnboundedSender<Notice>,
    connected: impl FnOnce(),
) -> Cause {
    let (client, mut connection) = match timeout(CREATE_TIMEOUT, address.connect()).await {
        Ok(Ok(pair)) => pair,
        Ok(Err(error)) => return error.into(),
        Err(_) => return Cause::Overdue,
    };
    let hear = async {
        loop {
            match poll_fn(|context| connection.poll_message(context)).await {
                Some(Ok(AsyncMessage::Notification(notification))) => {
                    let notice = match notification.payload() {
                        "topics" => Notice::Topics,
                        "bans" => Notice::Bans,
                        _ => continue,
                    };
                    // Without a receiver this task is ended from outside.
                    let _ = notices.send(notice);
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return error.into(),
                None => return Cause::Closed,
            }
        }
    };
    let ask = async {
        let mut question = LISTEN;
        let mut connected = Some(connected);
        loop {
            match timeout(DEADLINE, client.batch_execute(question)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return error.into(),
                Err(_) => return Cause::Overdue,
            }
            if let Some(connected) = connected.take() {
                connected();
                let _ = notices.send(Notice::Reconnected);
                question = "";
            }
            sleep(HEARTBEAT).await;
        }
    };
    tokio::select! {
        cause = hear => cause,
        cause = ask => cause,
    }
}
