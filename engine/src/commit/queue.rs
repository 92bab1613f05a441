//! Requests that wait, and which of them may share a transaction.

use std::collections::{HashSet, VecDeque};

use parking_lot::{Mutex, MutexGuard};
use ringfence_core::{HostId, Input};
use ringfence_db::SeenHost;
use tokio::sync::oneshot;

use super::Tried;
use crate::device_lease::claim_in;
use crate::log::ChangeLog;
use crate::{Context, EngineError};

/// Hosts that share a transaction at most. A greater one keeps its hosts locked for longer.
const MOST_HOSTS: usize = 32;
/// Requests that share a transaction at most.
const MOST_REQUESTS: usize = 64;
/// Transactions at a time; SQLite has one writer.
const COMMITTERS: usize = 2;

/// An input that waits to be carried out.
pub(super) struct Request {
    pub host_id: HostId,
    pub input: Input,
    pub by: Context,
    pub log: ChangeLog,
    /// The host as the caller has read it, to save another look.
    pub seen: Option<Box<SeenHost>>,
    pub answer: oneshot::Sender<Result<Tried, EngineError>>,
}

/// What waits, and how many committers are at work.
pub(crate) struct RequestQueue {
    most_committers: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Request>,
    committers: usize,
}

impl RequestQueue {
    pub fn new(is_sqlite: bool) -> Self {
        Self {
            most_committers: if is_sqlite { 1 } else { COMMITTERS },
            state: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Takes a place in the queue; `true` if the caller has to start a committer.
    pub(super) fn push(&self, request: Request) -> bool {
        let mut state = self.lock();
        state.waiting.push_back(request);
        let has_room = state.committers < self.most_committers;
        state.committers += usize::from(has_room);
        has_room
    }

    /// What a committer carries out next; `None` ends it.
    pub(super) fn next(&self) -> Option<Vec<Request>> {
        let mut state = self.lock();
        let batch = take_batch(&mut state.waiting);
        if batch.is_empty() {
            state.committers -= 1;
            return None;
        }
        Some(batch)
    }

    pub(super) fn is_waited_for(&self) -> bool {
        !self.lock().waiting.is_empty()
    }

    /// A committer is gone without having ended. Without another one, the requests that wait are interrupted when they are dropped.
    pub(super) fn abandon(&self) -> VecDeque<Request> {
        let mut state = self.lock();
        state.committers -= 1;
        if state.committers > 0 {
            return VecDeque::new();
        }
        std::mem::take(&mut state.waiting)
    }
}

/// Whether it leases a device. Those that do and those that do not, which may end leases, are never together: each transaction then takes its
/// locks on devices in one order.
fn leases_device(input: &Input) -> bool {
    claim_in(input).is_some()
}

/// The first, and what may go with it. The rest stays in order.
fn take_batch(waiting: &mut VecDeque<Request>) -> Vec<Request> {
    let Some(first) = waiting.front() else {
        return Vec::new();
    };
    let kind = leases_device(&first.input);
    let mut batch = Vec::with_capacity(waiting.len().min(MOST_REQUESTS));
    let mut hosts = HashSet::with_capacity(MOST_HOSTS);
    for request in std::mem::take(waiting) {
        let is_room =
            batch.len() < MOST_REQUESTS && (hosts.len() < MOST_HOSTS || hosts.contains(&request.host_id));
        if is_room && leases_device(&request.input) == kind {
            hosts.insert(request.host_id);
            batch.push(request);
        } else {
            waiting.push_back(request);
        }
    }
    batch
}

#[cfg(test)]
mod tests {
    use ringfence_core::{AttemptId, Claim, FencingKind, Generation, OperationId};
    use uuid::Uuid;

    use super::*;

    fn request(host: u128, input: Input) -> Request {
        Request {
            host_id: HostId(Uuid::from_u128(host)),
            log: ChangeLog::new(&input),
            input,
            by: Context::own("test"),
            seen: None,
            answer: oneshot::channel().0,
        }
    }

    fn claim(host: u128) -> Input {
        Input::Claim(Claim {
            host_id: HostId(Uuid::from_u128(host)),
            attempt: AttemptId {
                operation_id: OperationId(Uuid::nil()),
                number: 1,
            },
            generation: Generation(1),
            kind: FencingKind::PowerOff.into(),
            worker: "w".to_owned(),
            claim_id: Uuid::nil(),
        })
    }

    fn hosts(requests: &[Request]) -> Vec<u128> {
        requests
            .iter()
            .map(|request| request.host_id.0.as_u128())
            .collect()
    }

    #[test]
    fn a_batch_is_of_one_kind_and_the_rest_keeps_its_order() {
        let mut waiting: VecDeque<_> = [
            request(1, Input::tick()),
            request(1, Input::tick()),
            request(2, claim(2)),
            request(3, Input::tick()),
            request(3, claim(3)),
            request(4, Input::tick()),
        ]
        .into();
        assert_eq!(hosts(&take_batch(&mut waiting)), [1, 1, 3, 4]);
        assert_eq!(hosts(&take_batch(&mut waiting)), [2, 3]);
        assert!(take_batch(&mut waiting).is_empty());
    }

    #[test]
    fn a_batch_has_a_limit_of_hosts_and_of_requests() {
        let mut waiting: VecDeque<_> = (0..200).map(|at| request(at / 50, Input::tick())).collect();
        assert_eq!(take_batch(&mut waiting).len(), 64);
        assert_eq!(hosts(&take_batch(&mut waiting))[..36], [1; 36]);
        let mut waiting: VecDeque<_> = (0..40).map(|host| request(host, Input::tick())).collect();
        for (count, first) in [(32, 0), (8, 32)] {
            let together = hosts(&take_batch(&mut waiting));
            assert_eq!((together.len(), together[0]), (count, first));
        }
    }

    #[test]
    fn a_committer_is_started_only_while_there_is_room_and_ends_when_the_queue_is_empty() {
        let queue = RequestQueue::new(true);
        assert!(queue.push(request(1, Input::tick())));
        assert!(!queue.push(request(2, Input::tick())));
        assert_eq!(queue.next().map(|batch| batch.len()), Some(2));
        assert!(
            !queue.push(request(3, Input::tick())),
            "the committer still works"
        );
        assert_eq!(queue.next().map(|batch| batch.len()), Some(1));
        assert!(queue.next().is_none());
        assert!(queue.push(request(4, Input::tick())));
    }

    #[test]
    fn a_committer_that_has_gone_keeps_no_request_waiting_and_makes_room() {
        let queue = RequestQueue::new(false);
        assert!(queue.push(request(1, Input::tick())));
        assert!(queue.push(request(2, Input::tick())));
        assert!(queue.abandon().is_empty(), "another committer works");
        assert_eq!(hosts(Vec::from(queue.abandon()).as_slice()), [1, 2]);
        assert!(queue.push(request(3, Input::tick())));
        assert_eq!(queue.next().map(|batch| batch.len()), Some(1));
    }
}
