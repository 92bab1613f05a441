//! A driver with scripted results that records its calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use ringfence_bus::ValidateRequest;
use ringfence_core::{FencingKind, FrozenMethod, Observation, ObservedState, Outcome, Problem, Timestamp};
use ringfence_workers::{Driver, Report, Secrets, WorkerError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Does {
    /// Succeeds after this time.
    Succeeds(Duration),
    /// Reports success without an observation.
    Boasts,
    /// Reports its password.
    Babbles,
    /// Never ends.
    Hangs,
    Panics,
}

#[derive(Default)]
struct Seen {
    acts: Mutex<Vec<String>>,
    now: AtomicUsize,
    most: AtomicUsize,
    stopped: AtomicUsize,
}

#[derive(Clone)]
pub struct Scripted {
    does: Does,
    seen: Arc<Seen>,
}

/// Counts the running calls, and records a call that is stopped from outside.
struct AtWork<'a>(&'a Seen, bool);

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, SeqCst);
        if !self.1 {
            self.0.stopped.fetch_add(1, SeqCst);
        }
    }
}

impl Scripted {
    pub fn new(does: Does) -> Self {
        Self {
            does,
            seen: Arc::default(),
        }
    }

    /// The devices that were commanded, in order.
    pub fn acts(&self) -> Vec<String> {
        self.seen.acts.lock().clone()
    }

    /// The largest number of calls that ran at once.
    pub fn most_at_once(&self) -> usize {
        self.seen.most.load(SeqCst)
    }

    pub fn at_work(&self) -> usize {
        self.seen.now.load(SeqCst)
    }

    /// The number of calls that were stopped before their end.
    pub fn stopped(&self) -> usize {
        self.seen.stopped.load(SeqCst)
    }
}

pub fn observation(state: ObservedState, detail: &str) -> Observation {
    Observation {
        state,
        detail: detail.to_owned(),
        observed_at: Timestamp::UNIX_EPOCH,
        after_ms: 0,
        before: None,
        proves: true,
    }
}

#[async_trait]
impl Driver for Scripted {
    async fn act_and_observe(
        &self,
        kind: FencingKind,
        method: &FrozenMethod,
        secrets: &Secrets,
        _budget: Duration,
    ) -> Report {
        self.seen.acts.lock().push(method.name.clone());
        let now = self.seen.now.fetch_add(1, SeqCst) + 1;
        self.seen.most.fetch_max(now, SeqCst);
        let mut at_work = AtWork(&self.seen, false);
        let seen = |detail: &str| Some(observation(kind.wanted_state(), detail));
        let report = |observation, detail: &str| Report {
            outcome: Outcome::Confirmed,
            observation,
            finding: None,
            detail: detail.to_owned(),
        };
        let report = match self.does {
            Does::Succeeds(after) => {
                tokio::time::sleep(after).await;
                report(seen("done"), "")
            }
            Does::Boasts => report(Some(observation(ObservedState::On, "done")), ""),
            Does::Babbles => {
                let said = format!(
                    "I used {} {}",
                    secrets.get("password").unwrap().expose(),
                    "x".repeat(5000)
                );
                report(seen(&said), &said)
            }
            Does::Hangs => std::future::pending().await,
            Does::Panics => panic!("a driver that panics"),
        };
        at_work.1 = true;
        report
    }

    async fn observe(
        &self,
        _: &FrozenMethod,
        secrets: &Secrets,
        _: Duration,
    ) -> Result<Observation, WorkerError> {
        match self.does {
            Does::Hangs => {
                self.seen.now.fetch_add(1, SeqCst);
                let _at_work = AtWork(&self.seen, false);
                std::future::pending().await
            }
            _ => {
                let with = secrets.get("password").map_or("no password", |_| "a password");
                Ok(observation(ObservedState::On, &format!("read with {with}")))
            }
        }
    }

    async fn validate(&self, _: &ValidateRequest) -> Vec<Problem> {
        vec![Problem::new("parameters.x", "is wrong")]
    }
}
