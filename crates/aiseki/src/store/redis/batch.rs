//! Calls that come while one is on its way go together in the next.

use std::future::Future;
use std::pin::Pin;

use tokio::sync::{mpsc, oneshot};

use crate::port::{Pending, Unavailable};

/// Calls that wait for their turn, at most; more are an overload, and a clear answer now is worth more
/// than a late one.
const WAITING: usize = 16_384;

type Turn<I, O> = (I, oneshot::Sender<Result<O, Unavailable>>);

/// Collects calls of one kind.
pub(super) struct Batch<I, O> {
    turns: mpsc::Sender<Turn<I, O>>,
}

pub(super) type Answers<O> = Pin<Box<dyn Future<Output = Result<Vec<O>, Unavailable>> + Send>>;

impl<I: Send + 'static, O: Send + 'static> Batch<I, O> {
    /// Runs `call` with what has come in the meantime, at most `at_once`. It answers for each in order.
    pub(super) fn new(
        at_once: usize,
        call: impl Fn(Vec<I>) -> Answers<O> + Send + Sync + 'static,
    ) -> Self {
        let (turns, mut waiting) = mpsc::channel::<Turn<I, O>>(WAITING);
        tokio::spawn(async move {
            let mut taken = Vec::with_capacity(at_once);
            while waiting.recv_many(&mut taken, at_once).await > 0 {
                let (inputs, callers): (Vec<_>, Vec<_>) = taken.drain(..).unzip();
                let answers = call(inputs).await;
                let mut answers = answers.map(Vec::into_iter);
                for caller in callers {
                    let answer = match &mut answers {
                        Ok(answers) => answers.next().ok_or(Unavailable),
                        Err(unavailable) => Err(*unavailable),
                    };
                    // Nobody may be listening any more; what was done stays done.
                    let _ = caller.send(answer);
                }
            }
        });
        Self { turns }
    }

    pub(super) fn call(&self, input: I) -> Pending<'_, O> {
        let (caller, answer) = oneshot::channel();
        let sent = self.turns.try_send((input, caller)).is_ok();
        Box::pin(async move {
            if !sent {
                return Err(Unavailable);
            }
            answer.await.unwrap_or(Err(Unavailable))
        })
    }
}
