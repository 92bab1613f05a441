//! What sources say is wrong with a host, and what its segment does about that.

use serde_json::{Value, json};

use crate::guard::{Guard, on};
use crate::{
    Condition, ConditionAction, ConditionRule, EventKind, Host, HostState, MAX_CONDITIONS, OperationKind,
    OperationStatus, Refusal, Reply, ReportedCondition, Timestamp,
};

use super::Draft;
use super::draft::after_s;

/// Takes the conditions that a source has of the host now: all of them, or what is new and which are over.
pub(super) fn report(
    draft: &mut Draft,
    source: String,
    reported: Vec<ReportedCondition>,
    over: Option<Vec<String>>,
) -> Result<Reply, Refusal> {
    if !draft.state.host.conditions.takes(&source) {
        return Err(Refusal::TooManySources { source_name: source });
    }
    let now = draft.now;
    let before = draft.state.host.conditions.clone();
    let generation = draft.state.host.generation;
    let is_changed = draft
        .state
        .host
        .conditions
        .take(&source, (reported, over), generation, now);
    if !is_changed {
        return Ok(Reply::AlreadySo);
    }
    if draft.state.host.conditions.of(&source) > MAX_CONDITIONS {
        return Err(Refusal::TooManyConditions { source_name: source });
    }
    let stood = before
        .iter()
        .filter(|(of, _, known)| *of == source && known.action.is_some());
    for (of, name, known) in stood {
        let is_over = |new: &Condition| new.since != known.since || new.status != known.status;
        let new = draft
            .state
            .host
            .conditions
            .iter()
            .find(|(s, n, _)| (*s, *n) == (of, name));
        if new.is_none_or(|(_, _, new)| is_over(new)) {
            let told = told(of, name, known, None);
            draft.event(EventKind::HostCondition, told);
        }
    }
    look(draft);
    Ok(Reply::Done)
}

/// Brings what the segment does up to the conditions and the time.
pub(super) fn look(draft: &mut Draft) {
    let now = draft.now;
    let rules = draft.state.policy.conditions.clone();
    // By a clock that was set, the time counts from then on.
    let set_at = draft.state.clock_set_at;
    let known_since = |condition: &Condition| set_at.map_or(condition.since, |at| at.max(condition.since));
    let mut events = Vec::new();
    let mut due_at = Vec::new();
    for (source, name, condition) in draft.state.host.conditions.iter_mut() {
        let due = rule_for(&rules, name, condition)
            .map(|rule| (after_s(known_since(condition), rule.for_s), rule.action));
        let action = due.filter(|(at, _)| *at <= now).map(|(_, action)| action);
        due_at.extend(due.filter(|(at, _)| *at > now).map(|(at, _)| at));
        if condition.action != action {
            condition.action = action;
            events.push(told(source, name, condition, action));
        }
    }
    due_at.into_iter().for_each(|at| draft.wake(at));
    events
        .into_iter()
        .for_each(|told| draft.event(EventKind::HostCondition, told));
    end_if_none_stands(draft);
}

fn rule_for<'a>(rules: &'a [ConditionRule], name: &str, condition: &Condition) -> Option<&'a ConditionRule> {
    let mut rules = rules.iter();
    rules.find(|rule| rule.condition == name && rule.status == condition.status)
}

fn told(source: &str, name: &str, condition: &Condition, action: Option<ConditionAction>) -> Value {
    json!({
        "source": source,
        "condition": name,
        "status": condition.status,
        "reason": condition.reason,
        "since": condition.since,
        "action": action,
    })
}

/// A fence for a condition that is no more ends, unless a worker has acted: a fence that is half done is worse than one that is whole.
fn end_if_none_stands(draft: &mut Draft) {
    let is_idle = draft.live().is_some_and(|live| {
        let is_its = live.kind() == OperationKind::Fence && live.is_for_a_condition();
        is_its && live.proofs.is_empty() && !live.has_acted()
    });
    if is_idle && standing(&draft.state.host).is_none() && on(Guard::EndedConditionStopsIdleFence) {
        draft.end(
            OperationStatus::Cancelled,
            "no condition for which the segment fences the host stands any more".to_owned(),
        );
    }
}

/// A condition for which the segment fences the host, however long it has been answered.
fn standing(host: &Host) -> Option<(&str, &str, &Condition)> {
    let fences =
        |(_, _, condition): &(&str, &str, &Condition)| condition.action == Some(ConditionAction::Fence);
    host.conditions.iter().find(fences)
}

/// The condition for which the host has to be fenced: it has come since whatever began last.
#[must_use]
pub fn unanswered(host: &Host) -> Option<(&str, &str, &Condition)> {
    let is_new = |condition: &Condition| {
        condition.generation == Some(host.generation) || !on(Guard::ConditionIsAnsweredOnce)
    };
    let fences = |(_, _, known): &(&str, &str, &Condition)| {
        known.action == Some(ConditionAction::Fence) && is_new(known)
    };
    host.conditions.iter().find(fences)
}

/// When the host is to be fenced for a condition: at once where one stands for long enough.
pub(crate) fn due(state: &HostState) -> Option<Timestamp> {
    unanswered(&state.host).map(|(_, _, condition)| condition.since)
}
