//! Groups: the hosts that share a label, or all of them; how many of a group may be out of service, and how many may be fenced at one time.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::opinions::COUNTS_S;
use crate::safeguard::in_line;
use crate::{
    FencingPolicy, Labels, Neighbourhood, Permit, Problems, Ruling, Safeguard, Timestamp, Verdict,
    check_label_name,
};

/// Labels that one fault names.
const NAMED: usize = 10;
/// Rules that one segment may have.
const MAX_RULES: usize = 8;

/// What a segment says of the groups of its hosts. Hosts of other segments are of a group, too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GroupRule {
    /// The label: hosts that have one value of it are a group, and a host without it is of none. `null`: all hosts are one group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Fences of the group's hosts beside which another one may begin by itself, this one counted, 1 to 10,000; `null`: any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_once: Option<u32>,
    /// Hosts of the group that may be out of service, the one that would be fenced counted, 1 to 10,000; `null`: any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most_out: Option<u32>,
    /// Whether more than half of the group's hosts have to stay in service.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub majority: bool,
}

/// How the hosts of one group stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupCount {
    /// All of them.
    pub hosts: u64,
    /// Others that are not UP, are FENCED or are being fenced.
    pub out: u64,
    /// Fences of others that are running.
    pub under_way: u64,
    /// Others that fell silent earlier, and whose fences have not begun or wait for their turn.
    pub before_it: u64,
}

/// The groups of one host, as they were counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupCounts {
    /// When.
    pub counted_at: Option<Timestamp>,
    /// By the [name](Group::name) of the group.
    pub by_name: BTreeMap<String, GroupCount>,
    /// How many of the [permits](Group::begun_as) that hosts of the groups have taken there were, by name, before the hosts were counted.
    pub begun: BTreeMap<String, u64>,
}

/// A rule, and the group of one host that it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group<'a> {
    rule: &'a GroupRule,
    value: Option<&'a str>,
}

impl<'a> Group<'a> {
    /// Its label and the value that its hosts have; `None` for the group of all hosts.
    #[must_use]
    pub fn label(&self) -> Option<(&'a str, &'a str)> {
        self.rule.label.as_deref().zip(self.value)
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> String {
        self.label().map_or_else(
            || "all hosts".to_owned(),
            |(label, value)| format!("{label}={value}"),
        )
    }

    /// What those permits are called that hosts of the group take when they begin to be fenced at this time.
    pub fn begun_as(&self, at: Timestamp) -> impl Iterator<Item = String> + use<> {
        Permit::names_of_spans(format!("group {}", self.name()), at, at)
    }

    /// Hosts that may be out of service.
    fn most_out(&self, count: GroupCount) -> Option<u64> {
        let minority = count.hosts.saturating_sub(1) / 2;
        let majority = self.rule.majority.then_some(minority);
        let at_most = self.rule.at_most_out.map(u64::from);
        at_most.into_iter().chain(majority).min()
    }

    /// Whether hosts of it have to stay in service.
    fn keeps_some(&self) -> bool {
        self.rule.at_most_out.is_some() || self.rule.majority
    }

    fn out_ruling(&self, counts: &GroupCounts, now: Timestamp) -> Option<Ruling> {
        if !self.keeps_some() {
            return None;
        }
        let name = self.name();
        let Some(count) = counts.get(&name, now) else {
            return Some(Ruling {
                safeguard: Safeguard::Quorum,
                verdict: Verdict::Unknown,
                reason: format!("the hosts of the group {name} were not counted within {COUNTS_S} s"),
                release: Some("a count".to_owned()),
            });
        };
        let most = self.most_out(count)?;
        let is_held = count.out >= most;
        let GroupCount { hosts, out, .. } = count;
        let bound = if self.rule.majority {
            format!(
                "at most {most} of its {hosts} hosts may be, so that more than half of them stay in service"
            )
        } else {
            format!("at most {most} of its {hosts} hosts may be")
        };
        let (others, are) = match out {
            1 => ("1 other host".to_owned(), "is"),
            out => (format!("{out} other hosts"), "are"),
        };
        Some(Ruling {
            safeguard: Safeguard::Quorum,
            verdict: if is_held { Verdict::Hold } else { Verdict::Allow },
            reason: format!("{others} of the group {name} {are} out of service; {bound}"),
            release: (is_held && most > 0).then(|| format!("hosts of the group {name} that are UP again")),
        })
    }

    fn line_ruling(&self, counts: &GroupCounts) -> Option<Ruling> {
        let limit = self.rule.at_once?;
        let name = self.name();
        let GroupCount {
            under_way, before_it, ..
        } = counts.by_name.get(&name).copied().unwrap_or_default();
        let whose = format!("the group {name}");
        Some(in_line(Safeguard::AtOnce, (under_way, before_it, limit), &whose))
    }

    /// What a fence of the host takes that begins now. Hosts of the group that have begun to be fenced since the count are not in it, so a fence that goes by a count takes a permit
    /// of each span since, of which those that were taken before the count are counted as hosts already.
    fn permits(&self, counts: &GroupCounts, now: Timestamp) -> Vec<Permit> {
        let name = self.name();
        let at_once = self.rule.at_once.map(|limit| Permit::of_group(&name, limit));
        let count = counts.get(&name, now).zip(counts.counted_at);
        let out = count.and_then(|(count, at)| {
            let left = self.most_out(count)?.saturating_sub(count.out);
            let left = u32::try_from(left).unwrap_or(u32::MAX);
            let mut since = Permit::of_spans(&format!("group {name}"), left, at, now);
            for permit in &mut since {
                let begun = counts.begun.get(&permit.of).copied().unwrap_or_default();
                permit.at_most = permit
                    .at_most
                    .saturating_add(u32::try_from(begun).unwrap_or(u32::MAX));
            }
            Some(since)
        });
        at_once.into_iter().chain(out.into_iter().flatten()).collect()
    }
}

impl GroupCounts {
    /// Until when they count; `None` where nothing was counted.
    pub(crate) fn count_until(&self) -> Option<Timestamp> {
        self.counted_at.map(|at| at + TimeDelta::seconds(COUNTS_S))
    }

    fn get(&self, name: &str, now: Timestamp) -> Option<GroupCount> {
        let is_fresh = self
            .counted_at
            .is_some_and(|at| (0..=COUNTS_S).contains(&(now - at).num_seconds()));
        self.by_name.get(name).copied().filter(|_| is_fresh)
    }
}

impl FencingPolicy {
    /// The groups of a host with these labels that the segment has rules for.
    pub fn groups<'a>(&'a self, labels: &'a Labels) -> impl Iterator<Item = Group<'a>> {
        self.groups.iter().filter_map(|rule| {
            let value = match &rule.label {
                Some(label) => Some(labels.get(label)?.as_str()),
                None => None,
            };
            Some(Group { rule, value })
        })
    }

    /// Whether a host with these labels is of a group of which hosts have to stay in service.
    pub(crate) fn keeps_some(&self, labels: &Labels) -> bool {
        self.groups(labels).any(|group| group.keeps_some())
    }
}

/// What the groups of a host say of a fence of it.
pub(crate) fn rulings(
    policy: &FencingPolicy,
    labels: &Labels,
    around: &Neighbourhood,
    now: Timestamp,
) -> Vec<Ruling> {
    let groups: Vec<Group<'_>> = policy.groups(labels).collect();
    let counts = &around.groups;
    let out = groups.iter().filter_map(|group| group.out_ruling(counts, now));
    let line = groups.iter().filter_map(|group| group.line_ruling(counts));
    out.chain(line).collect()
}

/// What a fence of the host takes that begins now.
pub(crate) fn permits(
    policy: &FencingPolicy,
    labels: &Labels,
    around: &Neighbourhood,
    now: Timestamp,
) -> Vec<Permit> {
    let groups = policy.groups(labels);
    groups
        .flat_map(|group| group.permits(&around.groups, now))
        .collect()
}

pub(crate) fn check(rules: &[GroupRule], problems: &mut Problems) {
    const LIST: &str = "policy.fencing.groups";
    if rules.len() > MAX_RULES {
        let count = rules.len();
        problems.add(
            LIST,
            format!("has {count} rules; at most {MAX_RULES} are allowed"),
        );
    }
    let mut labels = BTreeSet::new();
    for (at, rule) in rules.iter().enumerate() {
        let field = format!("{LIST}[{at}]");
        let GroupRule {
            label,
            at_once,
            at_most_out,
            majority,
        } = rule;
        if let Some(Err(problem)) = label
            .as_deref()
            .map(|label| check_label_name(&format!("{field}.label"), label))
        {
            problems.0.push(problem);
        }
        if !labels.insert(label) {
            let whose = label
                .as_deref()
                .map_or("all hosts".to_owned(), |label| format!("label {label:?}"));
            problems.add(
                format!("{field}.label"),
                format!("has a second rule for {whose}; one rule is allowed"),
            );
        }
        for (name, value) in [("at_once", at_once), ("at_most_out", at_most_out)] {
            if let Some(value) = value.filter(|value| !(1..=10_000).contains(value)) {
                problems.add(
                    format!("{field}.{name}"),
                    format!("is {value}; 1 to 10000 is allowed"),
                );
            }
        }
        if at_once.is_none() && at_most_out.is_none() && !majority {
            problems.add(
                field,
                "bounds nothing; at_once, at_most_out or majority is needed",
            );
        }
    }
}

/// Refuses new rules that no host can be meant by, that would hold nothing or that would hold everything. `known` counts the hosts by the labels that they have, and `hosts` all of
/// them. Rules that the segment has already stay, whatever has become of the hosts.
pub fn check_groups(
    rules: &[GroupRule],
    present: &[GroupRule],
    (hosts, known): (u64, &BTreeMap<String, BTreeMap<String, u64>>),
    problems: &mut Problems,
) {
    let new = rules
        .iter()
        .enumerate()
        .filter(|(_, rule)| !present.contains(rule));
    for (at, rule) in new {
        let field = format!("policy.fencing.groups[{at}]");
        let (largest, whose) = match &rule.label {
            Some(label) => match known.get(label) {
                Some(values) => {
                    let largest = values.values().copied().max().unwrap_or_default();
                    let whose = format!("the largest group of label {label:?} has {largest} hosts");
                    (largest, whose)
                }
                None => {
                    problems.add(format!("{field}.label"), unknown(label, known));
                    continue;
                }
            },
            None => (hosts, format!("there are {hosts} hosts")),
        };
        // A group may grow, and hosts may be added after the policy.
        if let Some(at_once) = rule
            .at_once
            .filter(|at_once| hosts > 0 && u64::from(*at_once) > hosts)
        {
            problems.add(
                format!("{field}.at_once"),
                format!("is {at_once}, and there are {hosts} hosts: it would hold nothing; 1 to {hosts} is allowed"),
            );
        }
        if rule.label.is_none() && hosts == 0 {
            continue;
        }
        check_against(rule, &field, (largest, &whose), problems);
    }
}

fn check_against(rule: &GroupRule, field: &str, (largest, whose): (u64, &str), problems: &mut Problems) {
    if let Some(most) = rule.at_most_out.filter(|most| u64::from(*most) >= largest) {
        problems.add(
            format!("{field}.at_most_out"),
            format!("is {most}, and {whose}: it would hold nothing; fewer than {largest} are allowed"),
        );
    }
    if rule.majority && largest < 3 {
        problems.add(
            format!("{field}.majority"),
            format!("is true, and {whose}: no host of it could be fenced by itself; groups of 3 hosts or more are allowed"),
        );
    }
}

fn unknown(label: &str, known: &BTreeMap<String, BTreeMap<String, u64>>) -> String {
    let labels: Vec<&str> = known.keys().map(String::as_str).take(NAMED).collect();
    let labels = match labels[..] {
        [] => "no host has a label; give hosts labels first".to_owned(),
        _ => format!("labels of hosts are {}", labels.join(", ")),
    };
    format!("is {label:?}, and no host has this label; {labels}")
}
