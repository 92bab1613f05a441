//! Who waits at the door, and who may go in together.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ringfence_core::{HostId, Input};
use ringfence_db::SeenHost;
use tokio::sync::oneshot;

use super::Tried;
use crate::log::Door;
use crate::taken::claim_in;
use crate::{Context, EngineError};

/// Hosts that share a transaction at most. A greater one keeps its hosts locked for longer.
const MOST_HOSTS: usize = 32;
/// Inputs that share a transaction at most.
const MOST_TOGETHER: usize = 64;
/// Transactions at a time; SQLite has one writer.
const LANES: usize = 2;

/// An input at the door.
pub(super) struct Knock {
    pub host_id: HostId,
    pub input: Input,
    pub by: Context,
    pub door: Door,
    /// The host as whoever knocks has read it, to save another look.
    pub seen: Option<Box<SeenHost>>,
    pub answer: oneshot::Sender<Result<Tried, EngineError>>,
}

/// What waits, and how many lanes are at work.
pub(crate) struct Queue {
    most_lanes: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Knock>,
    lanes: usize,
}

impl Queue {
    pub fn new(is_sqlite: bool) -> Self {
        Self {
            most_lanes: if is_sqlite { 1 } else { LANES },
            state: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place in the queue; `true` if the caller has to open a lane.
    pub(super) fn push(&self, knock: Knock) -> bool {
        let mut state = self.lock();
        state.waiting.push_back(knock);
        let has_room = state.lanes < self.most_lanes;
        state.lanes += usize::from(has_room);
        has_room
    }

    /// What a lane carries out next; `None` closes the lane.
    pub(super) fn next(&self) -> Option<Vec<Knock>> {
        let mut state = self.lock();
        let together = take_together(&mut state.waiting);
        if together.is_empty() {
            state.lanes -= 1;
            return None;
        }
        Some(together)
    }

    pub(super) fn is_waited_for(&self) -> bool {
        !self.lock().waiting.is_empty()
    }

    /// A lane is gone without having been closed. Without another one, those who wait are interrupted when they are dropped.
    pub(super) fn abandon(&self) -> VecDeque<Knock> {
        let mut state = self.lock();
        state.lanes -= 1;
        if state.lanes > 0 {
            return VecDeque::new();
        }
        std::mem::take(&mut state.waiting)
    }
}

/// Takes devices, gives them back, or neither. Only those of one kind go together: each then takes its locks in one order.
fn takes_devices(input: &Input) -> bool {
    claim_in(input).is_some()
}

/// The first, and what may go with it. The rest stays in order.
fn take_together(waiting: &mut VecDeque<Knock>) -> Vec<Knock> {
    let Some(first) = waiting.front() else {
        return Vec::new();
    };
    let kind = takes_devices(&first.input);
    let mut together = Vec::with_capacity(waiting.len().min(MOST_TOGETHER));
    let mut hosts = HashSet::with_capacity(MOST_HOSTS);
    for knock in std::mem::take(waiting) {
        let is_room =
            together.len() < MOST_TOGETHER && (hosts.len() < MOST_HOSTS || hosts.contains(&knock.host_id));
        if is_room && takes_devices(&knock.input) == kind {
            hosts.insert(knock.host_id);
            together.push(knock);
        } else {
            waiting.push_back(knock);
        }
    }
    together
}

#[cfg(test)]
mod tests {
    use ringfence_core::{AttemptId, Claim, FencingKind, Generation, OperationId};
    use uuid::Uuid;

    use super::*;

    fn knock(host: u128, input: Input) -> Knock {
        Knock {
            host_id: HostId(Uuid::from_u128(host)),
            door: Door::new(&input),
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

    fn hosts(knocks: &[Knock]) -> Vec<u128> {
        knocks.iter().map(|knock| knock.host_id.0.as_u128()).collect()
    }

    #[test]
    fn what_goes_together_is_of_one_kind_and_the_rest_keeps_its_order() {
        let mut waiting: VecDeque<_> = [
            knock(1, Input::tick()),
            knock(1, Input::tick()),
            knock(2, claim(2)),
            knock(3, Input::tick()),
            knock(3, claim(3)),
            knock(4, Input::tick()),
        ]
        .into();
        assert_eq!(hosts(&take_together(&mut waiting)), [1, 1, 3, 4]);
        assert_eq!(hosts(&take_together(&mut waiting)), [2, 3]);
        assert!(take_together(&mut waiting).is_empty());
    }

    #[test]
    fn there_is_a_bound_to_the_hosts_that_go_together_and_to_their_inputs() {
        let mut waiting: VecDeque<_> = (0..200).map(|at| knock(at / 50, Input::tick())).collect();
        assert_eq!(take_together(&mut waiting).len(), 64);
        assert_eq!(hosts(&take_together(&mut waiting))[..36], [1; 36]);
        let mut waiting: VecDeque<_> = (0..40).map(|host| knock(host, Input::tick())).collect();
        for (count, first) in [(32, 0), (8, 32)] {
            let together = hosts(&take_together(&mut waiting));
            assert_eq!((together.len(), together[0]), (count, first));
        }
    }

    #[test]
    fn a_lane_is_opened_only_while_there_is_room_and_is_closed_when_nothing_waits() {
        let queue = Queue::new(true);
        assert!(queue.push(knock(1, Input::tick())));
        assert!(!queue.push(knock(2, Input::tick())));
        assert_eq!(queue.next().map(|together| together.len()), Some(2));
        assert!(!queue.push(knock(3, Input::tick())), "the lane is still at work");
        assert_eq!(queue.next().map(|together| together.len()), Some(1));
        assert!(queue.next().is_none());
        assert!(queue.push(knock(4, Input::tick())));
    }

    #[test]
    fn a_lane_that_is_gone_keeps_nobody_waiting_and_makes_room_for_another() {
        let queue = Queue::new(false);
        assert!(queue.push(knock(1, Input::tick())));
        assert!(queue.push(knock(2, Input::tick())));
        assert!(queue.abandon().is_empty(), "there is another lane");
        assert_eq!(hosts(Vec::from(queue.abandon()).as_slice()), [1, 2]);
        assert!(queue.push(knock(3, Input::tick())));
        assert_eq!(queue.next().map(|together| together.len()), Some(1));
    }
}
