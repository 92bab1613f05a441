//! The event stream, as a subscriber sees it.

use std::time::{Duration, Instant};

use reqwest::Method;
use ringfence_tests::Client;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::error::BenchError;

/// Longer than any run.
const LIFETIME: Duration = Duration::from_secs(4 * 3600);
/// How many events may wait to be read.
const WAITING: usize = 65_536;

/// An event, and when its last byte arrived.
#[derive(Debug)]
pub struct Heard {
    pub at: Instant,
    pub kind: String,
    pub event: Value,
}

impl Heard {
    pub fn is(&self, kind: &str, host: &str) -> bool {
        self.kind == kind && self.event["host"] == host
    }
}

/// A listener to all events from now on.
pub struct Listener {
    heard: mpsc::Receiver<Heard>,
    task: JoinHandle<()>,
}

impl Listener {
    /// Begins to listen; no event that is committed after this is missed.
    pub async fn open(client: &Client) -> Result<Self, BenchError> {
        let request = client.request(Method::GET, "/events/stream").timeout(LIFETIME);
        let mut response = request.send().await?.error_for_status()?;
        let (sender, heard) = mpsc::channel(WAITING);
        let task = tokio::spawn(async move {
            let mut blocks = Blocks::default();
            while let Ok(Some(chunk)) = response.chunk().await {
                let at = Instant::now();
                for (kind, event) in blocks.take(&chunk) {
                    if sender.send(Heard { at, kind, event }).await.is_err() {
                        return;
                    }
                }
            }
        });
        Ok(Self { heard, task })
    }

    /// The next event.
    pub async fn next(&mut self, patience: Duration) -> Result<Heard, BenchError> {
        let late = || BenchError::Late {
            what: "the next event".to_owned(),
            seconds: patience.as_secs(),
        };
        let heard = tokio::time::timeout(patience, self.heard.recv()).await;
        heard.map_err(|_| late())?.ok_or_else(late)
    }

    /// The next event of this kind and host; the events before it are dropped.
    pub async fn until(&mut self, kind: &str, host: &str, patience: Duration) -> Result<Heard, BenchError> {
        loop {
            let heard = self.next(patience).await?;
            if heard.is(kind, host) {
                return Ok(heard);
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Splits a stream of server-sent events into events.
#[derive(Default)]
pub struct Blocks {
    rest: Vec<u8>,
}

impl Blocks {
    /// The events that are complete with this piece. Comments and blocks without data are skipped.
    pub fn take(&mut self, piece: &[u8]) -> Vec<(String, Value)> {
        self.rest.extend_from_slice(piece);
        let mut events = Vec::new();
        while let Some(end) = self.rest.windows(2).position(|two| two == b"\n\n") {
            let block: Vec<u8> = self.rest.drain(..end + 2).collect();
            events.extend(event(&String::from_utf8_lossy(&block)));
        }
        events
    }
}

fn event(block: &str) -> Option<(String, Value)> {
    let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
    let event = serde_json::from_str(field("data: ")?).ok()?;
    Some((field("event: ")?.to_owned(), event))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_may_come_in_pieces_and_two_in_one() {
        let mut blocks = Blocks::default();
        assert!(
            blocks
                .take(b"id: 3\n\n: still here\n\nid: 4\nevent: a\ndata: {\"ho")
                .is_empty()
        );
        let events = blocks.take(b"st\":\"h1\"}\n\nid: 5\nevent: b\ndata: {}\n\nid: 6\n");
        let kinds: Vec<_> = events.iter().map(|(kind, _)| kind.as_str()).collect();
        assert_eq!(kinds, ["a", "b"]);
        assert_eq!(events[0].1["host"], "h1");
    }
}
