//! One queue: messages that wait, and those who serve it.

use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::dead::Dead;
use crate::limits::{DELIVERY_LIMIT, MAX_QUEUE_LENGTH};
use crate::{BusError, Deliveries, Delivery, Message, ReplyTo, Settle};

/// A message with what the queue knows about it.
pub(super) struct Entry {
    pub message: Arc<Message>,
    pub reply_to: Option<ReplyTo>,
    /// When its sender stops to wait for it.
    pub expires: Option<Instant>,
    returned: u32,
}

impl Entry {
    pub fn new(message: &Message) -> Self {
        Self {
            message: Arc::new(message.clone()),
            reply_to: None,
            expires: None,
            returned: 0,
        }
    }

    pub fn question(message: &Message, reply_to: ReplyTo, expires: Instant) -> Self {
        Self {
            reply_to: Some(reply_to),
            expires: Some(expires),
            ..Self::new(message)
        }
    }

    fn is_stale(&self, now: Instant) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}

/// What became of a delivery.
enum Outcome {
    Done,
    Again,
    Never,
}

struct Server {
    id: u64,
    /// How many more deliveries it may hold.
    free: u16,
    out: mpsc::Sender<Delivery>,
}

#[derive(Default)]
struct State {
    ready: VecDeque<Entry>,
    /// In the order in which they are served next.
    servers: VecDeque<Server>,
    served: u64,
}

/// Servers that have gone away. Dropping one returns its deliveries, so it must not be dropped under the lock.
type Gone = VecDeque<Server>;

pub(super) struct MemoryQueue {
    name: String,
    dead: Arc<Dead>,
    state: Mutex<State>,
}

impl MemoryQueue {
    pub fn new(name: String, dead: Arc<Dead>) -> Self {
        Self {
            name,
            dead,
            state: Mutex::default(),
        }
    }

    pub fn put(self: &Arc<Self>, entry: Entry) -> Result<(), BusError> {
        let gone = {
            let mut state = self.lock();
            if state.ready.len() >= MAX_QUEUE_LENGTH {
                let now = Instant::now();
                state.ready.retain(|waiting| !waiting.is_stale(now));
            }
            if state.ready.len() >= MAX_QUEUE_LENGTH {
                return Err(BusError::Full {
                    queue: self.name.clone(),
                });
            }
            state.ready.push_back(entry);
            self.hand_out(&mut state)
        };
        drop(gone);
        Ok(())
    }

    pub fn serve(self: &Arc<Self>, prefetch: u16) -> Deliveries {
        let free = prefetch.max(1);
        let (out, deliveries) = mpsc::channel(usize::from(free));
        let gone = {
            let mut state = self.lock();
            let all = std::mem::take(&mut state.servers);
            let (here, mut gone): (VecDeque<_>, Gone) =
                all.into_iter().partition(|server| !server.out.is_closed());
            state.servers = here;
            state.served += 1;
            let id = state.served;
            state.servers.push_back(Server { id, free, out });
            gone.extend(self.hand_out(&mut state));
            gone
        };
        drop(gone);
        deliveries
    }

    /// Ends every stream of deliveries.
    pub fn close(&self) {
        let servers = std::mem::take(&mut self.lock().servers);
        drop(servers);
    }

    /// Gives what waits to those who are free, in turn.
    fn hand_out(self: &Arc<Self>, state: &mut State) -> Gone {
        let mut gone = Gone::new();
        while let Some(at) = state.servers.iter().position(|server| server.free > 0) {
            let Some(entry) = state.next() else { break };
            let Some(mut server) = state.servers.remove(at) else {
                break;
            };
            let handed = match server.out.try_reserve() {
                Ok(place) => {
                    place.send(self.delivery(server.id, entry));
                    true
                }
                Err(_) => {
                    state.ready.push_front(entry);
                    false
                }
            };
            // A receiver that went away in this moment has left the delivery behind: dropping its sender returns it.
            if !handed || server.out.is_closed() {
                gone.push_back(server);
            } else {
                server.free -= 1;
                state.servers.push_back(server);
            }
        }
        gone
    }

    fn delivery(self: &Arc<Self>, server: u64, entry: Entry) -> Delivery {
        Delivery {
            message: (*entry.message).clone(),
            redelivered: entry.returned > 0,
            reply_to: entry.reply_to.clone(),
            settle: Box::new(Ticket {
                queue: self.clone(),
                server,
                entry: Some(entry),
            }),
        }
    }

    fn settle(self: &Arc<Self>, server: u64, entry: Entry, outcome: Outcome) {
        let buried = match outcome {
            Outcome::Done => None,
            Outcome::Never => Some("rejected"),
            Outcome::Again if entry.returned >= DELIVERY_LIMIT => Some("delivery_limit"),
            Outcome::Again => None,
        };
        if let Some(reason) = buried {
            self.dead.bury(&self.name, reason, &entry.message);
        }
        let gone = {
            let mut state = self.lock();
            if let Some(server) = state.servers.iter_mut().find(|known| known.id == server) {
                server.free += 1;
            }
            if buried.is_none() && matches!(outcome, Outcome::Again) {
                state.ready.push_front(Entry {
                    returned: entry.returned + 1,
                    ..entry
                });
            }
            self.hand_out(&mut state)
        };
        drop(gone);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    fn next(&mut self) -> Option<Entry> {
        while let Some(entry) = self.ready.pop_front() {
            if entry.expires.is_none() || !entry.is_stale(Instant::now()) {
                return Some(entry);
            }
        }
        None
    }
}

/// A delivery that is being processed. When it is dropped, it is returned to the queue.
struct Ticket {
    queue: Arc<MemoryQueue>,
    server: u64,
    entry: Option<Entry>,
}

impl Ticket {
    fn settle(&mut self, outcome: Outcome) {
        if let Some(entry) = self.entry.take() {
            self.queue.settle(self.server, entry, outcome);
        }
    }
}

#[async_trait]
impl Settle for Ticket {
    async fn ack(mut self: Box<Self>) -> Result<(), BusError> {
        self.settle(Outcome::Done);
        Ok(())
    }

    async fn requeue(mut self: Box<Self>) -> Result<(), BusError> {
        self.settle(Outcome::Again);
        Ok(())
    }

    async fn reject(mut self: Box<Self>) -> Result<(), BusError> {
        self.settle(Outcome::Never);
        Ok(())
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.settle(Outcome::Again);
    }
}
