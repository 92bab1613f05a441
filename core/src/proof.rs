//! Proofs: what counts towards FENCED.

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::{Ended, Generation, OperationId, Timestamp, words};

/// What kind of thing was proven.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr, strum::VariantArray,
)]
pub enum ProofKind {
    /// Every power device of one level was read as off.
    #[strum(serialize = "power.off")]
    PowerOff,
    /// Every storage device of one level shows the host cut off.
    #[strum(serialize = "storage.fence")]
    StorageFence,
    /// Every network device of one level shows the host cut off.
    #[strum(serialize = "network.fence")]
    NetworkFence,
    /// The host was unreachable for so long that it has fenced itself.
    #[strum(serialize = "self-fencing")]
    SelfFencing,
    /// The host's crash kernel has sent a message: the boot before it has ended.
    #[strum(serialize = "kdump")]
    Kdump,
    /// An authorised person said so.
    #[strum(serialize = "operator")]
    Operator,
}

words!(ProofKind);

/// One proof, for one host and one generation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// What was proven.
    pub kind: ProofKind,
    /// By what: the methods' names, a person's name, the segment's timeout, or the host's crash kernel.
    pub source: String,
    /// When the engine learnt of it.
    pub observed_at: Timestamp,
    /// The moment after which nothing may contradict it: all that it rests on was read then or later.
    pub read_at: Timestamp,
    /// When the first of the claims that it rests on was granted, if it rests on claims. What was decided before came before it, whatever
    /// the engines' clocks say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_at: Option<Timestamp>,
    /// Seconds after the engine learnt of it in which what the storage had accepted still lands; it counts after them.
    pub settle_s: u32,
    /// The operation that it was won in.
    pub operation_id: OperationId,
    /// The generation that it holds for.
    pub generation: Generation,
    /// The observation, or the person's reason, in words.
    pub detail: String,
    /// What ended it, if it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
}

impl Proof {
    /// When it has settled. How long ago anything was is not known from before the clock was set.
    #[must_use]
    pub fn settled_at(&self, clock_set_at: Option<Timestamp>) -> Timestamp {
        let from = clock_set_at.map_or(self.observed_at, |set_at| set_at.max(self.observed_at));
        from + TimeDelta::seconds(i64::from(self.settle_s))
    }
}
