//! Blocking until a wake key rings.
//!
//! A blocked client is parked by the server: it costs nothing until the key has an element, and
//! then the client that waited longest is served. It must be a connection of its own, because
//! whatever else was sent on it would wait too; and it must be given up after any doubt, because a
//! command that was abandoned here still stands in the queue there.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use redis::{Cmd, RedisResult, Value};
use tokio::sync::Mutex;

use crate::server::{Connection, Server, late};

/// How much later than asked for an answer may come before the link counts as dead.
const SLACK: Duration = Duration::from_secs(3);
/// Zero would block for ever.
pub(crate) const SHORTEST: Duration = Duration::from_millis(1);

/// Blocks on the wake keys of all shards at once.
pub(crate) struct Bell {
    /// One for a server; in a cluster one for each shard, because a command blocks on one slot.
    parts: Vec<Arc<Part>>,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    futures: FuturesUnordered<BoxFuture<'static, (usize, RedisResult<bool>)>>,
    busy: BTreeSet<usize>,
}

struct Part {
    blocker: Blocker,
    keys: Vec<String>,
}

/// A connection of its own for one blocking command at a time.
pub(crate) struct Blocker {
    server: Server,
    connection: Mutex<Option<Connection>>,
}

impl Blocker {
    pub(crate) fn new(server: &Server) -> Self {
        Self { server: server.clone(), connection: Mutex::new(None) }
    }

    /// Runs a command that the server answers within `at_most`. A future that is dropped, and an
    /// answer that does not come, give the connection up.
    pub(crate) async fn run(&self, command: &Cmd, at_most: Duration) -> RedisResult<Value> {
        let mut place = self.connection.lock().await;
        let mut connection = match place.take() {
            Some(connection) => connection,
            None => self.server.connect().await?,
        };
        let answer = tokio::time::timeout(at_most + SLACK, connection.send(command)).await;
        let answer = answer.map_err(|_| late("a blocking command"))??;
        // Only a connection whose command was answered is used again.
        *place = Some(connection);
        Ok(answer)
    }
}

impl Bell {
    pub(crate) fn new(server: &Server, keys: Vec<String>) -> Self {
        let groups = if server.is_cluster() {
            keys.into_iter().map(|key| vec![key]).collect()
        } else {
            vec![keys]
        };
        let part = |keys| Part { blocker: Blocker::new(server), keys };
        let parts = groups.into_iter().map(|keys| Arc::new(part(keys))).collect();
        Self { parts, waiting: Mutex::default() }
    }

    /// Waits until one of the keys rings or the time is over. A future that is dropped gives its
    /// connection up.
    pub(crate) async fn wait(&self, at_most: Duration) -> RedisResult<()> {
        let at_most = at_most.max(SHORTEST);
        if let [part] = self.parts.as_slice() {
            return part.block(at_most).await.map(|_| ());
        }
        // What does not ring now goes on waiting, and is asked again next time.
        let mut waiting = self.waiting.lock().await;
        for (index, part) in self.parts.iter().enumerate() {
            if waiting.busy.insert(index) {
                let part = Arc::clone(part);
                waiting.futures.push(Box::pin(async move { (index, part.block(at_most).await) }));
            }
        }
        match tokio::time::timeout(at_most, waiting.futures.next()).await {
            Ok(Some((index, answer))) => {
                waiting.busy.remove(&index);
                answer.map(|_| ())
            }
            Ok(None) | Err(_) => Ok(()),
        }
    }
}

impl Part {
    async fn block(&self, at_most: Duration) -> RedisResult<bool> {
        let mut command = redis::cmd("BLPOP");
        command.arg(&self.keys).arg(at_most.as_secs_f64());
        Ok(self.blocker.run(&command, at_most).await? != Value::Nil)
    }
}
