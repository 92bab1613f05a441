//! The dead letters of the in-process bus.

use std::collections::VecDeque;

use parking_lot::Mutex;

use crate::clock::now;
use crate::dead_letters::{Counting, MOST};
use crate::limits::MAX_DEAD_LETTERS;
use crate::{DeadLetter, Message, Survey};

/// A bounded list: the oldest make room.
#[derive(Default)]
pub(super) struct Dead(Mutex<VecDeque<DeadLetter>>);

impl Dead {
    pub fn bury(&self, queue: &str, reason: &str, message: &Message) {
        tracing::warn!(queue, reason, kind = message.kind, id = %message.id, "a message went to the dead letters");
        let letter = DeadLetter {
            id: message.id.to_string(),
            kind: message.kind.clone(),
            queue: queue.to_owned(),
            reason: reason.to_owned(),
            died_at: Some(now()),
            bytes: message.body.len() as u64,
            body: message.body.clone(),
        };
        let mut letters = self.lock();
        if letters.len() >= MAX_DEAD_LETTERS {
            letters.pop_front();
        }
        letters.push_back(letter);
    }

    pub fn count(&self) -> u64 {
        self.lock().len() as u64
    }

    pub fn oldest(&self, limit: u16) -> Vec<DeadLetter> {
        let limit = usize::from(limit.min(MOST));
        self.lock().iter().take(limit).cloned().collect()
    }

    pub fn survey(&self, limit: u16) -> Survey {
        let mut counting = Counting::new(limit);
        self.lock()
            .iter()
            .cloned()
            .for_each(|letter| counting.add(letter));
        counting.into_survey()
    }

    pub fn remove(&self, queue: Option<&str>) -> u64 {
        let mut letters = self.lock();
        let before = letters.len();
        letters.retain(|letter| !letter.is_of(queue));
        (before - letters.len()) as u64
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, VecDeque<DeadLetter>> {
        self.0.lock()
    }
}
