//! Passes that take no input and find by themselves what has become due.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use ringfence_core::{HostId, Input, error_chain};
use tokio_util::sync::CancellationToken;

use crate::clock::MAX_DIFFERENCE;
use crate::pause::pause;
use crate::{Context, Engine, EngineError};

/// Hosts that one look for due hosts takes.
const DUE_AT_ONCE: u32 = 256;
/// Due hosts that are decided side by side.
const SIDE_BY_SIDE: usize = 32;
/// Between two looks for operations that nothing would ever wake.
const STRANDED_EVERY: Duration = Duration::from_secs(30);
/// Between two looks for events without a number where nothing has announced any.
const NUMBER_EVERY: Duration = Duration::from_secs(1);
/// Where one pass has numbered so many, more are on their way, and are numbered together after a breath.
const MANY_EVENTS: u64 = 8;
const BREATH: Duration = Duration::from_millis(5);

/// Between two looks for keys of requests that are a day old.
const FORGET_EVERY: Duration = Duration::from_secs(60);
/// Keys that one statement removes.
const FORGOTTEN_AT_ONCE: u32 = 500;

/// Ticks the hosts whose time has come, and those that were written before a clock was set back: what they wait for lies so much further
/// ahead now.
pub(crate) async fn tick(engine: Engine, stop: CancellationToken) {
    let every = engine.0.config.tick_every;
    let mut is_awake = engine.0.bus.began().is_none();
    while pause_or_alarm(&stop, every, &engine).await {
        // What was under way in another bus than this was lost with that.
        if !is_awake {
            is_awake = wake_live(&engine).await;
        }
        if let Err(error) = tick_due(&engine).await {
            tracing::warn!(error = %error_chain(&error), "due hosts could not be looked for");
        }
    }
}

async fn pause_or_alarm(stop: &CancellationToken, time: Duration, engine: &Engine) -> bool {
    tokio::select! {
        goes_on = pause(stop, time) => goes_on,
        () = engine.0.waker.ring(&engine.0.clock) => true,
    }
}

/// Has every host with a live operation looked at. `false` if that could not be written.
async fn wake_live(engine: &Engine) -> bool {
    let now = engine.0.clock.now();
    match ringfence_db::wake_live(&mut engine.0.db.reader(), now).await {
        Ok(()) => true,
        Err(error) => {
            tracing::warn!(error = %error_chain(&error), "hosts with a live operation could not be woken");
            false
        }
    }
}

async fn tick_due(engine: &Engine) -> Result<(), EngineError> {
    loop {
        let now = engine.0.clock.now();
        engine.0.waker.forget(now);
        let mut reader = engine.0.db.reader();
        let due = ringfence_db::due_hosts(&mut reader, now, DUE_AT_ONCE).await?;
        let ahead = ringfence_db::hosts_ahead(&mut reader, now + MAX_DIFFERENCE, DUE_AT_ONCE).await?;
        let is_last = [&due, &ahead]
            .iter()
            .all(|hosts| hosts.len() < DUE_AT_ONCE as usize);
        tick_all(engine, due).await;
        tick_all(engine, ahead).await;
        if is_last {
            return Ok(());
        }
    }
}

async fn tick_all(engine: &Engine, hosts: Vec<HostId>) {
    stream::iter(hosts)
        .for_each_concurrent(SIDE_BY_SIDE, |host_id| async move {
            let by = Context::own("ringfence");
            let queues = engine
                .0
                .task_queues
                .queues(engine.0.bus.began(), engine.0.clock.now());
            match engine.apply(host_id, Input::Tick { queues }, &by).await {
                Ok(applied) => {
                    engine.0.task_queues.wait(&applied.state);
                    engine.fence_if_due(&applied.state).await;
                }
                Err(EngineError::NotFound { .. }) => {}
                Err(error) => {
                    tracing::warn!(%host_id, error = %error_chain(&error), "a due host could not be ticked")
                }
            }
        })
        .await;
}

/// Belt and braces: a running operation always says when it wants to be woken; should one ever not, it is found here.
pub(crate) async fn find_stranded(engine: Engine, stop: CancellationToken) {
    loop {
        match ringfence_db::stranded_hosts(&mut engine.0.db.reader(), DUE_AT_ONCE).await {
            Ok(hosts) => tick_all(&engine, hosts).await,
            Err(error) => {
                tracing::warn!(error = %error_chain(&error), "stranded operations could not be looked for")
            }
        }
        if !pause(&stop, STRANDED_EVERY).await {
            return;
        }
    }
}

/// Publishes what a process that died, or a broker that was away, has left in the outbox.
pub(crate) async fn sweep_outbox(engine: Engine, stop: CancellationToken) {
    let every = engine.0.config.sweep_every;
    while pause(&stop, every).await {
        if let Err(error) = engine.0.relay.sweep().await {
            tracing::warn!(error = %error_chain(&error), "the outbox could not be swept");
        }
    }
}

/// Numbers committed events, at once when this process has written some.
pub(crate) async fn number_events(engine: Engine, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = engine.0.events_written.notified() => {}
            () = tokio::time::sleep(NUMBER_EVERY) => {}
        }
        let numbered = number_all_events(&engine).await.unwrap_or_else(|error| {
            tracing::warn!(error = %error_chain(&error), "events could not be numbered");
            0
        });
        engine.0.feed.nudge();
        if numbered >= MANY_EVENTS {
            tokio::time::sleep(BREATH).await;
        }
    }
}

/// Numbers everything that is committed, and tells how many that were; what is committed from here on announces itself.
pub(crate) async fn number_all_events(engine: &Engine) -> Result<u64, EngineError> {
    let mut all = 0;
    loop {
        let numbered = ringfence_db::number_events(&engine.0.db).await?;
        all += numbered;
        if numbered < ringfence_db::NUMBERED_AT_ONCE {
            return Ok(all);
        }
    }
}

/// Forgets the keys of requests that are a day old.
pub(crate) async fn forget_keys(engine: Engine, stop: CancellationToken) {
    loop {
        if let Err(error) = forget_old_keys(&engine).await {
            tracing::warn!(error = %error_chain(&error), "old keys of requests could not be forgotten");
        }
        if !pause(&stop, FORGET_EVERY).await {
            return;
        }
    }
}

async fn forget_old_keys(engine: &Engine) -> Result<(), EngineError> {
    let before = engine.0.clock.now() - crate::idempotency::KEPT_FOR;
    let mut run = engine.0.db.reader();
    while ringfence_db::delete_old_keys(&mut run, before, FORGOTTEN_AT_ONCE).await?
        == u64::from(FORGOTTEN_AT_ONCE)
    {}
    Ok(())
}

/// Keeps the engine's clock with the database's.
pub(crate) async fn follow_clock(engine: Engine, stop: CancellationToken) {
    engine.0.clock.keep(&engine.0.db, &stop).await;
}
