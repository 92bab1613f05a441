//! The steps on the pods of one node.

mod departing;
mod emptying;
mod evicting;
mod holding;
mod keeping;
mod leaving;
mod listing;
mod marks;
mod moving;
mod node;
mod rejoining;
mod volumes;

use ringfence_core::{Finding, Outcome, WorkloadStep};
use tokio::time::timeout_at;

pub(super) use self::departing::departure;
pub(super) use self::keeping::keep;
pub(super) use self::marks::marks;
use self::node::NodeOf;
use super::Cluster;
use crate::{BackendError, StepOrder, StepReport, TimeGiven};

/// What became of a step.
enum Done {
    /// It was read back.
    So(String),
    /// It was read back, and something was found.
    Found(String, Finding),
    /// It is not so yet, or not known.
    NotYet(String, Option<Finding>),
}

pub(super) async fn carry_out(cluster: &Cluster, order: StepOrder<'_>, time: TimeGiven) -> StepReport {
    let node = NodeOf {
        cluster,
        name: &order.at.host,
        generation: order.generation,
        movable: order.movable,
        time,
    };
    let done = timeout_at(time.until, node.try_to(order)).await;
    match done {
        Ok(Ok(done)) => done.into(),
        Ok(Err(error)) => failed(&error),
        Err(_) => Done::NotYet("the time ran out".to_owned(), None).into(),
    }
}

impl From<Done> for StepReport {
    fn from(done: Done) -> Self {
        let (outcome, detail, finding) = match done {
            Done::So(detail) => (Outcome::Confirmed, detail, None),
            Done::Found(detail, finding) => (Outcome::Confirmed, detail, Some(finding)),
            Done::NotYet(why, finding) => (Outcome::Unknown, why, finding),
        };
        Self {
            outcome,
            detail,
            finding,
        }
    }
}

/// An API server that is away has heard nothing that may not be repeated.
fn failed(error: &BackendError) -> StepReport {
    let (outcome, finding) = match error {
        BackendError::Settings { .. } | BackendError::Version { .. } => (Outcome::Refused, None),
        BackendError::Away { .. } | BackendError::Late { .. } | BackendError::Unreadable { .. } => {
            (Outcome::Unknown, Some(Finding::Away))
        }
        BackendError::Denied { .. }
        | BackendError::NotFound { .. }
        | BackendError::NoEndpoint { .. }
        | BackendError::Refused { .. } => (Outcome::Unknown, None),
    };
    StepReport {
        outcome,
        detail: error.to_string(),
        finding,
    }
}

impl NodeOf<'_> {
    async fn try_to(&self, order: StepOrder<'_>) -> Result<Done, BackendError> {
        match order.step {
            WorkloadStep::Isolate { one_by_one } => self.isolate(*one_by_one).await,
            WorkloadStep::MarkDown { evacuation } => self.mark_down(evacuation.as_deref()).await,
            WorkloadStep::List { metadata_keys } => self.list(metadata_keys).await,
            WorkloadStep::Move(step) => self.move_away(step).await,
            WorkloadStep::Empty => self.empty().await,
            WorkloadStep::CleanUp => self.is_clean().await,
            WorkloadStep::MarkUp => self.open().await,
            WorkloadStep::Start { .. } | WorkloadStep::AddCapacity { .. } => {
                Ok(Done::So("a cluster is not asked for that".to_owned()))
            }
        }
    }
}
