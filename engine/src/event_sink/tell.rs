//! Tells an event sink of every event, as long as this engine holds it.

use std::time::Duration;

use chrono::TimeDelta;
use futures_util::FutureExt;
use ringfence_bus::{Announcement, BusError};
use ringfence_core::error_chain;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::EventSink;
use super::form::announcement;
use crate::feed::{FeedItem, Listener};
use crate::pause::pause;
use crate::reconcile::number_all_events;
use crate::{Engine, EngineError};

/// An engine holds an event sink for so long, unless it says so again.
const HELD_FOR: TimeDelta = TimeDelta::seconds(30);
/// It says so again so often, if nothing is told.
const KEEP_EVERY: Duration = Duration::from_secs(10);
/// Between two looks whether an event sink is free.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// While events are told, how far the event sink has got is written down so often. What was told since is told again if this engine dies.
const WRITE_DOWN_EVERY: Duration = Duration::from_millis(500);
/// Events that are told at once.
const AT_ONCE: usize = 256;
/// How long an event waits so that others go with it. The tasks of a fence go through this broker too, and go first.
const BREATH: Duration = Duration::from_millis(20);
/// The pauses before a broker that failed is tried again.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Tells until it is told to stop.
pub(crate) async fn tell(engine: Engine, event_sink: EventSink, stop: CancellationToken) {
    engine.0.metrics.begin_event_sink(event_sink.name);
    loop {
        let holder = format!("{} {}", engine.0.config.name, Uuid::new_v4());
        match take(&engine, event_sink.name, &holder).await {
            Ok(Some(after)) => {
                let mut telling = Telling {
                    engine: &engine,
                    event_sink: &event_sink,
                    listener: engine.listen(after, None),
                    holder,
                    told_up_to: after,
                    written_down: after,
                    kept_at: Instant::now(),
                };
                telling.run(&stop).await;
            }
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(event_sink = event_sink.name, error = %error_chain(&error), "an event sink could not be taken");
            }
        }
        if !pause(&stop, LOOK_EVERY).await {
            return;
        }
    }
}

/// Takes an event sink if no other engine holds it; a new one begins now.
async fn take(engine: &Engine, name: &str, holder: &str) -> Result<Option<u64>, EngineError> {
    let mut reader = engine.0.db.reader();
    let now = engine.0.clock.now();
    if !ringfence_db::has_event_sink(&mut reader, name).await? {
        number_all_events(engine).await?;
        let last = ringfence_db::last_sequence(&mut reader).await?;
        ringfence_db::insert_event_sink(&mut reader, name, last, now).await?;
        tracing::info!(
            event_sink = name,
            after = last,
            "an event sink is new: it is told of what happens from now on"
        );
    }
    Ok(ringfence_db::hold_event_sink(&mut reader, name, holder, now, now + HELD_FOR).await?)
}

/// What came of saying some events.
enum Said {
    All,
    /// It is time to stop, or another engine holds the event sink.
    Stopped,
    /// One of them can never be said.
    Never(BusError),
}

struct Telling<'a> {
    engine: &'a Engine,
    event_sink: &'a EventSink,
    listener: Listener,
    /// This hold's own name.
    holder: String,
    told_up_to: u64,
    written_down: u64,
    kept_at: Instant,
}

impl Telling<'_> {
    /// Until it is told to stop, or another engine holds the event sink.
    async fn run(&mut self, stop: &CancellationToken) {
        loop {
            let first = tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep_until(self.keep_at()) => None,
                first = self.listener.next() => Some(first),
            };
            match first {
                None => {}
                Some(Ok(first)) => {
                    let batch = self.batch(first).await;
                    if !self.say(&batch, stop).await {
                        break;
                    }
                }
                Some(Err(EngineError::EventsGone { after, up_to })) => self.skip(after, up_to),
                Some(Err(error)) => {
                    tracing::warn!(event_sink = self.event_sink.name, error = %error_chain(&error), "the events cannot be read");
                    tokio::time::sleep(FIRST_PAUSE).await;
                }
            }
            if Instant::now() >= self.keep_at() && !self.keep_on().await {
                return;
            }
        }
        self.keep_on().await;
        let now = self.engine.0.clock.now();
        let mut reader = self.engine.0.db.reader();
        let freed = ringfence_db::free_event_sink(&mut reader, self.event_sink.name, &self.holder, now).await;
        if let Err(error) = freed {
            tracing::debug!(event_sink = self.event_sink.name, error = %error_chain(&error), "an event sink stays held until its time is over");
        }
    }

    /// Goes on behind what was removed although this event sink was not told of it. Nothing but a hand in the database brings that about.
    fn skip(&mut self, after: u64, up_to: u64) {
        tracing::error!(
            event_sink = self.event_sink.name,
            after,
            up_to,
            "events have been removed that an event sink was not told of; it goes on behind them"
        );
        self.listener = self.engine.listen(up_to, None);
        self.told_up_to = up_to;
    }

    /// When the hold is prolonged, with how far it has got.
    fn keep_at(&self) -> Instant {
        let is_behind = self.written_down < self.told_up_to;
        self.kept_at + if is_behind { WRITE_DOWN_EVERY } else { KEEP_EVERY }
    }

    /// Prolongs the hold, and writes down how far it has got; `false` if another engine holds the event sink.
    async fn keep_on(&mut self) -> bool {
        match self.keep().await {
            Ok(is_held) => is_held,
            Err(error) => {
                tracing::warn!(event_sink = self.event_sink.name, error = %error_chain(&error), "how far an event sink has got could not be written down");
                // What is told from here on may be told twice.
                tokio::time::sleep(FIRST_PAUSE).await;
                true
            }
        }
    }

    /// An event, and what follows it in a moment.
    async fn batch(&mut self, first: FeedItem) -> Vec<FeedItem> {
        let mut batch = vec![first];
        tokio::time::sleep(BREATH).await;
        while batch.len() < AT_ONCE {
            let Some(Ok(item)) = self.listener.next().now_or_never() else {
                break;
            };
            batch.push(item);
        }
        batch
    }

    /// Says them until the broker has them; `false` if it is time to stop, or another engine holds the event sink.
    async fn say(&mut self, batch: &[FeedItem], stop: &CancellationToken) -> bool {
        match self.say_together(batch, stop).await {
            Said::All => true,
            Said::Stopped => false,
            Said::Never(_) if batch.len() > 1 => {
                for item in batch {
                    let is_late = Instant::now() >= self.keep_at();
                    if is_late && !self.keep_on().await {
                        return false;
                    }
                    if !Box::pin(self.say(std::slice::from_ref(item), stop)).await {
                        return false;
                    }
                }
                true
            }
            Said::Never(error) => {
                self.leave_out(batch, &error);
                true
            }
        }
    }

    async fn say_together(&mut self, batch: &[FeedItem], stop: &CancellationToken) -> Said {
        let source = &self.engine.0.webhooks.source;
        let announced = batch
            .iter()
            .map(|item| announcement(&self.event_sink.form, item, source));
        let announced: Vec<Announcement> = announced.collect();
        let mut wait = FIRST_PAUSE;
        loop {
            match self.event_sink.announcer.announce(&announced).await {
                Ok(()) => {
                    self.goes_on_after(batch);
                    self.engine
                        .0
                        .metrics
                        .count_told(self.event_sink.name, batch.len());
                    return Said::All;
                }
                Err(error) if error.is_of_the_message() => return Said::Never(error),
                Err(error) => {
                    self.engine
                        .0
                        .metrics
                        .count_event_sink_failure(self.event_sink.name);
                    tracing::warn!(event_sink = self.event_sink.name, events = batch.len(), error = %error_chain(&error), "events could not be told; they will be");
                }
            }
            if !pause(stop, wait).await || !self.still_holds().await {
                return Said::Stopped;
            }
            wait = (wait * 2).min(LONGEST_PAUSE);
        }
    }

    /// Goes on without what can never be told: all that comes after it would wait for ever.
    fn leave_out(&mut self, batch: &[FeedItem], error: &BusError) {
        for item in batch {
            tracing::error!(
                event_sink = self.event_sink.name,
                sequence = item.sequence,
                event = %item.event.id,
                kind = item.event.kind.as_str(),
                error = %error_chain(error),
                "an event can never be told and is left out; listeners have to read it from the API"
            );
            self.engine.0.metrics.count_left_out(self.event_sink.name);
        }
        self.goes_on_after(batch);
    }

    fn goes_on_after(&mut self, batch: &[FeedItem]) {
        self.told_up_to = batch.last().map_or(self.told_up_to, |item| item.sequence);
    }

    /// Keeps the event sink while the broker is away, without saying that anything was told.
    async fn still_holds(&mut self) -> bool {
        let until = self.engine.0.clock.now() + HELD_FOR;
        let mut reader = self.engine.0.db.reader();
        let kept =
            ringfence_db::keep_event_sink(&mut reader, self.event_sink.name, &self.holder, None, until).await;
        // A database that is away decides nothing: the broker is tried on, and what is told is told again at worst.
        kept.unwrap_or(true)
    }

    async fn keep(&mut self) -> Result<bool, EngineError> {
        let until = self.engine.0.clock.now() + HELD_FOR;
        let mut reader = self.engine.0.db.reader();
        let told = Some(self.told_up_to);
        let is_held =
            ringfence_db::keep_event_sink(&mut reader, self.event_sink.name, &self.holder, told, until)
                .await?;
        self.written_down = self.told_up_to;
        self.kept_at = Instant::now();
        Ok(is_held)
    }
}
