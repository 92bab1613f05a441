//! Attempts: one try of one task by one worker, under a lease and a deadline.

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::guard::{Guard, on};
use crate::{Backend, MethodId, Observation, Timestamp, words};

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Outcome {
    /// The wanted state was read back after the command.
    Confirmed,
    /// The device, or the driver before it acted, said no: another try of this command is pointless.
    Refused,
    /// The result is not known: a timeout, a killed worker, an answer that could not be read, another state than the wanted one.
    Unknown,
}

words!(Outcome);

/// Where an attempt stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "status")]
pub enum AttemptStatus {
    /// Sent out; no worker has claimed it. It has not acted.
    Dispatched {
        /// Without a claim by then it is given up.
        claim_by: Timestamp,
    },
    /// A worker acts.
    Claimed {
        /// Without a sign of life by then the worker counts as dead.
        lease_until: Timestamp,
        /// The worker stops by itself before this; until then it may be acting even if its lease ran out.
        deadline: Timestamp,
    },
    /// Over.
    Ended {
        /// How.
        outcome: Outcome,
        /// When the engine learnt of it.
        ended_at: Timestamp,
    },
    /// Ended with its operation before a worker claimed it; it never acted.
    Cancelled {
        /// When.
        ended_at: Timestamp,
    },
}

/// The way in which an attempt is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptBy {
    /// With a method.
    Method {
        /// The level of the task that it belongs to, counted from 0.
        level: usize,
        /// The method.
        id: MethodId,
        /// The method's name when the operation began.
        name: String,
        /// The method's driver.
        driver: String,
    },
    /// By a platform.
    Platform {
        /// Which sort.
        backend: Backend,
        /// The platform's name in the configuration.
        name: String,
        /// Whether it asks for nothing, and follows what another worker may have begun.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        only_looks: bool,
    },
}

impl AttemptBy {
    /// The method's name, or the platform's with its sort before it.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Method { name, .. } => name.clone(),
            Self::Platform { backend, name, .. } => backend.label(name),
        }
    }

    /// The method, where it is one.
    #[must_use]
    pub fn method_id(&self) -> Option<MethodId> {
        match self {
            Self::Method { id, .. } => Some(*id),
            Self::Platform { .. } => None,
        }
    }

    /// The word for the code that speaks to the device or the platform.
    #[must_use]
    pub fn driver(&self) -> &str {
        match self {
            Self::Method { driver, .. } => driver,
            Self::Platform { backend, .. } => backend.as_str(),
        }
    }
}

/// One try of one task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Its number within the operation, from 1.
    pub number: u32,
    /// The way in which it is made.
    pub by: AttemptBy,
    /// When it was sent out.
    pub started_at: Timestamp,
    /// The worker that claimed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// The claim's own id: a claim that is asked again gets the answer that it got first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_id: Option<uuid::Uuid>,
    /// When the claim was granted: what is observed later was observed after the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_at: Option<Timestamp>,
    /// Where it stands.
    #[serde(flatten)]
    pub state: AttemptStatus,
    /// Whether it says nothing of the task, and costs no try: its platform could not be asked, was just back and knew no host as up, or met a
    /// closed gate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub was_away: bool,
    /// What was read back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observation: Option<Observation>,
    /// Why it did not succeed, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl Attempt {
    /// Whether it was made with this method of this level.
    #[must_use]
    pub fn is_by(&self, of_level: usize, method: MethodId) -> bool {
        match &self.by {
            AttemptBy::Method { level, id, .. } => *level == of_level && *id == method,
            AttemptBy::Platform { .. } => false,
        }
    }

    /// Whether it counts as a try of its task: a worker had claimed it, and something may have been asked for.
    #[must_use]
    pub fn is_try(&self) -> bool {
        self.claimed_at.is_some() && !self.was_away && !self.only_looks()
    }

    /// Whether it asks for nothing, and follows what another worker may have begun.
    #[must_use]
    pub fn only_looks(&self) -> bool {
        match self.by {
            AttemptBy::Platform { only_looks, .. } => only_looks,
            AttemptBy::Method { .. } => false,
        }
    }

    /// What it has to say for itself, for a person.
    #[must_use]
    pub fn in_words(&self) -> String {
        let outcome = self.outcome().map_or("open", Outcome::as_str);
        match &self.detail {
            Some(detail) => format!("{}: {outcome}, {detail}", self.by.name()),
            None => format!("{}: {outcome}", self.by.name()),
        }
    }

    /// The moment that everything which its observation shows was read after, by the engine's clock.
    #[must_use]
    pub fn read_at(&self) -> Option<Timestamp> {
        let after_ms = self.observation.as_ref().map_or(0, |seen| seen.after_ms);
        let after = TimeDelta::milliseconds(i64::try_from(after_ms).unwrap_or(i64::MAX / 2));
        let read_at = self.claimed_at?.checked_add_signed(after)?;
        if !on(Guard::ReadBeforeItsResult) {
            return self.ended_at();
        }
        Some(self.ended_at().map_or(read_at, |ended_at| read_at.min(ended_at)))
    }

    /// The outcome, once it is over.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        match self.state {
            AttemptStatus::Ended { outcome, .. } => Some(outcome),
            AttemptStatus::Dispatched { .. }
            | AttemptStatus::Claimed { .. }
            | AttemptStatus::Cancelled { .. } => None,
        }
    }

    /// Whether it still waits for a claim or a result.
    #[must_use]
    pub fn is_open(&self) -> bool {
        match self.state {
            AttemptStatus::Dispatched { .. } | AttemptStatus::Claimed { .. } => true,
            AttemptStatus::Ended { .. } | AttemptStatus::Cancelled { .. } => false,
        }
    }

    /// When it was over.
    #[must_use]
    pub fn ended_at(&self) -> Option<Timestamp> {
        match self.state {
            AttemptStatus::Ended { ended_at, .. } | AttemptStatus::Cancelled { ended_at } => Some(ended_at),
            AttemptStatus::Dispatched { .. } | AttemptStatus::Claimed { .. } => None,
        }
    }
}
