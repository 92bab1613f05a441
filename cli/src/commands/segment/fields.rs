//! The options for a segment's fields, and what they say.

use clap::Args;
use serde_json::{Map, Value, json};

use super::super::arguments::{Pair, object_at, pair, put, seconds_or_none};
use crate::error::CliError;

/// The value of the options for moves of many hosts.
const MOVE_LIMITS: &str = "at_once=N,per_minute=N|none";

/// The options for a segment's fields.
#[derive(Debug, Args)]
pub struct SegmentFields {
    /// What the segment is for
    #[arg(long)]
    description: Option<String>,
    /// Seconds after which a host that lost contact has certainly stopped its own workloads; none: a host does not fence itself
    #[arg(long, value_name = "SECONDS|none", value_parser = seconds_or_none)]
    self_fencing_timeout_s: Option<Value>,
    /// Seconds that a proof of a stop settles before it counts
    #[arg(long, value_name = "SECONDS")]
    settle_s: Option<u32>,
    /// How often a fence that needs an operator is restarted automatically
    #[arg(long, value_name = "N")]
    restarts: Option<u32>,
    /// Seconds between two such restarts
    #[arg(long, value_name = "SECONDS")]
    restart_delay_s: Option<u32>,
    /// Whether a FENCED host that is seen UP again is rejoined automatically
    #[arg(long, value_name = "true|false")]
    auto_rejoin: Option<bool>,
    /// When a host is rejoined only where you ask for it: fenced so often within so many seconds; none: never
    #[arg(long, value_name = "fences=N,within_s=SECONDS|none", value_parser = quarantine_or_none)]
    quarantine: Option<Value>,
    /// Seconds that a rejoin waits for the host
    #[arg(long, value_name = "SECONDS")]
    rejoin_wait_s: Option<u32>,
    /// The zone whose workers reach the clouds of the hosts; none: each host's own zone
    #[arg(long, value_name = "ZONE|none", value_parser = zone_or_none)]
    workloads_zone: Option<Value>,
    /// Methods that read what the hosts write to shared storages; none: removes all
    #[arg(long, value_name = "METHOD[,METHOD]|none", value_parser = names_or_none)]
    heartbeats: Option<Value>,
    /// Whether hosts are fenced automatically, as in automatic=true, after_s=15, at_most=5, at_once=2, per_minute=4, quiet_s=600,
    /// kdump_timeout_s=600, ceph=METHOD,METHOD or queries=METHOD,METHOD; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    fencing: Vec<String>,
    /// How much of what it watches a source has to hear before a host is fenced by its word, as in at_most_percent=50,quiet_s=60: it may not hear 50 % of its hosts; none: it need not
    #[arg(long, value_name = "at_most_percent=N,quiet_s=SECONDS|none", value_parser = sight_or_none)]
    sight: Option<Value>,
    /// What is bounded for a group of hosts, as in label=rack,at_once=1, label=etcd,majority=true, label=etcd,at_most_out=1, or at_once=10 for all hosts; may be
    /// repeated, and replaces all rules for groups; none: removes all rules
    #[arg(long, value_name = "KEY=VALUE[,KEY=VALUE]|none")]
    group: Vec<String>,
    /// What is done about a condition of a host, as in KernelDeadlock=hold_scheduling or KernelDeadlock=fence,for_s=120,status=True; may be
    /// repeated, and replaces all rules for conditions; none: removes all rules
    #[arg(long, value_name = "NAME=ACTION[,KEY=VALUE]|none")]
    condition: Vec<String>,
    /// When it is told that a problem of a host comes too often, as in fenced,times=2,within_s=86400, failed,times=5,within_s=3600 or
    /// condition=KernelDeadlock,times=3,within_s=3600; may be repeated, and replaces all alarms; none: removes all alarms
    #[arg(long, value_name = "PROBLEM[=CONDITION],times=N,within_s=SECONDS|none")]
    alarm: Vec<String>,
    /// How the workloads of a FENCED host are evacuated, as in automatic=true, at_once=8 or spare_hosts=a,b; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    evacuation: Vec<String>,
    /// How many workloads of all hosts of the segment are moved, those of the highest priority first; none: any number
    #[arg(long, value_name = MOVE_LIMITS, value_parser = move_limits_or_none)]
    moves_in_segment: Option<Value>,
    /// How many workloads of all hosts of a cloud or cluster are moved, beside which those of this segment's hosts may be; none: any number
    #[arg(long, value_name = MOVE_LIMITS, value_parser = move_limits_or_none)]
    moves_on_platform: Option<Value>,
}

impl SegmentFields {
    pub fn put_into(self, body: &mut Map<String, Value>) -> Result<(), CliError> {
        put(body, "description", self.description);
        let mut policy = Map::new();
        put(&mut policy, "self_fencing_timeout_s", self.self_fencing_timeout_s);
        put(&mut policy, "settle_s", self.settle_s);
        put(&mut policy, "restarts", self.restarts);
        put(&mut policy, "restart_delay_s", self.restart_delay_s);
        put(&mut policy, "auto_rejoin", self.auto_rejoin);
        put(&mut policy, "quarantine", self.quarantine);
        put(&mut policy, "rejoin_wait_s", self.rejoin_wait_s);
        put(&mut policy, "workloads_zone", self.workloads_zone);
        put(&mut policy, "heartbeats", self.heartbeats);
        let fencing = self.fencing.iter().map(|text| fencing_field(text));
        let mut fencing = fencing.collect::<Result<Map<String, Value>, CliError>>()?;
        put(&mut fencing, "sight", self.sight);
        if !self.group.is_empty() {
            fencing.insert("groups".to_owned(), group_rules(&self.group)?.into());
        }
        if !self.condition.is_empty() {
            policy.insert("conditions".to_owned(), condition_rules(&self.condition)?.into());
        }
        if !self.alarm.is_empty() {
            policy.insert("alarms".to_owned(), alarm_rules(&self.alarm)?.into());
        }
        let evacuation = self.evacuation.iter().map(|text| evacuation_field(text));
        let mut evacuation = evacuation.collect::<Result<Map<String, Value>, CliError>>()?;
        put(&mut evacuation, "in_segment", self.moves_in_segment);
        put(&mut evacuation, "on_platform", self.moves_on_platform);
        if !policy.is_empty() {
            object_at(body, "policy")?.extend(policy);
        }
        if !fencing.is_empty() {
            object_at(object_at(body, "policy")?, "fencing")?.extend(fencing);
        }
        if !evacuation.is_empty() {
            object_at(object_at(body, "policy")?, "evacuation")?.extend(evacuation);
        }
        Ok(())
    }
}

fn names_or_none(text: &str) -> Result<Value, String> {
    if text == "none" {
        return Ok(json!([]));
    }
    let names: Vec<&str> = text.split(',').map(str::trim).collect();
    if names.contains(&"") {
        return Err("names with commas between them, or none, are allowed".to_owned());
    }
    Ok(json!(names))
}

fn quarantine_or_none(text: &str) -> Result<Value, String> {
    numbers_or_none(
        text,
        "fences=N,within_s=SECONDS is allowed, such as fences=3,within_s=86400, and none",
    )
}

fn sight_or_none(text: &str) -> Result<Value, String> {
    numbers_or_none(
        text,
        "at_most_percent=N,quiet_s=SECONDS is allowed, such as at_most_percent=50,quiet_s=60, and none",
    )
}

fn move_limits_or_none(text: &str) -> Result<Value, String> {
    numbers_or_none(
        text,
        "at_once=N, per_minute=N or both with a comma between are allowed, such as at_once=32,per_minute=120, and none",
    )
}

/// Names with whole numbers.
fn numbers_or_none(text: &str, allowed: &str) -> Result<Value, String> {
    if text == "none" {
        return Ok(Value::Null);
    }
    let field = |text: &str| {
        let (key, value) = text.split_once('=')?;
        let value: u32 = value.trim().parse().ok()?;
        Some((key.trim().to_owned(), Value::from(value)))
    };
    let fields: Option<Map<String, Value>> = text.split(',').map(field).collect();
    fields.map(Value::Object).ok_or_else(|| allowed.to_owned())
}

fn zone_or_none(text: &str) -> Result<Value, String> {
    Ok(match text {
        "none" => Value::Null,
        zone => Value::from(zone),
    })
}

/// A field of the evacuation policy: true or false, a number, names, or a word.
fn evacuation_field(text: &str) -> Result<(String, Value), CliError> {
    let Pair { key, value } = pair(text)?;
    let value = match key.as_str() {
        "spare_hosts" => names(&value),
        "metadata_key" | "priority_key" | "workloads" => value.into(),
        _ => serde_json::from_str(&value).unwrap_or_else(|_| value.into()),
    };
    Ok((key, value))
}

fn names(listed: &str) -> Value {
    let names = listed.split(',').map(str::trim);
    names.filter(|name| !name.is_empty()).collect()
}

/// The fields with methods that are asked.
const ASKED: [&str; 2] = ["ceph", "queries"];

/// A field of the policy for automatic fences: true or false, a number, names, or none.
fn fencing_field(text: &str) -> Result<(String, Value), CliError> {
    let Pair { key, value } = pair(text)?;
    let is_list = ASKED.contains(&key.as_str());
    let value = match value.as_str() {
        "none" if is_list => names(""),
        listed if is_list => names(listed),
        "none" => Value::Null,
        other => serde_json::from_str(other).unwrap_or_else(|_| other.into()),
    };
    Ok((key, value))
}

/// The rules for conditions: all of them.
fn condition_rules(texts: &[String]) -> Result<Vec<Value>, CliError> {
    let rules = texts.iter().filter(|text| text.as_str() != "none");
    rules.map(|text| condition_rule(text)).collect()
}

fn condition_rule(text: &str) -> Result<Value, CliError> {
    let Pair { key, value } = pair(text)?;
    let mut words = value.split(',');
    let mut rule = Map::new();
    rule.insert("condition".to_owned(), key.into());
    rule.insert(
        "action".to_owned(),
        words.next().unwrap_or_default().trim().into(),
    );
    for word in words {
        let (key, value) = fencing_field(word)?;
        // A status reads like true and false, and is none of them.
        let value = if key == "status" {
            pair(word)?.value.into()
        } else {
            value
        };
        rule.insert(key, value);
    }
    Ok(rule.into())
}

/// The rules for alarms: all of them.
fn alarm_rules(texts: &[String]) -> Result<Vec<Value>, CliError> {
    let rules = texts.iter().filter(|text| text.as_str() != "none");
    rules.map(|text| alarm_rule(text)).collect()
}

fn alarm_rule(text: &str) -> Result<Value, CliError> {
    let mut words = text.split(',');
    let what = words.next().unwrap_or_default().trim();
    let (problem, condition) = match what.split_once('=') {
        Some((problem, condition)) => (problem, Some(condition)),
        None => (what, None),
    };
    let mut rule = Map::new();
    put(&mut rule, "problem", Some(problem));
    put(&mut rule, "condition", condition);
    for word in words {
        let (key, value) = group_field(word)?;
        rule.insert(key, value);
    }
    Ok(rule.into())
}

/// The rules for groups: all of them.
fn group_rules(texts: &[String]) -> Result<Vec<Value>, CliError> {
    let rules = texts.iter().filter(|text| text.as_str() != "none");
    let rule = |text: &String| -> Result<Value, CliError> {
        let fields: Result<Map<String, Value>, CliError> = text.split(',').map(group_field).collect();
        fields.map(Value::Object)
    };
    rules.map(rule).collect()
}

fn group_field(text: &str) -> Result<(String, Value), CliError> {
    let Pair { key, value } = pair(text)?;
    // A label may read like a number.
    let value = match key.as_str() {
        "label" => value.into(),
        _ => serde_json::from_str(&value).unwrap_or_else(|_| value.into()),
    };
    Ok((key, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_can_be_taken_away_and_the_rest_of_the_policy_stays() {
        let mut body = json!({"policy": {"self_fencing_timeout_s": 60, "restarts": 2}})
            .as_object()
            .unwrap()
            .clone();
        let fields = SegmentFields {
            description: None,
            self_fencing_timeout_s: Some(seconds_or_none("none").unwrap()),
            settle_s: Some(0),
            restarts: None,
            restart_delay_s: None,
            auto_rejoin: Some(true),
            quarantine: None,
            rejoin_wait_s: None,
            workloads_zone: None,
            heartbeats: Some(names_or_none("lease, nfs").unwrap()),
            fencing: vec![
                "automatic=true".to_owned(),
                "at_most=8".to_owned(),
                "at_once=none".to_owned(),
            ],
            sight: Some(sight_or_none("at_most_percent=50,quiet_s=60").unwrap()),
            group: vec![
                "label=rack,at_once=1".to_owned(),
                "label=7,majority=true".to_owned(),
            ],
            condition: vec!["KernelDeadlock=fence,for_s=120,status=True".to_owned()],
            alarm: vec![
                "fenced,times=2,within_s=86400".to_owned(),
                "condition=KernelDeadlock,times=3,within_s=3600".to_owned(),
            ],
            evacuation: vec!["automatic=true".to_owned(), "spare_hosts=a, b".to_owned()],
            moves_in_segment: Some(move_limits_or_none("at_once=32,per_minute=120").unwrap()),
            moves_on_platform: Some(move_limits_or_none("none").unwrap()),
        };
        fields.put_into(&mut body).unwrap();
        let expected = json!({"policy": {"self_fencing_timeout_s": null, "settle_s": 0, "restarts": 2, "auto_rejoin": true, "heartbeats": ["lease", "nfs"],
                "fencing": {"automatic": true, "at_most": 8, "at_once": null, "sight": {"at_most_percent": 50, "quiet_s": 60}, "groups": [{"label": "rack", "at_once": 1}, {"label": "7", "majority": true}]},
                "conditions": [{"condition": "KernelDeadlock", "action": "fence", "for_s": 120, "status": "True"}],
                "alarms": [{"problem": "fenced", "times": 2, "within_s": 86400}, {"problem": "condition", "condition": "KernelDeadlock", "times": 3, "within_s": 3600}],
                "evacuation": {"automatic": true, "in_segment": {"at_once": 32, "per_minute": 120}, "on_platform": null, "spare_hosts": ["a", "b"]}}});
        assert_eq!(Value::Object(body), expected);
        assert!(seconds_or_none("soon").is_err());
    }
}
