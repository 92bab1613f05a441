//! How a rejoin goes on.

use super::needs_operator;
use super::stages::{Stages, run_next_stage};
use super::waits::why_failed;
use crate::decide::Draft;
use crate::{Operation, OperationStatus, StepKind, TaskStatus};

pub(super) fn go_on(draft: &mut Draft) {
    if draft
        .live()
        .is_none_or(|live| live.status != OperationStatus::Running)
    {
        return;
    }
    loop {
        match run_next_stage(draft) {
            Stages::Moved => {}
            Stages::Busy => return,
            Stages::Stuck(why) => return needs_operator(draft, why),
            Stages::Over => return taken_back(draft),
        }
    }
}

/// Everything is over. UNFENCED stands, whatever has become of the workloads that remained.
fn taken_back(draft: &mut Draft) {
    let mut starts = draft.live().into_iter().flat_map(Operation::tasks);
    let failed = starts.find(|task| task.kind() == StepKind::Start && task.status == TaskStatus::Failed);
    let why = failed.map(why_failed);
    drop(starts);
    match why {
        Some(why) => needs_operator(draft, format!("the host was taken back, but {why}")),
        None => draft.end(OperationStatus::Succeeded, "the host was taken back".to_owned()),
    }
}
