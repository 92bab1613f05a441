//! Segments for people: what a policy says, in a few words.

use ringfence_core::GroupRule;

use crate::client::view::{AlarmRule, ConditionRule, MoveLimits, Policy, Quarantine, Segment, Sight};
use crate::error::CliError;
use crate::output::{Details, Screen, Table};

fn self_fencing(policy: &Policy) -> String {
    policy
        .self_fencing_timeout_s
        .map_or_else(|| "none".to_owned(), |seconds| format!("{seconds} s"))
}

fn quarantine(policy: &Policy) -> Option<String> {
    let Quarantine { fences, within_s } = policy.quarantine?;
    Some(format!("after {fences} fences within {within_s} s"))
}

fn restarts(policy: &Policy) -> String {
    match policy.restarts {
        0 => "none".to_owned(),
        number => format!("{number}, {} s apart", policy.restart_delay_s),
    }
}

fn auto_rejoin(policy: &Policy) -> &'static str {
    if policy.auto_rejoin { "yes" } else { "no" }
}

fn fencing(policy: &Policy) -> String {
    let fencing = &policy.fencing;
    if !fencing.automatic {
        return "when asked".to_owned();
    }
    let at_once = fencing.at_once.map(|fences| format!(", {fences} at once"));
    let per_minute = fencing.per_minute.map(|fences| format!(", {fences} per minute"));
    let quiet = fencing
        .quiet_s
        .map(|seconds| format!(", after a storm once it was quiet for {seconds} s"));
    let dump = fencing
        .kdump_timeout_s
        .map(|seconds| format!(", power after a crash dump of up to {seconds} s"));
    let sight = fencing.sight.map(
        |Sight {
             at_most_percent,
             quiet_s,
         }| {
            format!(", by a source that has not lost {at_most_percent} % of its hosts for {quiet_s} s")
        },
    );
    let ceph = Some(fencing.ceph.join(", ")).filter(|names| !names.is_empty());
    let ceph = ceph.map(|names| format!(", where Ceph goes on without the host ({names})"));
    let queries = Some(fencing.queries.join(", ")).filter(|names| !names.is_empty());
    let queries = queries.map(|names| format!(", where queries allow it ({names})"));
    let more = [at_once, per_minute, quiet, dump, sight, ceph, queries];
    let more: String = more.into_iter().flatten().collect();
    format!(
        "by itself after {} s, at most {} hosts within {} s and {} % of them all{more}",
        fencing.after_s, fencing.at_most, fencing.within_s, fencing.at_most_percent,
    )
}

fn group_line(rule: &GroupRule) -> String {
    let GroupRule {
        label,
        at_once,
        at_most_out,
        majority,
    } = rule;
    let whose = label
        .as_ref()
        .map_or_else(|| "all hosts".to_owned(), |label| format!("hosts of one {label}"));
    let bounds = [
        at_once.map(|fences| format!("{fences} at once")),
        at_most_out.map(|hosts| format!("at most {hosts} out of service")),
        majority.then(|| "more than half stay in service".to_owned()),
    ];
    let bounds: Vec<String> = bounds.into_iter().flatten().collect();
    format!("{whose}: {}", bounds.join(", "))
}

fn condition_line(rule: &ConditionRule) -> String {
    let for_s = match rule.for_s {
        0 => String::new(),
        seconds => format!(" for {seconds} s"),
    };
    format!("{} {}{for_s}: {}", rule.condition, rule.status, rule.action)
}

fn alarm_rule_line(rule: &AlarmRule) -> String {
    let AlarmRule {
        problem,
        condition,
        times,
        within_s,
    } = rule;
    let what = condition.as_ref().unwrap_or(problem);
    format!("{what} {times} times within {within_s} s")
}

fn evacuation(policy: &Policy) -> String {
    let evacuation = &policy.evacuation;
    let begins = if evacuation.automatic {
        "by itself"
    } else {
        "when asked"
    };
    let pace = match evacuation.per_second {
        0 => String::new(),
        per_second => format!(", {per_second} begun per second"),
    };
    let budgets = match evacuation.disruption_budgets {
        true => ", as disruption budgets allow",
        false => "",
    };
    format!(
        "{begins}, {}, {} at once{pace}{budgets}",
        evacuation.workloads, evacuation.at_once
    )
}

fn move_limits(limits: Option<MoveLimits>) -> Option<String> {
    let MoveLimits { at_once, per_minute } = limits?;
    let bounds = [
        at_once.map(|moves| format!("{moves} at once")),
        per_minute.map(|moves| format!("{moves} begun per minute")),
    ];
    let bounds: Vec<String> = bounds.into_iter().flatten().collect();
    Some(bounds.join(", "))
}

pub(super) fn table(segments: &[Segment]) -> Table {
    let mut table = Table::new(&["NAME", "SELF-FENCING", "RESTARTS", "AUTO-REJOIN", "DESCRIPTION"])
        .and_wide(&["FENCED BY ITSELF", "EVACUATED BY ITSELF", "ID"]);
    for segment in segments {
        let policy = &segment.policy;
        table.row([
            segment.name.as_str().into(),
            self_fencing(policy).into(),
            restarts(policy).into(),
            auto_rejoin(policy).into(),
            segment.description.as_str().into(),
            yes(policy.fencing.automatic).into(),
            yes(policy.evacuation.automatic).into(),
            segment.id.as_str().into(),
        ]);
    }
    table
}

fn yes(so: bool) -> &'static str {
    if so { "yes" } else { "no" }
}

pub(super) fn show(screen: &mut Screen, segment: Segment) -> Result<(), CliError> {
    let policy = &segment.policy;
    let mut details = Details::default()
        .with("name", &segment.name)
        .with("id", &segment.id)
        .with_some("description", Some(&segment.description))
        .with("self-fencing timeout", self_fencing(policy))
        .with("a stop settles", format!("{} s", policy.settle_s))
        .with("restarts", restarts(policy))
        .with("auto-rejoin", auto_rejoin(policy))
        .with_some("quarantine", quarantine(policy))
        .with("rejoin waits", format!("{} s", policy.rejoin_wait_s))
        .with_some("workloads' zone", policy.workloads_zone.as_deref())
        .with_some("heartbeats", Some(policy.heartbeats.join(", ")))
        .with("fencing", fencing(policy));
    for rule in &policy.fencing.groups {
        details = details.with("group", group_line(rule));
    }
    for rule in &policy.conditions {
        details = details.with("condition", condition_line(rule));
    }
    for rule in &policy.alarms {
        details = details.with("alarm", alarm_rule_line(rule));
    }
    screen.details(
        details
            .with("evacuation", evacuation(policy))
            .with_some("moves in segment", move_limits(policy.evacuation.in_segment))
            .with_some("moves on platform", move_limits(policy.evacuation.on_platform))
            .with_some("spare hosts", Some(policy.evacuation.spare_hosts.join(", "))),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn how_workloads_go_is_one_line() {
        for (budgets, told) in [
            (false, "when asked, all, 4 at once, 2 begun per second"),
            (
                true,
                "when asked, all, 4 at once, 2 begun per second, as disruption budgets allow",
            ),
        ] {
            let policy = json!({
                "restarts": 0, "restart_delay_s": 60, "auto_rejoin": false, "rejoin_wait_s": 600,
                "evacuation": { "workloads": "all", "at_once": 4, "per_second": 2, "disruption_budgets": budgets },
            });
            assert_eq!(evacuation(&serde_json::from_value(policy).unwrap()), told);
        }
    }
}
