//! `ringfence segment`.

mod apply;
mod document;
mod export;
mod fault;
mod history;
mod keys;
mod template;
mod tree;
mod writing;

use clap::{ArgGroup, Args, Subcommand};
use serde_json::{Map, Value, json};

use self::apply::{ApplyArgs, FileArgs};
pub use self::apply::{as_it_is, checked};
use self::export::ExportArgs;
use self::history::HistoryArgs;
use self::template::TemplateArgs;
use ringfence_core::GroupRule;

use super::arguments::{ListArgs, Pair, object_at, pair, put, seconds_or_none};
use super::completed::segments;
use super::session::Session;
use crate::client::Request;
use crate::client::view::{AlarmRule, ConditionRule, MoveLimits, Policy, Quarantine, Segment, Sight};
use crate::error::CliError;
use crate::output::{Details, Screen, Table};

/// The keys of a segment that can be written.
const KEYS: [&str; 3] = ["name", "description", "policy"];

/// `ringfence segment ...`
#[derive(Debug, Subcommand)]
pub enum SegmentCommand {
    /// Lists segments
    List(ListArgs),
    /// Shows a segment
    Show {
        /// Name or id
        #[arg(add = segments())]
        segment: String,
    },
    /// Adds a segment
    Add(AddArgs),
    /// Changes a segment; options that are not given stay as they are
    Set(SetArgs),
    /// Deletes a segment that has no hosts
    Delete {
        /// Name or id
        #[arg(add = segments())]
        segment: String,
    },
    /// Prints segments as YAML documents, which apply takes
    Export(ExportArgs),
    /// Makes segments what their documents say: adds those that are missing, changes those that differ
    Apply(ApplyArgs),
    /// Shows what apply would change; the exit code is 9 where something differs
    Diff(FileArgs),
    /// Lists the versions of a segment, the newest first, from the audit trail; for admins
    History(HistoryArgs),
    /// Prints a document to begin with; without a name, lists those that there are
    Template(TemplateArgs),
}

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

/// `ringfence segment add`
#[derive(Debug, Args)]
pub struct AddArgs {
    /// Its name
    name: String,
    #[command(flatten)]
    fields: SegmentFields,
}

/// `ringfence segment set`
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("change").multiple(true).required(true).args([
    "name", "description", "self_fencing_timeout_s", "settle_s", "restarts", "restart_delay_s", "auto_rejoin", "quarantine", "rejoin_wait_s", "workloads_zone",
    "heartbeats", "fencing", "sight", "group", "condition", "alarm", "evacuation", "moves_in_segment", "moves_on_platform",
])))]
pub struct SetArgs {
    /// Name or id
    #[arg(add = segments())]
    segment: String,
    /// Its new name
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    fields: SegmentFields,
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

pub use self::template::run as template;

pub async fn run(command: SegmentCommand, session: &mut Session) -> Result<(), CliError> {
    match command {
        SegmentCommand::List(args) => session.list("segments", Vec::new(), &args, table).await,
        SegmentCommand::Show { segment } => session.show(Request::get(&["segments", &segment]), show).await,
        SegmentCommand::Add(args) => {
            let mut body = Map::new();
            put(&mut body, "name", Some(args.name));
            args.fields.put_into(&mut body)?;
            session
                .show(Request::post(&["segments"], body.into()), show)
                .await
        }
        SegmentCommand::Set(args) => set(args, session).await,
        SegmentCommand::Delete { segment } => session.delete("segments", &segment).await,
        SegmentCommand::Export(args) => export::run(args, session).await,
        SegmentCommand::Apply(args) => apply::apply(args, session).await,
        SegmentCommand::Diff(args) => apply::diff(args, session).await,
        SegmentCommand::History(args) => history::run(args, session).await,
        SegmentCommand::Template(args) => template(&args, &mut session.screen),
    }
}

async fn set(args: SetArgs, session: &mut Session) -> Result<(), CliError> {
    let (mut body, etag) = session.draft("segments", &args.segment, &KEYS).await?;
    put(&mut body, "name", args.name);
    args.fields.put_into(&mut body)?;
    let request = Request::put(&["segments", &args.segment], body.into()).if_match(etag);
    session.show(request, show).await
}

impl SegmentFields {
    fn put_into(self, body: &mut Map<String, Value>) -> Result<(), CliError> {
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

fn table(segments: &[Segment]) -> Table {
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

fn show(screen: &mut Screen, segment: Segment) -> Result<(), CliError> {
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
