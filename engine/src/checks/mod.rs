//! Health checks: the device of every method is asked for its state now and then, so that one that does not answer is known before it
//! is needed. Nothing is changed: no state, no event, no operation.
//!
//! What is asked is in the table of checks, one row per question. Any number of engines share the work by taking rows that are due.

mod ask;
mod questions;
mod targets;

pub(crate) use ask::Unserved;
pub use questions::DeviceQuestion;
pub(crate) use questions::note_sharing;

use std::time::Duration;

use chrono::TimeDelta;
use ringfence_core::{Timestamp, error_chain};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::Engine;
use crate::pause::pause;

/// How devices are checked.
#[derive(Clone, Debug)]
pub struct CheckConfig {
    /// Between two checks of one device; `None`: none are made.
    pub every: Option<Duration>,
    /// Devices that this engine asks at one time.
    pub at_once: usize,
}

impl Default for CheckConfig {
    fn default() -> Self {
        Self {
            every: None,
            at_once: 16,
        }
    }
}

/// Between two looks for checks that are due.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Between two looks for methods, plans and hosts that have changed, at most; ten of them fit between two checks.
const LONGEST_UNSEEN: Duration = Duration::from_secs(30);
/// Who takes a check keeps it from others for so long: longer than any attempt may take.
const TAKEN_FOR: TimeDelta = TimeDelta::seconds(330);
/// With so many operations under way devices are left to them, and so are the database and the workers.
const STORM: u32 = 64;
/// The turn of looking for what has changed.
const TURN: &str = "method checks";

/// Checks devices until it is told to stop.
pub(crate) async fn run(engine: Engine, stop: CancellationToken) {
    let Some(every) = engine.0.config.checks.every else {
        return;
    };
    let mut asking = JoinSet::new();
    let mut looked_at: Option<Instant> = None;
    let unseen = (every / 10).clamp(LOOK_EVERY, LONGEST_UNSEEN);
    loop {
        if is_storm(&engine).await {
            if !pause(&stop, LOOK_EVERY).await {
                return;
            }
            continue;
        }
        if looked_at.is_none_or(|at| at.elapsed() >= unseen) {
            looked_at = Some(Instant::now());
            find_targets(&engine, every, unseen).await;
        }
        let is_full = fill(&engine, every, &mut asking).await;
        let goes_on = tokio::select! {
            goes_on = pause(&stop, LOOK_EVERY) => goes_on,
            _ = asking.join_next(), if is_full => !stop.is_cancelled(),
        };
        if !goes_on {
            // What is under way is dropped; the engine that takes over begins it again.
            return;
        }
        while asking.try_join_next().is_some() {}
    }
}

async fn is_storm(engine: &Engine) -> bool {
    let running = ringfence_db::count_running_operations(&mut engine.0.db.reader(), STORM).await;
    running.is_ok_and(|running| running >= STORM.into())
}

async fn find_targets(engine: &Engine, every: Duration, unseen: Duration) {
    let now = engine.0.clock.now();
    let until = later(now, unseen);
    let mut reader = engine.0.db.reader();
    let found = match ringfence_db::take_turn(&mut reader, TURN, &engine.0.id, now, until).await {
        Ok(true) => targets::refresh(engine, every).await,
        Ok(false) => Ok(()),
        Err(error) => Err(error.into()),
    };
    if let Err(error) = found {
        tracing::warn!(error = %error_chain(&error), "what has to be checked could not be found out");
    }
}

/// Asks as many devices as there is room for; tells whether there may be more to ask.
async fn fill(engine: &Engine, every: Duration, asking: &mut JoinSet<()>) -> bool {
    let room = engine.0.config.checks.at_once.saturating_sub(asking.len());
    let Some(limit) = u32::try_from(room).ok().filter(|room| *room > 0) else {
        return true;
    };
    let now = engine.0.clock.now();
    match ringfence_db::take_checks(&engine.0.db, now, now + TAKEN_FOR, limit).await {
        Ok(taken) => {
            let is_full = taken.len() == room;
            for target in taken {
                asking.spawn(ask::ask(engine.clone(), target, every));
            }
            is_full
        }
        Err(error) => {
            tracing::warn!(error = %error_chain(&error), "due checks could not be looked for");
            false
        }
    }
}

fn later(at: Timestamp, by: Duration) -> Timestamp {
    at + TimeDelta::from_std(by).unwrap_or(TimeDelta::zero())
}

/// Any part of a span, at random.
fn part_of(span: Duration) -> Duration {
    span.mul_f64(f64::from(random()) / f64::from(u16::MAX))
}

#[expect(
    clippy::disallowed_methods,
    reason = "devices must not all be asked at one moment"
)]
fn random() -> u16 {
    rand::random()
}
