//! Where the deliveries of one subscription stand, in memory: what waits, what is under way, and up to which number everything is
//! done. Events of one host go one after the other; a host whose event is not taken holds up no other host.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use ringfence_core::{EventFilter, HostId, SubscriptionId, Timestamp};
use ringfence_db::{DeliveryKind, DeliveryRow, DeliveryStatus};

use crate::feed::FeedItem;
use crate::ids::new_id;

/// Events that may be waiting or under way at a time; what comes after them waits in the table.
const MAX_OPEN: usize = 1000;

/// Events of one host, and events of no host, follow each other.
type OrderKey = Option<HostId>;

/// An event on its way.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub item: FeedItem,
    pub delivery: DeliveryRow,
}

impl Job {
    fn order_key(&self) -> OrderKey {
        self.item.event.host.as_ref().map(|host| host.id)
    }
}

pub(super) struct DeliveryOrder {
    subscription_id: SubscriptionId,
    filter: EventFilter,
    /// The number of the last event that was looked at.
    seen: u64,
    /// Numbers of events that are not done.
    open: BTreeSet<u64>,
    /// What waits, by host.
    waiting: HashMap<OrderKey, VecDeque<Job>>,
    /// The first of each order_key that nothing is under way of, by when it is due.
    ready: BTreeMap<(Timestamp, u64), OrderKey>,
}

impl DeliveryOrder {
    /// Goes on after the number `after`, up to which everything is done.
    pub fn new(subscription_id: SubscriptionId, filter: EventFilter, after: u64) -> Self {
        Self {
            subscription_id,
            filter,
            seen: after,
            open: BTreeSet::new(),
            waiting: HashMap::new(),
            ready: BTreeMap::new(),
        }
    }

    /// Whether one more event may be taken in.
    pub fn has_room(&self) -> bool {
        self.open.len() < MAX_OPEN
    }

    /// Everything with a number up to this one is done.
    pub fn done_up_to(&self) -> u64 {
        self.open.first().map_or(self.seen, |first| first - 1)
    }

    /// Takes in the next event, with its row in the log if an engine before this one has begun it. Returns the row if that ends here:
    /// the event is not wanted any more.
    pub fn take_in(
        &mut self,
        item: FeedItem,
        begun: Option<DeliveryRow>,
        now: Timestamp,
    ) -> Option<DeliveryRow> {
        self.seen = item.sequence;
        let host = item.event.host.as_ref().map(|host| host.name.as_str());
        if !self
            .filter
            .matches(item.event.kind, item.segment.as_deref(), host)
        {
            return begun.and_then(unwanted);
        }
        let new = || new_delivery(self.subscription_id, &item, now);
        let delivery = match begun {
            None => new(),
            Some(row) => match row.status {
                DeliveryStatus::Delivered => return None,
                DeliveryStatus::Pending => row,
                // The filter did not let it through for a while.
                DeliveryStatus::Failed => DeliveryRow { id: row.id, ..new() },
            },
        };
        self.await_turn(Job { item, delivery }, now);
        None
    }

    fn await_turn(&mut self, job: Job, now: Timestamp) {
        self.open.insert(job.item.sequence);
        let order_key = job.order_key();
        let waiting = self.waiting.entry(order_key).or_default();
        if waiting.is_empty() {
            self.ready.insert(due_key(&job, now), order_key);
        }
        waiting.push_back(job);
    }

    /// When something is due next.
    pub fn due_at(&self) -> Option<Timestamp> {
        self.ready.first_key_value().map(|((at, _), _)| *at)
    }

    /// The next event that is due. Until [`DeliveryOrder::ended`] is told of it, nothing else of its host is.
    pub fn start(&mut self, now: Timestamp) -> Option<Job> {
        let entry = self.ready.first_entry().filter(|entry| entry.key().0 <= now)?;
        let order_key = entry.remove();
        self.waiting
            .get(&order_key)
            .and_then(|waiting| waiting.front())
            .cloned()
    }

    /// A try has ended: the event is done, or waits for its next try.
    pub fn ended(&mut self, job: Job, now: Timestamp) {
        let order_key = job.order_key();
        let Some(waiting) = self.waiting.get_mut(&order_key) else {
            return;
        };
        if job.delivery.status == DeliveryStatus::Pending {
            self.ready.insert(due_key(&job, now), order_key);
            if let Some(front) = waiting.front_mut() {
                *front = job;
            }
            return;
        }
        self.open.remove(&job.item.sequence);
        waiting.pop_front();
        match waiting.front() {
            Some(next) => {
                self.ready.insert(due_key(next, now), order_key);
            }
            None => {
                self.waiting.remove(&order_key);
            }
        }
    }
}

fn due_key(job: &Job, now: Timestamp) -> (Timestamp, u64) {
    (job.delivery.next_at.unwrap_or(now), job.item.sequence)
}

/// What was tried, and passes the filter no more.
fn unwanted(row: DeliveryRow) -> Option<DeliveryRow> {
    let is_open = row.status == DeliveryStatus::Pending;
    is_open.then(|| DeliveryRow {
        status: DeliveryStatus::Failed,
        next_at: None,
        detail: Some("is not tried any more: the event does not pass the filter now".to_owned()),
        ..row
    })
}

fn new_delivery(subscription_id: SubscriptionId, item: &FeedItem, now: Timestamp) -> DeliveryRow {
    DeliveryRow {
        id: new_id(),
        subscription_id,
        kind: DeliveryKind::Event,
        sequence: Some(item.sequence),
        message_id: item.event.id,
        event_type: item.event.kind.as_str().to_owned(),
        host: item.event.host.as_ref().map(|host| host.name.clone()),
        status: DeliveryStatus::Pending,
        tries: 0,
        created_at: now,
        tried_at: None,
        next_at: Some(now),
        answer: None,
        detail: None,
        took_ms: None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use chrono::TimeDelta;
    use ringfence_core::{EventKind, Generation, SegmentId};
    use ringfence_db::{EventHost, EventRow, NewEvent};

    use uuid::Uuid;

    use super::*;

    fn at(s: i64) -> Timestamp {
        Timestamp::from_timestamp(1_800_000_000, 0).unwrap() + TimeDelta::seconds(s)
    }

    fn item(number: u64, host: u128) -> FeedItem {
        Arc::new(EventRow {
            sequence: number,
            event: NewEvent {
                id: Uuid::from_u128(u128::from(number)),
                host: Some(EventHost {
                    id: HostId(Uuid::from_u128(host)),
                    name: format!("h{host}"),
                    segment_id: SegmentId(Uuid::nil()),
                    sequence: number,
                    generation: Generation(1),
                }),
                kind: EventKind::HostFenced,
                occurred_at: at(0),
                data: serde_json::Value::Null,
            },
            segment: Some("rack".to_owned()),
        })
    }

    fn order(after: u64) -> DeliveryOrder {
        DeliveryOrder::new(SubscriptionId(Uuid::nil()), EventFilter::default(), after)
    }

    fn only(host: &str) -> EventFilter {
        EventFilter {
            hosts: vec![host.to_owned()],
            ..EventFilter::default()
        }
    }

    fn delivered(mut job: Job) -> Job {
        job.delivery.status = DeliveryStatus::Delivered;
        job.delivery.next_at = None;
        job
    }

    fn again_at(mut job: Job, s: i64) -> Job {
        job.delivery.tries += 1;
        job.delivery.next_at = Some(at(s));
        job
    }

    #[test]
    fn events_of_a_host_are_in_order_and_hosts_do_not_wait_for_each_other() {
        let mut order = order(0);
        for (number, host) in [(1, 1), (2, 1), (3, 2)] {
            order.take_in(item(number, host), None, at(0));
        }
        let first = order.start(at(0)).unwrap();
        let third = order.start(at(0)).unwrap();
        assert_eq!((first.item.sequence, third.item.sequence), (1, 3));
        assert!(order.start(at(0)).is_none());
        order.ended(delivered(third), at(0));
        assert_eq!(order.done_up_to(), 0);
        order.ended(again_at(first, 5), at(0));
        assert!(order.start(at(4)).is_none());
        assert_eq!(order.due_at(), Some(at(5)));
        let first = order.start(at(5)).unwrap();
        assert_eq!((first.item.sequence, first.delivery.tries), (1, 1));
        order.ended(delivered(first), at(5));
        assert_eq!(order.done_up_to(), 1);
        let second = order.start(at(5)).unwrap();
        order.ended(delivered(second), at(5));
        assert_eq!((order.done_up_to(), order.due_at()), (3, None));
        assert!(order.waiting.is_empty() && order.ready.is_empty());
    }

    #[test]
    fn another_engines_deliveries_are_not_repeated_and_its_tried_events_wait_on() {
        let mut first = order(0);
        first.take_in(item(1, 1), None, at(0));
        first.take_in(item(2, 2), None, at(0));
        let one = again_at(first.start(at(0)).unwrap(), 60).delivery;
        let two = delivered(first.start(at(0)).unwrap()).delivery;
        let mut second = order(0);
        for (number, host, begun) in [(1, 1, Some(one.clone())), (2, 2, Some(two)), (3, 3, None)] {
            assert_eq!(second.take_in(item(number, host), begun, at(1)), None);
        }
        assert_eq!(second.start(at(1)).unwrap().item.sequence, 3);
        assert!(second.start(at(59)).is_none());
        assert_eq!(second.start(at(60)).unwrap().delivery, one);
    }

    #[test]
    fn an_event_that_does_not_pass_the_filter_is_done_at_once_and_jobs_have_a_limit() {
        let mut order = DeliveryOrder::new(SubscriptionId(Uuid::nil()), only("h2"), 0);
        order.take_in(item(1, 1), None, at(0));
        assert_eq!((order.done_up_to(), order.due_at()), (1, None));
        for number in 2.. {
            if !order.has_room() {
                assert_eq!(number, 2 + MAX_OPEN as u64);
                break;
            }
            order.take_in(item(number, 2), None, at(0));
        }
        assert_eq!(order.done_up_to(), 1);
    }

    #[test]
    fn a_tried_event_that_no_longer_passes_is_ended_and_starts_again_once_it_passes() {
        let mut wide = order(0);
        wide.take_in(item(1, 1), None, at(0));
        let tried = again_at(wide.start(at(0)).unwrap(), 60).delivery;
        let mut narrow = DeliveryOrder::new(SubscriptionId(Uuid::nil()), only("h2"), 0);
        let over = narrow.take_in(item(1, 1), Some(tried.clone()), at(1)).unwrap();
        assert_eq!((over.id, over.status), (tried.id, DeliveryStatus::Failed));
        assert!(over.detail.as_ref().unwrap().contains("filter"), "{over:?}");
        assert_eq!(
            (over.tries, over.next_at, narrow.done_up_to()),
            (tried.tries, None, 1)
        );
        let mut wide_again = order(0);
        assert_eq!(wide_again.take_in(item(1, 1), Some(over), at(2)), None);
        let anew = wide_again.start(at(2)).unwrap().delivery;
        assert_eq!((anew.id, anew.tries, anew.created_at), (tried.id, 0, at(2)));
    }
}
