//! Steps of one process that change the gate object at once: one of them writes for all, since each would overtake all others, which would
//! have to read the object anew.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::MutexGuard;
use tokio::sync::oneshot::{self, error::TryRecvError};

use super::object::Entries;

/// The entries that the object has.
pub(super) type Data = BTreeMap<String, String>;

/// The changes that wait to be written.
#[derive(Default)]
pub(in crate::kubernetes) struct GateTurns {
    waiting: Mutex<Vec<Waiting>>,
    turn: tokio::sync::Mutex<()>,
}

/// A change of one step.
struct Waiting {
    entries: Entries,
    /// Gets the object as it was read back.
    written: oneshot::Sender<Arc<Data>>,
}

/// What becomes of a change.
pub(super) enum Turn<'a> {
    /// Another step has written it, and has read this back.
    Written(Arc<Data>),
    /// The step is to write it, and those of all steps that wait.
    Own(Batch<'a>),
}

/// The changes of all steps that one step writes. No other step writes meanwhile.
pub(super) struct Batch<'a> {
    waiting: Vec<Waiting>,
    /// Makes the step's own change one that still waits.
    _answer: oneshot::Receiver<Arc<Data>>,
    _turn: MutexGuard<'a, ()>,
}

impl Batch<'_> {
    /// The changes of those steps that still wait: what a step has asked for whose time has run out must not be written any more.
    pub fn entries(&mut self) -> Entries {
        self.waiting.retain(|one| !one.written.is_closed());
        let entries = self.waiting.iter().flat_map(|one| one.entries.clone());
        entries.collect()
    }

    /// Tells all steps what was read back.
    pub fn tell(self, data: &Arc<Data>) {
        for one in self.waiting {
            // A step that waits no more wants no answer.
            let _ = one.written.send(Arc::clone(data));
        }
    }
}

impl GateTurns {
    /// Waits until these entries are written, or are to be written by the step that asks.
    pub(super) async fn take(&self, entries: &Entries) -> Turn<'_> {
        loop {
            let (written, mut answer) = oneshot::channel();
            let entries = entries.clone();
            self.waiting.lock().push(Waiting { entries, written });
            let turn = self.turn.lock().await;
            match answer.try_recv() {
                Ok(data) => return Turn::Written(data),
                // The step that was to write for this one has failed, or its time has run out.
                Err(TryRecvError::Closed) => {}
                Err(TryRecvError::Empty) => {
                    let waiting = std::mem::take(&mut *self.waiting.lock());
                    return Turn::Own(Batch {
                        waiting,
                        _answer: answer,
                        _turn: turn,
                    });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::future::join_all;
    use tokio::time::{sleep, timeout};

    use super::*;

    const SOON: Duration = Duration::from_millis(20);
    const LATE: Duration = Duration::from_millis(300);

    /// An object, and how often it was written.
    #[derive(Default)]
    struct Object {
        turns: GateTurns,
        data: Mutex<Data>,
        writes: Mutex<u32>,
    }

    impl Object {
        async fn set(&self, node: &str, takes: Duration) -> Arc<Data> {
            let entries = Entries::from([(node.to_owned(), Some("1".to_owned()))]);
            let mut batch = match self.turns.take(&entries).await {
                Turn::Written(data) => return data,
                Turn::Own(batch) => batch,
            };
            sleep(takes).await;
            let mut data = self.data.lock();
            for (node, value) in batch.entries() {
                data.extend(value.map(|value| (node, value)));
            }
            *self.writes.lock() += 1;
            let seen = Arc::new(data.clone());
            batch.tell(&seen);
            seen
        }

        fn nodes(&self) -> Vec<String> {
            self.data.lock().keys().cloned().collect()
        }
    }

    #[tokio::test]
    async fn one_step_writes_for_all_that_wait() {
        let object = Object::default();
        let nodes: Vec<String> = (0..50).map(|number| format!("n{number}")).collect();
        let seen = join_all(nodes.iter().map(|node| object.set(node, SOON))).await;
        for (node, data) in nodes.iter().zip(seen) {
            assert!(data.contains_key(node), "{node} was told before it was written");
        }
        assert_eq!(object.nodes().len(), 50);
        assert!(*object.writes.lock() <= 2, "{}", object.writes.lock());
    }

    #[tokio::test]
    async fn what_a_step_has_asked_for_whose_time_has_run_out_is_not_written() {
        let object = Object::default();
        let first = object.set("first", LATE);
        let late = async {
            let second = timeout(SOON, object.set("second", LATE)).await;
            assert!(second.is_err());
        };
        tokio::join!(first, late);
        assert_eq!(object.set("third", SOON).await.len(), 2);
        assert_eq!(object.nodes(), ["first", "third"]);
    }

    #[tokio::test]
    async fn a_step_that_ends_amid_its_write_leaves_the_others_to_write_for_themselves() {
        let object = Object::default();
        let ends = async {
            let first = timeout(SOON * 2, object.set("first", LATE)).await;
            assert!(first.is_err());
        };
        let others = join_all([object.set("second", SOON), object.set("third", SOON)]);
        let ((), seen) = tokio::join!(ends, others);
        assert!(seen.iter().all(|data| !data.is_empty()));
        assert_eq!(object.nodes(), ["second", "third"]);
    }
}
