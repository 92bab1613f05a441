//! How an evacuation goes on.

use super::needs_operator;
use super::stages::{Stages, run_beside, run_next_stage};
use crate::OperationStatus;
use crate::decide::{Draft, evacuation, power_last, progress, proof};

/// What the fence has left to do is in no order with the rest.
pub(super) fn go_on(draft: &mut Draft) {
    progress::settle(draft);
    proof::collect(draft);
    if evacuation::stop_if_back(draft) {
        return;
    }
    if draft
        .live()
        .is_none_or(|live| live.status != OperationStatus::Running)
    {
        return;
    }
    if let Some(why) = evacuation::hold(draft) {
        return needs_operator(draft, why);
    }
    loop {
        let is_alone = run_beside(draft, |index, _| index == evacuation::BESIDE);
        proof::collect(draft);
        match run_next_stage(draft) {
            Stages::Moved => {}
            Stages::Busy => return proof::collect(draft),
            Stages::Stuck(why) => return needs_operator(draft, why),
            Stages::Over if !is_alone && !draft.live().is_some_and(power_last::is_all_that_is_left) => return,
            Stages::Over => {
                if !finish_evacuation(draft) {
                    return;
                }
            }
        }
    }
}

/// Every stage is over. `true` if there is something else to try.
fn finish_evacuation(draft: &mut Draft) -> bool {
    if evacuation::look_for_more(draft) {
        return true;
    }
    if evacuation::awaits_more(draft) {
        return false;
    }
    let Some(operation) = draft.state.operation.as_mut() else {
        return false;
    };
    if evacuation::open_spare(operation) || evacuation::empty(operation) {
        return true;
    }
    let (failed, told) = (evacuation::failed(operation), evacuation::told(operation));
    match failed {
        Some(why) => needs_operator(draft, why),
        None if power_last::release(operation) => return true,
        None => {
            let left_off = power_last::tell_left_off(draft);
            draft.end(OperationStatus::Succeeded, told + &left_off);
        }
    }
    false
}
