//! Messages that no service could process, for an operator to look at.

use std::collections::{BTreeMap, VecDeque};

use async_trait::async_trait;
use ringfence_core::Timestamp;
use serde_json::Value;

use crate::BusError;

/// A message that was refused or delivered too often. Nothing in it is believed: it may be forged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The message id that it carries, which need not be one of ours.
    pub id: String,
    /// The type that it claims.
    pub kind: String,
    /// The queue that it was in.
    pub queue: String,
    /// `rejected`, `delivery_limit`, `too_large`, `unreadable`, or another word of the broker's.
    pub reason: String,
    /// When it went to the dead letters, to the second, if that is known.
    pub died_at: Option<Timestamp>,
    /// The size of its body when it was sent.
    pub bytes: u64,
    /// Its body; empty if that was larger than [`crate::MAX_BODY_BYTES`].
    pub body: Vec<u8>,
}

/// What a dead letter says that it is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The host's name or, where the message holds no name, its id.
    pub host: Option<String>,
    /// The attempt, as `OPERATION/NUMBER`.
    pub attempt: Option<String>,
}

/// The dead letters at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// How many came from each queue.
    pub queues: BTreeMap<String, u64>,
    /// The last ones, newest first.
    pub newest: Vec<DeadLetter>,
}

/// A bus whose dead letters can be looked at. Looking removes none.
#[async_trait]
pub trait DeadLetters: Send + Sync {
    /// How many there are.
    async fn dead_letter_count(&self) -> Result<u64, BusError>;

    /// The oldest `limit` of them, oldest first; at most 100.
    async fn dead_letters(&self, limit: u16) -> Result<Vec<DeadLetter>, BusError>;

    /// All of them counted, and the newest `limit`; at most 100.
    async fn survey_dead_letters(&self, limit: u16) -> Result<Survey, BusError>;

    /// Removes those that came from the queue of this name, or all. The answer is how many those were.
    async fn remove_dead_letters(&self, queue: Option<&str>) -> Result<u64, BusError>;
}

/// The most that one look takes: all of them are in memory for the time.
pub(crate) const MOST: u16 = 100;

impl DeadLetter {
    /// What it says that it is about, as far as its body can be read.
    #[must_use]
    pub fn about(&self) -> About {
        let body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        // Of several that went together the first is told.
        let body = body.get(0).and_then(|first| first.get("body")).unwrap_or(&body);
        // A result holds the claim that it was made under.
        let said = body.get("claim").unwrap_or(body);
        let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
        let attempt = &said["attempt"];
        About {
            host: text(&said["host"]).or_else(|| text(&said["host_id"])),
            attempt: text(&attempt["operation_id"])
                .zip(attempt["number"].as_u64())
                .map(|(operation, number)| format!("{operation}/{number}")),
        }
    }

    /// Whether it came from this queue; `None` is any.
    pub(crate) fn is_of(&self, queue: Option<&str>) -> bool {
        queue.is_none_or(|queue| self.queue == queue)
    }
}

/// Counts letters as they come, oldest first, and keeps the last ones.
pub(crate) struct Counting {
    limit: usize,
    queues: BTreeMap<String, u64>,
    last: VecDeque<DeadLetter>,
}

impl Counting {
    pub fn new(limit: u16) -> Self {
        Self {
            limit: usize::from(limit.min(MOST)),
            queues: BTreeMap::new(),
            last: VecDeque::new(),
        }
    }

    pub fn add(&mut self, letter: DeadLetter) {
        *self.queues.entry(letter.queue.clone()).or_default() += 1;
        self.last.push_back(letter);
        if self.last.len() > self.limit {
            self.last.pop_front();
        }
    }

    pub fn into_survey(self) -> Survey {
        Survey {
            queues: self.queues,
            newest: self.last.into_iter().rev().collect(),
        }
    }
}
