//! A request with a key is carried out once, however often it is sent.
//!
//! The key of a change is written in the change's own transaction (its *receipt*), so that a repeat finds it although the caller got no
//! answer. See docs/adr/0020.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use ringfence_core::{HostId, MethodId, OperationId, PlanId, SegmentId, SubscriptionId, Timestamp};
use ringfence_db::{DbError, KeyName, KeyRow, NewReceipt, Tx};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Context, Engine, EngineError};

/// For so long a key is kept.
pub(crate) const KEPT_FOR: TimeDelta = TimeDelta::hours(24);
/// For so long a try has the key to itself. Longer tries lose nothing but their key: a change needs it until its commit.
const HELD_FOR: TimeDelta = TimeDelta::seconds(60);
/// Looks at a key that other requests may change meanwhile.
const LOOKS: u32 = 5;

/// A key, and the request that it came with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyedRequest {
    /// Whose key it is.
    pub caller: String,
    /// The key.
    pub key: String,
    /// Of everything that makes the request what it is.
    pub digest: String,
}

/// A key that a request has to itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldKey {
    caller: String,
    key: String,
    holder: Uuid,
}

/// What was changed for a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "id", rename_all = "snake_case")]
pub enum Receipt {
    /// A host was made, or told something.
    Host(HostId),
    /// Hosts were made.
    Hosts(Vec<HostId>),
    /// An operation was begun, joined or changed.
    Operation(OperationId),
    /// A segment was made.
    Segment(SegmentId),
    /// A method was made.
    Method(MethodId),
    /// A plan was made.
    Plan(PlanId),
    /// A subscription was made, or got a new secret.
    Subscription(SubscriptionId),
    /// A delivery of a subscription was asked for.
    Delivery(SubscriptionId, Uuid),
}

impl Receipt {
    fn as_json(&self) -> serde_json::Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// An answer that is given again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptAnswer {
    /// The HTTP status.
    pub status: u16,
    /// The headers that matter.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: String,
}

/// How a key stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyState {
    /// The request is to be carried out with it.
    Held(HeldKey),
    /// The request was answered.
    Answered(KeptAnswer),
    /// It was carried out, and its answer is not known.
    Done(Receipt),
    /// Another try carries it out just now.
    Running,
    /// It came with another request before.
    Reused,
}

impl HeldKey {
    fn name(&self) -> KeyName<'_> {
        KeyName {
            caller: &self.caller,
            key: &self.key,
        }
    }

    /// What is written in the transaction of a change.
    pub(crate) fn receipt(&self, receipt: &Receipt) -> NewReceipt<'_> {
        NewReceipt {
            name: self.name(),
            holder: self.holder,
            receipt: receipt.as_json(),
        }
    }
}

impl Engine {
    /// Takes a key for a request, unless the request was carried out already or is just now.
    pub async fn hold_key(&self, request: &KeyedRequest) -> Result<KeyState, EngineError> {
        let name = KeyName {
            caller: &request.caller,
            key: &request.key,
        };
        let holder = Uuid::new_v4();
        let held = || {
            KeyState::Held(HeldKey {
                caller: request.caller.clone(),
                key: request.key.clone(),
                holder,
            })
        };
        let mut run = self.0.db.reader();
        for _ in 0..LOOKS {
            let now = self.0.clock.now();
            let until = now + HELD_FOR;
            if ringfence_db::insert_key(&mut run, name, &request.digest, holder, now, until).await? {
                return Ok(held());
            }
            let Some(row) = ringfence_db::key_row(&mut run, name).await? else {
                continue;
            };
            if row.created_at < now - KEPT_FOR {
                ringfence_db::forget_old_key(&mut run, name, now - KEPT_FOR).await?;
                continue;
            }
            if let Some(state) = state_of(&row, &request.digest, now)? {
                return Ok(state);
            }
            if ringfence_db::take_key_over(&mut run, name, row.holder, holder, now, until).await? {
                return Ok(held());
            }
        }
        Ok(KeyState::Running)
    }

    /// Keeps what a request with a key was answered.
    pub async fn keep_answer(&self, held: &HeldKey, answer: &KeptAnswer) -> Result<(), EngineError> {
        let answer = serde_json::to_value(answer).unwrap_or_default();
        ringfence_db::put_answer(&mut self.0.db.reader(), held.name(), held.holder, answer).await?;
        Ok(())
    }

    /// Whether something was changed for the request of this key, by this try or by another.
    pub async fn has_receipt(&self, held: &HeldKey) -> Result<bool, EngineError> {
        let row = ringfence_db::key_row(&mut self.0.db.reader(), held.name()).await?;
        Ok(row.is_some_and(|row| row.receipt.is_some()))
    }

    /// Lets go of a key whose request has changed nothing, so that a repeat is carried out.
    pub async fn release_key(&self, held: &HeldKey) -> Result<(), EngineError> {
        ringfence_db::release_key(&mut self.0.db.reader(), held.name(), held.holder).await?;
        Ok(())
    }
}

/// `None` if the key can be taken over.
fn state_of(row: &KeyRow, digest: &str, now: Timestamp) -> Result<Option<KeyState>, DbError> {
    if row.digest != digest {
        return Ok(Some(KeyState::Reused));
    }
    if let Some(answer) = &row.answer {
        return read("answer", answer).map(|answer| Some(KeyState::Answered(answer)));
    }
    if let Some(receipt) = &row.receipt {
        return read("receipt", receipt).map(|receipt| Some(KeyState::Done(receipt)));
    }
    Ok((row.held_until > now).then_some(KeyState::Running))
}

fn read<T: serde::de::DeserializeOwned>(
    column: &'static str,
    json: &serde_json::Value,
) -> Result<T, DbError> {
    T::deserialize(json).map_err(|error| DbError::Unreadable {
        column,
        why: error.to_string(),
    })
}

/// Notes what is changed for a request, in the transaction that changes it. An error means: do not commit.
pub(crate) async fn leave_receipt(tx: &mut Tx, by: &Context, receipt: Receipt) -> Result<(), EngineError> {
    let Some(held) = &by.key else { return Ok(()) };
    let receipt = receipt.as_json();
    if ringfence_db::put_receipt(tx, held.name(), held.holder, receipt).await? {
        Ok(())
    } else {
        Err(EngineError::KeySpent)
    }
}
