//! Listening to a channel, on a connection of its own.

use std::time::Duration;

use redis::{FromRedisValue as _, PushInfo, PushKind, RedisResult, Value};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::error::Result;
use crate::server::{Connection, Server, late};

/// A silent link is asked this often whether it is still there.
const PING: Duration = Duration::from_secs(5);

/// A sharded channel of one server (`SSUBSCRIBE`), until the connection ends.
///
/// Pub/Sub forgets: what was said while nobody listened is lost. Whoever subscribes has to know by
/// other means what was missed before.
pub struct Subscription {
    connection: Connection,
    pushes: UnboundedReceiver<PushInfo>,
    response: Duration,
}

/// What a subscription brings.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    /// Somebody said this.
    Message(Vec<u8>),
    /// The connection ended: something may have been missed, and a new subscription is needed.
    Ended,
}

impl Subscription {
    /// Subscribes to a sharded channel.
    pub async fn new(server: &Server, channel: &str) -> Result<Self> {
        let (sender, pushes): (UnboundedSender<PushInfo>, _) = unbounded_channel();
        let response = server.timeouts().response;
        let subscribing = async {
            let mut connection = server.connect_with(Some(sender)).await?;
            match &mut connection {
                Connection::Cluster(cluster) => cluster.ssubscribe(channel).await?,
                Connection::One(_) => {
                    let mut command = redis::cmd("SSUBSCRIBE");
                    command.arg(channel);
                    connection.send(&command).await?;
                }
            }
            RedisResult::Ok(connection)
        };
        let limit = server.timeouts().connect + response;
        let connection =
            tokio::time::timeout(limit, subscribing).await.map_err(|_| late("subscribing"))??;
        Ok(Self { connection, pushes, response })
    }

    /// Waits for what comes next. A link that has gone silent is found within seven seconds.
    pub async fn next(&mut self) -> Heard {
        loop {
            match tokio::time::timeout(PING, self.pushes.recv()).await {
                Ok(Some(push)) => match push.kind {
                    PushKind::SMessage | PushKind::Message => {
                        let said = push.data.into_iter().next_back().unwrap_or(Value::Nil);
                        if let Ok(bytes) = Vec::<u8>::from_redis_value(said) {
                            return Heard::Message(bytes);
                        }
                    }
                    PushKind::Disconnection | PushKind::SUnsubscribe => return Heard::Ended,
                    _ => {}
                },
                Ok(None) => return Heard::Ended,
                Err(_) => {
                    let ping = redis::cmd("PING");
                    let answer = self.connection.send(&ping);
                    if !matches!(tokio::time::timeout(self.response, answer).await, Ok(Ok(_))) {
                        return Heard::Ended;
                    }
                }
            }
        }
    }
}
