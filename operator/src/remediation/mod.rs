//! `RingfenceRemediation`: how a health check (the Node Health Check operator's or Cluster API's) asks for a node to be remediated.
//!
//! It acts only on operations that it has asked for: what a person or Ringfence itself has fenced is not taken back because a health check has
//! seen the node well.

mod giving_up;
mod object;
mod progress;
mod releasing;
mod serving;
mod target;
mod wishes;

use ringfence_core::Operation;
use ringfence_engine::Context;

use crate::door::Door;

pub(crate) use object::kind;
pub(crate) use serving::{Served, serve};
pub(crate) use wishes::wants_fenced;

/// Who asks, in the audit trail.
const ASKER: &str = "RingfenceRemediation";

/// A health check knows nothing of what safeguards look at.
fn asker(door: &Door) -> Context {
    door.asker(ASKER).as_program()
}

/// Whether a remediation has asked for this operation.
pub(crate) fn has_asked_for(door: &Door, operation: &Operation) -> bool {
    operation.requested_by == asker(door).actor
}
