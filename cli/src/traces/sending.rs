//! Sends spans in batches, and reports how many are lost.

use std::time::Duration;

use opentelemetry_sdk::trace::SpanData;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::collector::Collector;
use super::counts::COUNTS;

/// Spans in one request.
const BATCH: usize = 512;
/// How long a span waits for others, to be sent with them.
const GATHER: Duration = Duration::from_millis(500);
/// Between two log lines about lost spans.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// Ends once it is stopped and the queue is empty.
pub(super) async fn run(collector: Collector, mut queue: Receiver<SpanData>, stop: CancellationToken) {
    let mut losses = Losses::default();
    let mut batch = Vec::with_capacity(BATCH);
    loop {
        tokio::select! {
            () = stop.cancelled() => {}
            () = sleep(GATHER) => {}
        }
        let is_last = stop.is_cancelled();
        loop {
            while batch.len() < BATCH
                && let Ok(span) = queue.try_recv()
            {
                batch.push(span);
            }
            if batch.is_empty() {
                break;
            }
            let sent = send(&collector, std::mem::take(&mut batch), is_last).await;
            losses.last = sent.err().or(losses.last);
        }
        if let Some(spans) = losses.due(COUNTS.lost(), Instant::now(), is_last) {
            tracing::warn!(
                spans,
                error = losses.last.take(),
                "spans were lost; nothing else is affected"
            );
        }
        if is_last {
            return;
        }
    }
}

/// A batch that is not accepted is lost: keeping it is not worth the memory.
async fn send(collector: &Collector, batch: Vec<SpanData>, is_last: bool) -> Result<(), String> {
    let spans = batch.len() as u64;
    let sent = collector.take(batch, is_last).await;
    let lost = match &sent {
        Ok(refused) => spans.min(*refused),
        Err(_) => spans,
    };
    COUNTS.sent.inc_by(spans - lost);
    COUNTS.not_taken.inc_by(lost);
    match sent {
        Ok(0) => Ok(()),
        Ok(_) => Err("the collector took the batch and refused a part of it".to_owned()),
        Err(why) => Err(why),
    }
}

#[derive(Default)]
struct Losses {
    told: u64,
    told_at: Option<Instant>,
    last: Option<String>,
}

impl Losses {
    /// How many lost spans to report now: the first at once, later ones at intervals.
    fn due(&mut self, lost: u64, now: Instant, is_last: bool) -> Option<u64> {
        let is_early = self.told_at.is_some_and(|at| now < at + TELL_EVERY);
        if lost == self.told || (is_early && !is_last) {
            return None;
        }
        let spans = lost - self.told;
        self.told = lost;
        self.told_at = Some(now);
        Some(spans)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_told_at_once_then_once_a_minute_and_at_the_end() {
        let mut losses = Losses::default();
        let begun = Instant::now();
        let at = |seconds| begun + Duration::from_secs(seconds);
        assert_eq!(losses.due(0, at(0), false), None);
        assert_eq!(losses.due(3, at(1), false), Some(3));
        assert_eq!(losses.due(10, at(2), false), None);
        assert_eq!(losses.due(12, at(60), false), None);
        assert_eq!(losses.due(12, at(61), false), Some(9));
        assert_eq!(losses.due(12, at(200), false), None);
        assert_eq!(losses.due(14, at(201), false), Some(2));
        assert_eq!(losses.due(15, at(202), true), Some(1));
        assert_eq!(losses.due(15, at(203), true), None);
    }
}
