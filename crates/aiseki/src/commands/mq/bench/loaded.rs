//! How long an ack takes: in an empty queue, and in one with many messages.

use std::collections::VecDeque;
use std::sync::Arc;

use aiseki_mq::{Consumer, Message, Queue, Receipt, Result};
use tokio::time::Instant;

use super::{Bench, LEASE, percentile};

/// The most messages of one claim.
const CLAIM: usize = 1_000;

/// 99 of 100 acks were answered within this time.
pub(super) struct Loaded {
    pub(super) empty_ms: f64,
    pub(super) loaded_ms: f64,
}

pub(super) async fn measure(bench: &Bench, queue: &Arc<dyn Queue>) -> Result<Loaded> {
    let consumer = queue.consumer("bench", LEASE)?;
    let empty_ms = acks(bench, queue, &consumer, VecDeque::new()).await?;
    bench.publish(queue, bench.ready + bench.in_flight).await?;
    let mut held = VecDeque::with_capacity(bench.in_flight);
    while held.len() < bench.in_flight {
        let got = consumer.exchange(&[], CLAIM.min(bench.in_flight - held.len())).await?;
        if got.deliveries.is_empty() && !got.more {
            break;
        }
        held.extend(got.deliveries.into_iter().map(|each| each.receipt));
    }
    let loaded_ms = acks(bench, queue, &consumer, held).await?;
    queue.erase().await?;
    Ok(Loaded { empty_ms, loaded_ms })
}

/// Publishes one, claims one and acks the one that has been out longest, again and again; only the
/// acks are timed.
async fn acks(
    bench: &Bench,
    queue: &Arc<dyn Queue>,
    consumer: &Arc<dyn Consumer>,
    mut held: VecDeque<Receipt>,
) -> Result<f64> {
    let mut times = Vec::with_capacity(bench.latencies);
    for _ in 0..bench.latencies {
        queue.publish(&[Message::new(vec![b'x'; bench.payload])]).await?;
        let got = consumer.exchange(&[], 1).await?;
        held.extend(got.deliveries.into_iter().map(|each| each.receipt));
        let Some(oldest) = held.pop_front() else { continue };
        let begin = Instant::now();
        consumer.ack(&[oldest]).await?;
        times.push(begin.elapsed().as_secs_f64() * 1_000.0);
    }
    Ok(percentile(&mut times, 99))
}
