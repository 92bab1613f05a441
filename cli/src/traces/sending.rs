//! Sends spans, many at a time, and tells what is lost.

use std::time::Duration;

use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::trace::{SpanData, SpanExporter as _};
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::COUNTS;

/// Spans in one request.
const BATCH: usize = 512;
/// How long spans wait for company.
const GATHER: Duration = Duration::from_millis(500);
/// Between two lines about spans that are lost.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// Ends once it is stopped and the queue is empty.
pub(super) async fn run(exporter: SpanExporter, mut queue: Receiver<SpanData>, stop: CancellationToken) {
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
            send(&exporter, std::mem::take(&mut batch), &mut losses).await;
        }
        losses.tell(is_last);
        if is_last {
            return;
        }
    }
}

/// A batch that is not taken is lost: it is worth less than the memory to keep it.
async fn send(exporter: &SpanExporter, batch: Vec<SpanData>, losses: &mut Losses) {
    let spans = batch.len() as u64;
    match exporter.export(batch).await {
        Ok(()) => {
            COUNTS.sent.inc_by(spans);
        }
        Err(error) => {
            COUNTS.not_taken.inc_by(spans);
            losses.last = Some(error.to_string());
        }
    }
}

#[derive(Default)]
struct Losses {
    told: u64,
    told_at: Option<Instant>,
    last: Option<String>,
}

impl Losses {
    /// At once, then no more often than once in a while.
    fn tell(&mut self, is_last: bool) {
        let lost = COUNTS.lost();
        let is_early = self.told_at.is_some_and(|at| at.elapsed() < TELL_EVERY);
        if lost == self.told || (is_early && !is_last) {
            return;
        }
        tracing::warn!(
            spans = lost - self.told,
            error = self.last.take(),
            "spans were lost; nothing else is the worse for it"
        );
        self.told = lost;
        self.told_at = Some(Instant::now());
    }
}
