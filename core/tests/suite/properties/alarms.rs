//! An alarm is told once when its problem has come as often as its rule says, and its end when the problem has become rarer.

use chrono::TimeDelta;
use proptest::prelude::*;
use ringfence_core::*;

use super::actions::{Truthfulness, history, live_through};
use super::facts::{decisions, events, has_event};
use super::settings::setting;

/// A rule, with everything on record that it counts.
struct Followed {
    rule: AlarmRule,
    came: Vec<Timestamp>,
    stands: bool,
}

impl Followed {
    fn of(rule: &AlarmRule) -> Self {
        Self {
            rule: rule.clone(),
            came: Vec::new(),
            stands: false,
        }
    }

    /// How often the events of a decision tell the problem, read from what they say.
    fn told(&self, decision: &Decision) -> usize {
        let is_it = |event: &&Event| match self.rule.problem {
            HostProblem::Failed => {
                event.kind == EventKind::HostFailureState && event.data["to"] == "UNREACHABLE"
            }
            HostProblem::Fenced => event.kind == EventKind::HostFenced,
            HostProblem::Returned => event.kind == EventKind::HostUnfenced,
            HostProblem::Condition => {
                let name = self.rule.condition.as_deref();
                let is_named = name.is_none_or(|name| event.data["condition"] == name);
                event.kind == EventKind::HostCondition && event.data["action"].is_string() && is_named
            }
        };
        events(decision).filter(is_it).count()
    }

    /// What has to be told with a decision: that the alarm begins (`true`), or ends.
    fn after(&mut self, decision: &Decision, now: Timestamp) -> Option<bool> {
        self.came.iter_mut().for_each(|at| *at = (*at).min(now));
        self.came.extend(vec![now; self.told(decision)]);
        let since = now - TimeDelta::seconds(i64::from(self.rule.within_s));
        let lately = self.came.iter().filter(|at| **at > since).count();
        let stood = std::mem::replace(&mut self.stands, lately >= self.rule.times as usize);
        (self.stands != stood).then_some(self.stands)
    }

    /// The moment at which the problem is rarer if it does not come again.
    fn ends_at(&self) -> Option<Timestamp> {
        let decides = self.came.iter().rev().nth(self.rule.times as usize - 1)?;
        Some(*decides + TimeDelta::seconds(i64::from(self.rule.within_s)))
    }
}

/// The rules whose alarms begin or end with a decision.
fn changes(decision: &Decision) -> Vec<(bool, u64, u64, String, String)> {
    let of = |event: &Event| {
        let begins = match event.kind {
            EventKind::HostAlarmBegan => true,
            EventKind::HostAlarmEnded => false,
            _ => return None,
        };
        let number = |field: &str| event.data[field].as_u64().unwrap();
        let text = |field: &str| event.data[field].to_string();
        Some((
            begins,
            number("times"),
            number("within_s"),
            text("problem"),
            text("condition"),
        ))
    };
    let mut changes: Vec<_> = events(decision).filter_map(of).collect();
    changes.sort();
    changes
}

proptest! {
    #[test]
    fn an_alarm_is_told_once_when_its_problem_comes_too_often_and_its_end_once(
        setting in setting(), actions in history(Truthfulness::Any),
    ) {
        let mut rules = setting.policy.alarms.clone();
        rules.dedup();
        let mut world = setting.world();
        world.state.policy.alarms.clone_from(&rules);
        let world = live_through(world, &actions);
        let mut followed: Vec<Followed> = rules.iter().map(Followed::of).collect();
        for (_, moment, decision) in decisions(&world) {
            let mut expected = Vec::new();
            for one in &mut followed {
                if let Some(begins) = one.after(decision, moment.now) {
                    let AlarmRule { problem, condition, times, within_s } = &one.rule;
                    let condition = serde_json::json!(condition).to_string();
                    let problem = format!("\"{problem}\"");
                    expected.push((begins, u64::from(*times), u64::from(*within_s), problem, condition));
                }
            }
            expected.sort();
            prop_assert_eq!(changes(decision), expected);
            for one in followed.iter().filter(|one| one.stands) {
                prop_assert!(decision.wake_at <= one.ends_at() && decision.wake_at.is_some(), "nothing ends the alarm");
            }
            let told = has_event(decision, EventKind::HostAlarmBegan) || has_event(decision, EventKind::HostAlarmEnded);
            let standing = |state: &HostState| state.host.alarms.standing.len();
            prop_assert!(told || standing(&moment.before) == standing(&decision.state));
        }
    }
}
