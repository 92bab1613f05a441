//! Alarms: a problem of a host that comes again and again is told once, until it has become rare again.

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::{ConditionRule, HostProblem, Problems, Timestamp, validate_condition_name};

/// The most rules of one segment.
const MAX_RULES: usize = 16;
/// Times that each problem of a host is remembered, and the most that a rule may count.
const REMEMBERED: u32 = 32;

/// When a segment tells that a problem of a host comes too often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlarmRule {
    /// What is counted.
    pub problem: HostProblem,
    /// The name of the condition that is counted; `None`: any. With the problem `condition` alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// How often it has to come, 1 to 32.
    pub times: u32,
    /// Seconds within which it has to, 60 to 2,592,000 (30 days).
    pub within_s: u32,
}

impl AlarmRule {
    /// The faults of the rules of a segment that does this about conditions.
    pub(crate) fn check_all(rules: &[Self], conditions: &[ConditionRule], problems: &mut Problems) {
        if rules.len() > MAX_RULES {
            problems.add(
                "policy.alarms",
                format!("has {} rules; 0 to {MAX_RULES} are allowed", rules.len()),
            );
        }
        for (index, rule) in rules.iter().enumerate() {
            let field = format!("policy.alarms[{index}]");
            let ranges = [
                ("times", rule.times, 1, REMEMBERED),
                ("within_s", rule.within_s, 60, 2_592_000),
            ];
            for (name, value, min, max) in ranges {
                if !(min..=max).contains(&value) {
                    problems.add(
                        format!("{field}.{name}"),
                        format!("is {value}; {min} to {max} is allowed"),
                    );
                }
            }
            rule.check_condition(&format!("{field}.condition"), conditions, problems);
            if let Some(first) = rules[..index].iter().position(|other| other == rule) {
                problems.add(
                    field,
                    format!("is given a second time; the first is alarms[{first}]"),
                );
            }
        }
    }

    fn check_condition(&self, field: &str, conditions: &[ConditionRule], problems: &mut Problems) {
        let Some(name) = &self.condition else {
            return;
        };
        if let Err(problem) = validate_condition_name(field, name) {
            problems.0.push(problem);
        } else if self.problem != HostProblem::Condition {
            let problem = self.problem;
            problems.add(
                field,
                format!("is {name:?} beside the problem {problem}; a name is allowed beside the problem condition alone"),
            );
        } else if !conditions.iter().any(|rule| rule.condition == *name) {
            problems.add(
                field,
                format!("is {name:?}, for which policy.conditions has no rule; the condition of one of its rules is allowed"),
            );
        }
    }

    fn is_of(&self, counted: &CountedProblem) -> bool {
        self.problem == counted.problem && self.condition == counted.condition
    }
}

/// When a problem came, as rules of the segment count it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedProblem {
    /// What it is.
    pub problem: HostProblem,
    /// The name of the condition; `None`: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// When it came, the last 32 times, the oldest first.
    pub at: Vec<Timestamp>,
}

impl CountedProblem {
    fn came(&mut self, now: Timestamp) {
        if self.at.len() >= REMEMBERED as usize {
            self.at.remove(0);
        }
        self.at.push(now);
    }

    /// Those that came within so many seconds.
    fn within(&self, seconds: u32, now: Timestamp) -> &[Timestamp] {
        let since = now - TimeDelta::seconds(i64::from(seconds));
        let old = self.at.iter().take_while(|at| **at <= since).count();
        self.at.get(old..).unwrap_or_default()
    }
}

/// An alarm that stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StandingAlarm {
    /// The rule that it is of.
    pub rule: AlarmRule,
    /// Since when it stands.
    pub since: Timestamp,
}

/// What has come to be of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AlarmChange {
    /// The rule.
    pub rule: AlarmRule,
    /// How often its problem has come within its time.
    pub count: usize,
    /// Whether its alarm begins, or ends.
    pub begins: bool,
}

/// What is counted of a host for the alarms of its segment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Alarms {
    /// What the rules count; nothing that none of them counts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counted: Vec<CountedProblem>,
    /// The alarms that stand.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub standing: Vec<StandingAlarm>,
}

impl Alarms {
    /// Whether there is nothing to remember.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Since when an alarm stands, the oldest that does.
    #[must_use]
    pub fn since(&self) -> Option<Timestamp> {
        self.standing.iter().map(|alarm| alarm.since).min()
    }

    /// A problem came: it is counted where a rule says so.
    pub(crate) fn count(
        &mut self,
        rules: &[AlarmRule],
        (problem, condition): (HostProblem, Option<&str>),
        now: Timestamp,
    ) {
        let is_counted = |rule: &&AlarmRule| {
            let is_named = rule.condition.is_none() || rule.condition.as_deref() == condition;
            rule.problem == problem && is_named
        };
        // Rules that count one thing over several times share what is remembered.
        let mut names: Vec<Option<&String>> = rules
            .iter()
            .filter(is_counted)
            .map(|rule| rule.condition.as_ref())
            .collect();
        names.sort();
        names.dedup();
        for name in names {
            self.of(problem, name).came(now);
        }
    }

    fn of(&mut self, problem: HostProblem, condition: Option<&String>) -> &mut CountedProblem {
        let is_it =
            |known: &CountedProblem| known.problem == problem && known.condition.as_ref() == condition;
        let index = self.counted.iter().position(is_it).unwrap_or_else(|| {
            self.counted.push(CountedProblem {
                problem,
                condition: condition.cloned(),
                at: Vec::new(),
            });
            self.counted.len() - 1
        });
        &mut self.counted[index]
    }

    /// Brings the alarms up to the rules, the counts and the time.
    pub(crate) fn look(&mut self, rules: &[AlarmRule], now: Timestamp) -> Vec<AlarmChange> {
        self.counted
            .retain(|counted| rules.iter().any(|rule| rule.is_of(counted)));
        let mut changes = Vec::new();
        let ended: Vec<StandingAlarm> = {
            let counted = &self.counted;
            let is_over = |alarm: &mut StandingAlarm| {
                !rules.contains(&alarm.rule)
                    || times(counted, &alarm.rule, now).len() < alarm.rule.times as usize
            };
            self.standing.extract_if(.., is_over).collect()
        };
        for StandingAlarm { rule, since: _ } in ended {
            let count = times(&self.counted, &rule, now).len();
            changes.push(AlarmChange {
                rule,
                count,
                begins: false,
            });
        }
        for rule in rules {
            let count = times(&self.counted, rule, now).len();
            let stands = self.standing.iter().any(|alarm| alarm.rule == *rule);
            if !stands && count >= rule.times as usize {
                self.standing.push(StandingAlarm {
                    rule: rule.clone(),
                    since: now,
                });
                changes.push(AlarmChange {
                    rule: rule.clone(),
                    count,
                    begins: true,
                });
            }
        }
        changes
    }

    /// When time alone ends an alarm.
    pub(crate) fn next_end(&self, now: Timestamp) -> Option<Timestamp> {
        let ends = self.standing.iter().filter_map(|alarm| {
            let came = times(&self.counted, &alarm.rule, now);
            let decides = came.len().checked_sub(alarm.rule.times as usize)?;
            let at = came.get(decides)?;
            Some(*at + TimeDelta::seconds(i64::from(alarm.rule.within_s)))
        });
        ends.min()
    }

    /// No moment lies after `now`.
    pub(crate) fn adjust(&mut self, now: Timestamp) {
        let came = self.counted.iter_mut().flat_map(|counted| &mut counted.at);
        let since = self.standing.iter_mut().map(|alarm| &mut alarm.since);
        came.chain(since).for_each(|at| *at = (*at).min(now));
    }
}

/// When the problem that a rule counts came within its time.
fn times<'a>(counted: &'a [CountedProblem], rule: &AlarmRule, now: Timestamp) -> &'a [Timestamp] {
    let known = counted.iter().find(|counted| rule.is_of(counted));
    known.map_or(&[], |counted| counted.within(rule.within_s, now))
}
