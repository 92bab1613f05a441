//! Problems that come too often, as the segment says.

use serde_json::json;

use super::Draft;
use crate::{EventKind, alarm::AlarmChange};

/// Counts the problems that the decision tells, and brings the alarms up to the counts and the time.
pub(super) fn look(draft: &mut Draft) {
    let now = draft.now;
    let rules = &draft.state.policy.alarms;
    let mut alarms = draft.state.host.alarms.clone();
    for problem in draft.problems() {
        alarms.count(rules, problem, now);
    }
    let changes = alarms.look(rules, now);
    if let Some(at) = alarms.next_end(now) {
        draft.wake(at);
    }
    draft.state.host.alarms = alarms;
    for AlarmChange { rule, count, begins } in changes {
        let kind = if begins {
            EventKind::HostAlarmBegan
        } else {
            EventKind::HostAlarmEnded
        };
        let data = json!({
            "problem": rule.problem,
            "condition": rule.condition,
            "count": count,
            "times": rule.times,
            "within_s": rule.within_s,
        });
        draft.event(kind, data);
    }
}
