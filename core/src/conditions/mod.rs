//! Conditions of a host: what is wrong with it, or right, in the words of the source that watches it. A condition says nothing of whether the host
//! is alive: what a dead host has said last stays as it is.

mod rule;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use self::rule::{ConditionAction, ConditionRule};
use crate::{Generation, Problem, Problems, Timestamp, words};

/// The most sources of conditions of one host.
pub const MAX_CONDITION_SOURCES: usize = 8;
/// The most conditions that one source has of one host.
pub const MAX_CONDITIONS: usize = 64;
/// The longest name of a condition, in characters, as in Kubernetes.
pub const MAX_CONDITION_CHARS: usize = 316;
/// The longest reason of a condition, in characters.
pub const MAX_CONDITION_REASON_CHARS: usize = 255;

/// Whether what a condition names is so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray)]
pub enum ConditionStatus {
    /// It is so.
    #[default]
    True,
    /// It is not so.
    False,
    /// It is not known.
    Unknown,
}

words!(ConditionStatus);

/// A condition as a source reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedCondition {
    /// What it is about, as in `KernelDeadlock`.
    pub name: String,
    /// Whether that is so.
    pub status: ConditionStatus,
    /// Why, in a word or a sentence.
    pub reason: String,
}

/// A condition as it is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// Whether what it names is so.
    pub status: ConditionStatus,
    /// Since when, by the engine's clock: when it heard so first.
    pub since: Timestamp,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The generation of the host in which it came to be so: what began since has answered it. `None` if it may have been there before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<Generation>,
    /// What a rule of the segment has come to for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<ConditionAction>,
}

/// All conditions of one host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conditions {
    /// By source and name.
    by_source: BTreeMap<String, BTreeMap<String, Condition>>,
    /// Whether the host was restored from its record, which does not have them: what a source says first may be what a fence has answered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_forgotten: bool,
}

impl Conditions {
    /// Those of a host that was restored from its record.
    #[must_use]
    pub fn forgotten() -> Self {
        Self {
            by_source: BTreeMap::new(),
            is_forgotten: true,
        }
    }

    /// All of them: the source, the name, the condition.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str, &Condition)> {
        self.by_source.iter().flat_map(|(source, of)| {
            of.iter()
                .map(|(name, condition)| (source.as_str(), name.as_str(), condition))
        })
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (&str, &str, &mut Condition)> {
        self.by_source.iter_mut().flat_map(|(source, of)| {
            of.iter_mut()
                .map(|(name, condition)| (source.as_str(), name.as_str(), condition))
        })
    }

    /// The first condition for which the segment holds scheduling, or fences the host.
    #[must_use]
    pub fn holds_scheduling(&self) -> Option<&str> {
        let holds = |condition: &Condition| condition.action >= Some(ConditionAction::HoldScheduling);
        let mut found = self.iter().filter(|(_, _, condition)| holds(condition));
        found.next().map(|(_, name, _)| name)
    }

    /// The first condition for which no fence of the host begins by itself.
    #[must_use]
    pub fn spares(&self) -> Option<(&str, &Condition)> {
        let spares = |condition: &Condition| condition.action == Some(ConditionAction::Spare);
        let mut found = self.iter().filter(|(_, _, condition)| spares(condition));
        found.next().map(|(_, name, condition)| (name, condition))
    }

    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_source.is_empty() && !self.is_forgotten
    }

    /// How many a source has.
    pub(crate) fn of(&self, source: &str) -> usize {
        self.by_source.get(source).map_or(0, BTreeMap::len)
    }

    /// Whether there is room for a source of this name.
    pub(crate) fn takes(&self, source: &str) -> bool {
        self.by_source.len() < MAX_CONDITION_SOURCES || self.by_source.contains_key(source)
    }

    /// Takes the conditions that a source has of the host now. Those that it does not report are no more, or, where it says which are `over`, stay but for
    /// these. `true` if something has changed.
    ///
    /// What a source says first of a host that was restored is taken for what was there before, and answered.
    pub(crate) fn take(
        &mut self,
        source: &str,
        (reported, over): (Vec<ReportedCondition>, Option<Vec<String>>),
        generation: Generation,
        now: Timestamp,
    ) -> bool {
        let before = self.by_source.get(source);
        let is_old = before.is_none() && self.is_forgotten;
        let begun_in = if is_old { None } else { Some(generation) };
        let known = before.cloned().unwrap_or_default();
        let stay = over.map(|over| {
            known
                .clone()
                .into_iter()
                .filter(move |(name, _)| !over.contains(name))
        });
        let new: BTreeMap<String, Condition> = reported
            .into_iter()
            .map(|new| {
                let condition = match known.get(&new.name).filter(|known| known.status == new.status) {
                    Some(known) => Condition {
                        reason: new.reason,
                        ..known.clone()
                    },
                    None => Condition {
                        status: new.status,
                        since: now,
                        reason: new.reason,
                        generation: begun_in,
                        action: None,
                    },
                };
                (new.name, condition)
            })
            .collect();
        let after: BTreeMap<_, _> = stay.into_iter().flatten().chain(new).collect();
        if before == Some(&after) || (before.is_none() && after.is_empty()) {
            return false;
        }
        self.by_source.insert(source.to_owned(), after);
        true
    }

    /// Strikes a source off. `false` if there is none of this name.
    pub(crate) fn forget(&mut self, source: &str) -> bool {
        self.by_source.remove(source).is_some()
    }

    /// No moment lies after `now`.
    pub(crate) fn adjust(&mut self, now: Timestamp) {
        for (_, _, condition) in self.iter_mut() {
            condition.since = condition.since.min(now);
        }
    }
}

/// A name is 1 to 316 characters without blanks and control characters.
pub fn validate_condition_name(field: impl Into<String>, name: &str) -> Result<(), Problem> {
    let chars = name.chars().count();
    let is_plain = |c: char| !c.is_whitespace() && !c.is_control();
    if chars == 0 || chars > MAX_CONDITION_CHARS || !name.chars().all(is_plain) {
        return Err(Problem::new(
            field,
            format!(
                "is {name:?}; 1 to {MAX_CONDITION_CHARS} characters without blanks and control characters are allowed"
            ),
        ));
    }
    Ok(())
}

/// What is wrong with the conditions that a source reports of one host.
pub fn check_conditions(conditions: &[ReportedCondition], problems: &mut Problems) {
    if conditions.len() > MAX_CONDITIONS {
        problems.add(
            "conditions",
            format!(
                "has {} entries; 0 to {MAX_CONDITIONS} are allowed",
                conditions.len()
            ),
        );
    }
    for (index, condition) in conditions.iter().enumerate() {
        let field = format!("conditions[{index}]");
        if let Err(problem) = validate_condition_name(format!("{field}.name"), &condition.name) {
            problems.0.push(problem);
        }
        if conditions[..index]
            .iter()
            .any(|other| other.name == condition.name)
        {
            problems.add(
                format!("{field}.name"),
                format!("is {:?}, which is there already", condition.name),
            );
        }
        let chars = condition.reason.chars().count();
        if chars > MAX_CONDITION_REASON_CHARS || condition.reason.chars().any(char::is_control) {
            problems.add(
                format!("{field}.reason"),
                format!("has {chars} characters; 0 to {MAX_CONDITION_REASON_CHARS} without control characters are allowed"),
            );
        }
    }
}
