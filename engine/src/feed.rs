//! The feed of events: one reader of the table per process, any number of listeners.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use ringfence_core::{HostId, error_chain};
use ringfence_db::{DbError, EventRow};
use tokio::sync::{Mutex, Notify, broadcast, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::{Engine, EngineError};

/// Events kept for listeners that are a little behind; one that is further behind reads the table.
const KEPT: usize = 4096;
/// Events that one look at the table reads.
const READ_AT_ONCE: u32 = 500;
/// How long a decision may be held up by passing its events on; beyond that it is left to the feed's own reader.
const PASSED_ON_WITHIN: Duration = Duration::from_millis(2);
/// Between two looks for new events where nothing announces them.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long to wait before listening for announcements is tried again.
const LISTEN_AGAIN_AFTER: Duration = Duration::from_secs(2);

/// An event, shared by all listeners.
pub type FeedItem = Arc<EventRow>;

/// The feed.
pub struct Feed {
    sender: broadcast::Sender<FeedItem>,
    wake: Notify,
    /// Held by the reader of the table; none before the first look.
    place: Mutex<Option<u64>>,
    /// Whether there is a place: what comes after it is passed on.
    has_begun: watch::Sender<bool>,
    read_up_to: AtomicU64,
    /// Those of the listeners that are this process itself.
    own: AtomicUsize,
}

impl Feed {
    pub(crate) fn new() -> Self {
        Self {
            sender: broadcast::channel(KEPT).0,
            wake: Notify::new(),
            place: Mutex::new(None),
            has_begun: watch::Sender::new(false),
            read_up_to: AtomicU64::new(0),
            own: AtomicUsize::new(0),
        }
    }

    /// How many listen at the moment, beside this process itself.
    pub(crate) fn listeners(&self) -> usize {
        let own = self.own.load(Ordering::Relaxed);
        self.sender.receiver_count().saturating_sub(own)
    }

    /// The number of the last event that was passed on.
    pub(crate) fn read_up_to(&self) -> u64 {
        self.read_up_to.load(Ordering::Relaxed)
    }

    pub(crate) fn nudge(&self) {
        self.wake.notify_one();
    }

    /// From here on events are passed on, whether or not they can be read at the moment.
    fn begin(&self, place: &mut Option<u64>, after: u64) -> u64 {
        *place = Some(after);
        self.has_begun.send_replace(true);
        after
    }

    /// Reads what is new and passes it on; whether there may be more.
    async fn pass_on(&self, engine: &Engine, place: &mut Option<u64>) -> Result<bool, DbError> {
        let mut reader = engine.0.db.reader_by_keys();
        let mut after = match *place {
            Some(after) => after,
            None => self.begin(place, ringfence_db::last_sequence(&mut reader).await?),
        };
        let rows = ringfence_db::events_after(&mut reader, after, None, READ_AT_ONCE).await?;
        let more = rows.len() == READ_AT_ONCE as usize;
        for row in rows {
            after = row.sequence;
            // An event without a listener is no error.
            let _ = self.sender.send(Arc::new(row));
        }
        *place = Some(after);
        self.read_up_to.store(after, Ordering::Relaxed);
        Ok(more)
    }
}

/// Hears every event after a number, in order, without gap or double.
pub struct Listener {
    engine: Engine,
    live: broadcast::Receiver<FeedItem>,
    after: u64,
    host_id: Option<HostId>,
    backlog: std::collections::VecDeque<FeedItem>,
    /// Whether the table has to be read before the live events can be believed to follow without a gap.
    is_behind: bool,
    is_own: bool,
}

impl Engine {
    /// Events of one decision were committed. Where they have their numbers and no reader is at work, they are passed on before
    /// anything else is done: to wait for another task takes as long as to read them. Decisions that come after do not wait for it.
    pub(crate) async fn pass_on_events(&self) {
        let feed = &self.0.feed;
        if self.0.db.is_sqlite()
            && let Ok(mut place) = feed.place.try_lock()
            && place.is_some()
            // All connections that read may be lent. What is dropped half-way has passed nothing on.
            && let Ok(Ok(false)) = timeout(PASSED_ON_WITHIN, feed.pass_on(self, &mut place)).await
        {
            return;
        }
        self.events_written();
    }

    /// Events were committed and are to be read: at once where they have their numbers, else by the engine that numbers them.
    pub(crate) fn events_written(&self) {
        if self.0.db.is_sqlite() {
            self.0.feed.nudge();
        } else {
            self.0.events_written.notify_one();
        }
    }

    /// Listens to everything with a number above `after`, of one host or of all.
    #[must_use]
    pub fn listen(&self, after: u64, host_id: Option<HostId>) -> Listener {
        self.listener(after, host_id, false)
    }

    /// Listens for this process itself, which is no listener that is counted.
    #[must_use]
    pub fn listen_within(&self, after: u64) -> Listener {
        self.0.feed.own.fetch_add(1, Ordering::Relaxed);
        self.listener(after, None, true)
    }

    fn listener(&self, after: u64, host_id: Option<HostId>, is_own: bool) -> Listener {
        Listener {
            engine: self.clone(),
            live: self.0.feed.sender.subscribe(),
            after,
            host_id,
            backlog: std::collections::VecDeque::new(),
            is_behind: true,
            is_own,
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if self.is_own {
            self.engine.0.feed.own.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Listener {
    /// The next event. Ends with an error if the database cannot be read, and then calling again goes on where it was; or if what
    /// comes next has been removed, and then it stays so.
    pub async fn next(&mut self) -> Result<FeedItem, EngineError> {
        loop {
            if let Some(item) = self.backlog.pop_front() {
                self.after = item.sequence;
                return Ok(item);
            }
            if self.is_behind {
                self.read_backlog().await?;
                continue;
            }
            match self.live.recv().await {
                Ok(item) if item.sequence <= self.after => {}
                Ok(item) => {
                    self.after = item.sequence;
                    if self.wants(&item) {
                        return Ok(item);
                    }
                }
                Err(broadcast::error::RecvError::Lagged(_)) => self.is_behind = true,
                // The sender lives as long as the engine, which this holds.
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        }
    }

    fn wants(&self, item: &EventRow) -> bool {
        let host_id = item.event.host.as_ref().map(|host| host.id);
        self.host_id.is_none() || self.host_id == host_id
    }

    async fn read_backlog(&mut self) -> Result<(), EngineError> {
        let mut feed = self.engine.0.feed.has_begun.subscribe();
        // What is committed between this look and the beginning of the feed is heard by no other way than another look.
        let has_begun = *feed.borrow();
        let mut reader = self.engine.0.db.reader_of_what_grows();
        let rows = ringfence_db::events_after(&mut reader, self.after, self.host_id, READ_AT_ONCE).await?;
        // Read afterwards: what was removed before the rows were read shows here.
        let up_to = ringfence_db::events_removed_up_to(&mut reader).await?;
        if self.after < up_to {
            let after = self.after;
            return Err(EngineError::EventsGone { after, up_to });
        }
        self.is_behind = !has_begun || rows.len() == READ_AT_ONCE as usize;
        if !has_begun && rows.is_empty() {
            // It lives as long as the engine, which this holds.
            let _ = feed.wait_for(|has_begun| *has_begun).await;
        }
        self.backlog.extend(rows.into_iter().map(Arc::new));
        Ok(())
    }
}

/// Reads new events and passes them on.
pub(crate) async fn follow(engine: Engine, stop: CancellationToken) {
    let feed = &engine.0.feed;
    loop {
        let passed_on = feed.pass_on(&engine, &mut *feed.place.lock().await).await;
        match passed_on {
            Ok(true) => continue,
            Ok(false) => {}
            Err(error) => tracing::warn!(error = %error_chain(&error), "the events could not be read"),
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = feed.wake.notified() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}

/// Hears of events that other processes have numbered. It only shortens the wait: without it the table is looked at regularly.
pub(crate) async fn listen(engine: Engine, stop: CancellationToken) {
    loop {
        match engine.0.db.announcements().await {
            Ok(None) => return,
            Ok(Some(mut announcements)) => loop {
                let heard = tokio::select! {
                    () = stop.cancelled() => return,
                    heard = announcements.next() => heard,
                };
                match heard {
                    Ok(()) => engine.0.feed.nudge(),
                    Err(error) => {
                        tracing::debug!(error = %error_chain(&error), "announcements of events are not heard");
                        break;
                    }
                }
            },
            Err(error) => {
                tracing::debug!(error = %error_chain(&error), "announcements of events are not heard")
            }
        }
        if !crate::pause::pause(&stop, LISTEN_AGAIN_AFTER).await {
            return;
        }
    }
}
