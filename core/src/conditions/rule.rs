//! What a segment does about a condition.

use serde::{Deserialize, Serialize};

use super::{ConditionStatus, validate_condition_name};
use crate::{Problems, words};

/// The longest time for which a condition has to stand, in seconds: a day.
const MAX_FOR_S: u32 = 86_400;
/// The most rules of one segment.
const MAX_RULES: usize = 32;

/// What is done about a condition. Whatever it is, it is told.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[strum(serialize_all = "snake_case")]
pub enum ConditionAction {
    /// Nothing more.
    #[default]
    Report,
    /// No fence of the host begins by itself.
    Spare,
    /// The schedule gate of the host is closed.
    HoldScheduling,
    /// The schedule gate is closed, and the host is fenced although it answers.
    Fence,
}

words!(ConditionAction);

/// What a segment does about a condition that stands for some time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConditionRule {
    /// The name of the condition, as in `KernelDeadlock`.
    pub condition: String,
    /// The status that it has to have.
    #[serde(default)]
    pub status: ConditionStatus,
    /// Seconds for which it has to stand, 0 to 86,400.
    #[serde(default)]
    pub for_s: u32,
    /// What is done then.
    #[serde(default)]
    pub action: ConditionAction,
}

impl ConditionRule {
    /// The faults of the rules of a segment.
    pub(crate) fn check_all(rules: &[Self], problems: &mut Problems) {
        if rules.len() > MAX_RULES {
            problems.add(
                "policy.conditions",
                format!("has {} rules; 0 to {MAX_RULES} are allowed", rules.len()),
            );
        }
        for (index, rule) in rules.iter().enumerate() {
            let field = format!("policy.conditions[{index}]");
            if let Err(problem) = validate_condition_name(format!("{field}.condition"), &rule.condition) {
                problems.0.push(problem);
            }
            if rule.for_s > MAX_FOR_S {
                problems.add(
                    format!("{field}.for_s"),
                    format!("is {}; 0 to {MAX_FOR_S} is allowed", rule.for_s),
                );
            }
            let is_one = |other: &&Self| (&other.condition, other.status) == (&rule.condition, rule.status);
            if let Some(first) = rules[..index].iter().position(|other| is_one(&other)) {
                problems.add(
                    field,
                    format!(
                        "is the second rule for {} {}; the first is conditions[{first}]",
                        rule.condition, rule.status
                    ),
                );
            }
        }
    }
}
