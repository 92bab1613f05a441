//! Removing what is old, in small bites, and writing it down in an archive first where there is one. One engine at a time does it.

mod archive;
mod event_sinks;

use std::path::PathBuf;
use std::time::Duration;

use chrono::TimeDelta;
use ringfence_core::{Timestamp, error_chain};
use ringfence_db::Kept;
use tokio_util::sync::CancellationToken;

use crate::pause::pause;
use crate::{Engine, EngineError};

/// How long things are kept. `None`: for ever.
#[derive(Clone, Debug)]
pub struct RetentionConfig {
    /// Events.
    pub events: Option<TimeDelta>,
    /// Operations that are over.
    pub operations: Option<TimeDelta>,
    /// The audit trail.
    pub audit: Option<TimeDelta>,
    /// The log of webhooks' deliveries.
    pub deliveries: Option<TimeDelta>,
    /// How long events are kept for an event sink that no engine tells, and how long it is known how far it has got.
    pub event_sinks: Option<TimeDelta>,
    /// Where rows are written as JSON lines before they are removed.
    pub archive_dir: Option<PathBuf>,
    /// Between two looks for what is old.
    pub look_every: Duration,
    /// Rows that one transaction removes at most.
    pub at_once: u32,
}

impl Default for RetentionConfig {
    fn default() -> Self {
        Self {
            events: None,
            operations: None,
            audit: None,
            deliveries: Some(TimeDelta::days(7)),
            event_sinks: Some(TimeDelta::days(7)),
            archive_dir: None,
            look_every: Duration::from_secs(600),
            at_once: 500,
        }
    }
}

impl RetentionConfig {
    fn keeps(&self, what: Kept) -> Option<TimeDelta> {
        match what {
            Kept::Events => self.events,
            Kept::Operations => self.operations,
            Kept::Audit => self.audit,
            Kept::Deliveries => self.deliveries,
        }
    }
}

/// The pause between two transactions, so that decisions go first.
const BREATH: Duration = Duration::from_millis(100);
/// The lease, and how long it is held at a time: longer than looking and removing may take, at 50 s each.
const LEASE: &str = "retention";
const HELD_FOR: TimeDelta = TimeDelta::seconds(120);

/// Removes what is old until it is told to stop.
pub(crate) async fn run(engine: Engine, stop: CancellationToken) {
    for what in Kept::ALL.iter().copied() {
        engine.0.metrics.gauges.behind.removes(what, engine.0.clock.now());
    }
    let mut silent = event_sinks::Silent::default();
    while pause(&stop, engine.0.config.retention.look_every).await {
        if let Err(error) = silent.forget(&engine).await {
            tracing::warn!(error = %error_chain(&error), "event sinks that no engine tells could not be looked for");
        }
        for what in Kept::ALL.iter().copied() {
            let removed = remove_old(&engine, what, &stop).await;
            if let Err(error) = removed {
                tracing::warn!(what = what.as_str(), error = %error_chain(&error), "what is old could not be removed");
            }
        }
    }
}

async fn remove_old(engine: &Engine, what: Kept, stop: &CancellationToken) -> Result<(), EngineError> {
    let config = &engine.0.config.retention;
    // What was old when a look began has been dealt with; what became so meanwhile has not.
    let gets_on = |looked_at| engine.0.metrics.gauges.behind.removes(what, looked_at);
    let mut now = engine.0.clock.now();
    let Some(before) = bound(now, config.keeps(what)) else {
        gets_on(now);
        return Ok(());
    };
    let mut all = 0;
    while hold(engine).await? {
        let db = &engine.0.db;
        let rows = ringfence_db::old_rows(db, what, before, config.at_once).await?;
        if let Some(dir) = config.archive_dir.clone().filter(|_| !rows.is_empty()) {
            archive::write(dir, what, engine.0.clock.now(), &rows).await?;
        }
        let removed = ringfence_db::remove_rows(db, what, before, &rows).await?;
        engine.0.metrics.count_removed(what, removed);
        gets_on(now);
        now = engine.0.clock.now();
        all += removed;
        let is_last = rows.len() < config.at_once as usize || removed == 0;
        if is_last || !pause(stop, BREATH).await {
            break;
        }
    }
    if all > 0 {
        tracing::info!(what = what.as_str(), rows = all, before = %before.to_rfc3339(), "what was old has been removed");
    }
    Ok(())
}

fn bound(now: Timestamp, kept: Option<TimeDelta>) -> Option<Timestamp> {
    now.checked_sub_signed(kept?)
}

async fn hold(engine: &Engine) -> Result<bool, EngineError> {
    let now = engine.0.clock.now();
    let mut reader = engine.0.db.reader();
    let held = ringfence_db::take_lease(&mut reader, LEASE, &engine.0.id, now, now + HELD_FOR).await?;
    Ok(held)
}
