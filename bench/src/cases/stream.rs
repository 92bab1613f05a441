//! An event stream with many listeners.

use std::time::{Duration, Instant};

use reqwest::Method;
use ringfence_tests::{Client, Ground};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::Case;
use crate::error::BenchError;
use crate::plant::{Plant, Settings};
use crate::process::resident_mb;
use crate::report::{Figure, Report};
use crate::statistics::Summary;

const NAME: &str = "stream";
const LISTENERS: usize = 1_000;
/// Connections that are opened at once.
const OPENED_AT_ONCE: usize = 50;
const PATIENCE: Duration = Duration::from_secs(60);
const LIFETIME: Duration = Duration::from_secs(3600);
/// How long the memory takes to settle.
const REST: Duration = Duration::from_secs(2);
/// The line that announces the event.
const EVENT: &[u8] = b"event: host.failure_state";

/// Measures on one ground.
pub async fn measure(case: &Case, ground: Ground, report: &mut Report) -> Result<(), BenchError> {
    // They are one caller's, and more than come by default.
    let at_once = (2 * LISTENERS).to_string();
    let settings = Settings::default()
        .with("RINGFENCE_API_STREAMS", at_once.clone())
        .with("RINGFENCE_API_STREAMS_PER_CALLER", at_once);
    let plant = Plant::start(ground, settings).await?;
    plant.add_host("beside", false).await;
    let (_, service) = &plant.services[0];
    let before = resident_mb(service)?;
    let mut listeners = Listeners::open(&plant.client).await?;
    tokio::time::sleep(REST).await;
    let after = resident_mb(service)?;
    let (mut last, mut median, mut from_request) = (vec![], vec![], vec![]);
    for number in 0..case.samples {
        let state = ["UNREACHABLE", "UNKNOWN"][number % 2];
        let asked = Instant::now();
        plant.client.seen("beside", state).await.ok(200);
        let answered = Instant::now();
        let mut heard = listeners.all_hear().await?;
        heard.sort_unstable();
        let since = |from: Instant, at: &Instant| at.saturating_duration_since(from).as_secs_f64() * 1000.0;
        let end = heard.last().copied().unwrap_or(answered);
        last.push(since(answered, &end));
        from_request.push(since(asked, &end));
        median.push(heard.get(LISTENERS / 2).map_or(0.0, |at| since(answered, at)));
    }
    drop(listeners);
    let figure = |what: &str, unit, summary| Figure::new(NAME, what, unit, summary).on(ground);
    report.add_summary(&median, |s| {
        figure("commit answered to the 500th of 1,000 listeners", "ms", s)
    })?;
    report.add_summary(&last, |s| {
        figure("commit answered to the last of 1,000 listeners", "ms", s)
    })?;
    report.add_summary(&from_request, |s| {
        figure("request sent to the last of 1,000 listeners", "ms", s)
            .note("the listeners are one process on this machine, and their reading is a part of the figure")
    })?;
    #[expect(clippy::cast_precision_loss, reason = "a thousand")]
    let each = (after - before) * 1000.0 / LISTENERS as f64;
    report.add(figure("memory per listener", "kB", Summary::once(each)))?;
    plant.stop().await;
    Ok(())
}

struct Listeners {
    heard: mpsc::Receiver<Instant>,
    _tasks: JoinSet<Result<(), BenchError>>,
}

impl Listeners {
    async fn open(client: &Client) -> Result<Self, BenchError> {
        let (sender, heard) = mpsc::channel(LISTENERS);
        let mut tasks = JoinSet::new();
        let mut opened = 0;
        while opened < LISTENERS {
            let (ready, mut is_ready) = mpsc::channel(OPENED_AT_ONCE);
            for _ in 0..OPENED_AT_ONCE.min(LISTENERS - opened) {
                tasks.spawn(listen(client.clone(), ready.clone(), sender.clone()));
                opened += 1;
            }
            drop(ready);
            for _ in 0..OPENED_AT_ONCE {
                let ready = tokio::time::timeout(PATIENCE, is_ready.recv()).await;
                if !matches!(ready, Ok(Some(()))) {
                    return Err(late("the beginning of a stream"));
                }
            }
        }
        Ok(Self { heard, _tasks: tasks })
    }

    /// When each listener heard of the next event.
    async fn all_hear(&mut self) -> Result<Vec<Instant>, BenchError> {
        let mut heard = Vec::with_capacity(LISTENERS);
        while heard.len() < LISTENERS {
            let at = tokio::time::timeout(PATIENCE, self.heard.recv()).await;
            heard.push(
                at.ok()
                    .flatten()
                    .ok_or_else(|| late("an event to one of the listeners"))?,
            );
        }
        Ok(heard)
    }
}

/// Listens; reports once that it listens, and then each event.
async fn listen(
    client: Client,
    ready: mpsc::Sender<()>,
    heard: mpsc::Sender<Instant>,
) -> Result<(), BenchError> {
    let request = client.request(Method::GET, "/events/stream").timeout(LIFETIME);
    let mut response = request.send().await?.error_for_status()?;
    let mut ready = Some(ready);
    while let Some(chunk) = response.chunk().await? {
        let at = Instant::now();
        if let Some(ready) = ready.take() {
            // The first piece only names the position of the stream.
            let _ = ready.send(()).await;
        }
        if chunk.windows(EVENT.len()).any(|part| part == EVENT) && heard.send(at).await.is_err() {
            break;
        }
    }
    Ok(())
}

fn late(what: &str) -> BenchError {
    BenchError::Late {
        what: what.to_owned(),
        seconds: PATIENCE.as_secs(),
    }
}
