//! Publishes that wait for one place go together.

use std::collections::HashMap;
use std::sync::Arc;

use lapin::BasicProperties;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;

use super::bundle::{self, Piece};
use super::fault::short;
use super::publisher::Publisher;
use super::wire;
use crate::BusError;

/// Publishes to one place that are under way at a time. What comes meanwhile goes together with the next; a message that comes alone
/// goes alone and at once.
const UNDER_WAY: usize = 2;

/// Where messages go, and what the broker has to know of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub queue: String,
    /// Where the answers to them go.
    pub reply_to: Option<String>,
    /// Milliseconds after which they are pointless.
    pub expires_ms: Option<u128>,
}

impl Place {
    /// With the way there in its properties.
    pub fn address(&self, mut properties: BasicProperties) -> Result<BasicProperties, BusError> {
        if let Some(queue) = &self.reply_to {
            properties = properties.with_reply_to(short(queue)?);
        }
        if let Some(expires_ms) = self.expires_ms {
            properties = properties.with_expiration(short(&expires_ms.to_string())?);
        }
        Ok(properties)
    }
}

struct Waiting {
    piece: Piece,
    done: oneshot::Sender<Result<(), BusError>>,
}

#[derive(Default)]
struct PlaceQueue {
    waiting: Vec<Waiting>,
    under_way: usize,
}

/// Everything that waits, by place. A place with nothing under way is forgotten.
pub(super) struct Together {
    publisher: Arc<Publisher>,
    queues: Mutex<HashMap<Place, PlaceQueue>>,
}

impl Together {
    pub fn new(publisher: Arc<Publisher>) -> Self {
        Self {
            publisher,
            queues: Mutex::default(),
        }
    }

    /// Publishes a message, perhaps with others; `Ok` once the broker has it for good.
    pub async fn publish(self: &Arc<Self>, place: Place, piece: Piece) -> Result<(), BusError> {
        let (done, published) = oneshot::channel();
        if self.push(&place, Waiting { piece, done }) {
            // Not by the caller that waits here: it may go away, and the other callers' messages with it.
            tokio::spawn(Arc::clone(self).lane(place));
        }
        published.await.unwrap_or(Err(BusError::Closed))
    }

    /// Takes a place in the queue; `true` if there is room for another lane.
    fn push(&self, place: &Place, waiting: Waiting) -> bool {
        let mut queues = self.lock();
        let queue = queues.entry(place.clone()).or_default();
        queue.waiting.push(waiting);
        let has_room = queue.under_way < UNDER_WAY;
        queue.under_way += usize::from(has_room);
        has_room
    }

    async fn lane(self: Arc<Self>, place: Place) {
        while let Some(waiting) = self.next(&place) {
            let (pieces, asked): (Vec<_>, Vec<_>) =
                waiting.into_iter().map(|one| (one.piece, one.done)).unzip();
            let result = self.send(&place, &pieces).await;
            for done in asked {
                // Who asked may have gone away.
                let _ = done.send(result.as_ref().map_err(BusError::again).copied());
            }
        }
    }

    /// What goes next; `None` closes the lane.
    fn next(&self, place: &Place) -> Option<Vec<Waiting>> {
        let mut queues = self.lock();
        let queue = queues.get_mut(place)?;
        queue.waiting.retain(|one| !one.done.is_closed());
        if queue.waiting.is_empty() {
            queue.under_way -= 1;
            if queue.under_way == 0 {
                queues.remove(place);
            }
            return None;
        }
        let count = bundle::fitting(queue.waiting.iter().map(|one| &one.piece));
        Some(queue.waiting.drain(..count).collect())
    }

    async fn send(&self, place: &Place, pieces: &[Piece]) -> Result<(), BusError> {
        let [Piece { message, question }] = pieces else {
            let (properties, body) = bundle::bind(pieces)?;
            let properties = place.address(properties)?;
            return self.publisher.publish(&place.queue, properties, &body).await;
        };
        let mut properties = place.address(wire::properties(message)?)?;
        if let Some(question) = question {
            properties = properties.with_correlation_id(short(&question.to_string())?);
        }
        self.publisher
            .publish(&place.queue, properties, &message.body)
            .await
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Place, PlaceQueue>> {
        self.queues.lock()
    }
}
