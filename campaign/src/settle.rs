//! The end phase: after the last fault every operation must end, every host must come back, and the API must agree with the world.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::time::sleep;

use crate::actor;
use crate::field::Field;

/// Time limit for the end of all operations after the last fault.
const ENDS_WITHIN: Duration = Duration::from_secs(120);
/// Time limit for the return of all hosts while people help.
const BACK_WITHIN: Duration = Duration::from_secs(60);
/// Time between two looks, and between two actions at one host.
const LOOK_EVERY: Duration = Duration::from_millis(1_000);

/// Waits for the end, and judges it.
pub async fn settle(field: &Field) {
    if !until_ended(field).await {
        return;
    }
    until_back(field).await;
}

/// L1: every operation ends by itself, or needs an operator.
async fn until_ended(field: &Field) -> bool {
    let deadline = Instant::now() + ENDS_WITHIN;
    loop {
        let hosts = hosts(field).await;
        let runs = |host: &&Value| host["operation"]["status"] == "running";
        let all_known = hosts.len() == field.options.hosts;
        let running: Vec<_> = hosts.iter().filter(runs).collect();
        if all_known && running.is_empty() {
            field.log.note("every operation has ended");
            return true;
        }
        if Instant::now() >= deadline {
            for host in &running {
                report_endless_operation(field, host).await;
            }
            if !all_known {
                field.violated(
                    "no answer",
                    "the API",
                    "the list of hosts cannot be read".to_owned(),
                );
            }
            return false;
        }
        sleep(LOOK_EVERY).await;
    }
}

async fn last_operation(field: &Field, host: &str) -> Value {
    let host = field.api.get(&format!("/hosts/{host}")).await.unwrap_or_default();
    let id = host["operation"]["id"].as_str().unwrap_or_default();
    field
        .api
        .get(&format!("/operations/{id}"))
        .await
        .unwrap_or_default()
}

async fn report_endless_operation(field: &Field, host: &Value) {
    let name = host["name"].as_str().unwrap_or_default();
    let id = host["operation"]["id"].as_str().unwrap_or_default();
    let operation = field.api.get(&format!("/operations/{id}")).await;
    let detail = format!("the operation does not end: {}", operation.unwrap_or_default());
    field.violated("an operation that does not end", name, detail);
}

/// People repair hosts and devices, and take every host back.
async fn until_back(field: &Field) {
    let deadline = Instant::now() + BACK_WITHIN;
    let mut turns: BTreeMap<String, u32> = BTreeMap::new();
    loop {
        let mut away = Vec::new();
        for host in hosts(field).await {
            if let Some(why) = why_away(field, &host).await {
                help(field, &host, &mut turns).await;
                away.push((host, why));
            }
        }
        if away.is_empty() {
            field.log.note("every host is back");
            return;
        }
        if field.is_violated() {
            return;
        }
        if Instant::now() >= deadline {
            for (host, why) in away {
                let name = host["name"].as_str().unwrap_or_default();
                let operation = last_operation(field, name).await;
                let detail = format!("{why}: {host}; {operation}");
                field.violated("a host that does not come back", name, detail);
            }
            return;
        }
        sleep(LOOK_EVERY).await;
    }
}

/// Why a host is not in its first state.
async fn why_away(field: &Field, host: &Value) -> Option<String> {
    let name = host["name"].as_str()?;
    let moment = field.truth.moment(name)?;
    let gates = field.api.get(&format!("/hosts/{name}/gates")).await;
    let is_open = gates
        .as_ref()
        .is_some_and(|gates| gates["schedule"]["allowed"] == true);
    if !is_open {
        return Some(format!(
            "the schedule gate is closed: {}; {moment:?}",
            gates.unwrap_or_default()
        ));
    }
    // An open schedule gate means that everything was given back.
    let later = field.truth.moment(name)?;
    if later == moment && (moment.is_cut || !moment.powered) && gates.is_some() {
        let detail = format!(
            "the schedule gate is open, and the host lacks power, storage or network: {moment:?}; {host}"
        );
        field.violated("forgotten", name, detail);
    }
    (!moment.writes).then(|| format!("the host does not run: {moment:?}"))
}

/// Does what a person would do next.
async fn help(field: &Field, host: &Value, turns: &mut BTreeMap<String, u32>) {
    let name = host["name"].as_str().unwrap_or_default();
    let turn = turns.entry(name.to_owned()).or_default();
    *turn += 1;
    let because = json!({ "reason": "campaign: the end" });
    let id = host["operation"]["id"].as_str().unwrap_or_default();
    match host["operation"]["status"].as_str() {
        Some("running") => {
            if field
                .truth
                .moment(name)
                .is_some_and(|moment| moment.powered && *turn % 5 == 3)
            {
                actor::repair(field, name);
            }
        }
        Some("needs_operator") => {
            actor::repair(field, name);
            if *turn > 4 {
                // A device that shows power, and gives none.
                actor::switch_on(field, name);
            }
            let what = if turn.is_multiple_of(2) { "retry" } else { "cancel" };
            actor::ask(field, name, &format!("/operations/{id}/{what}"), because).await;
        }
        _ if host["failure_state"] == "UP" || host["fencing_state"] == "FENCED" => {
            if *turn > 4 {
                actor::switch_on(field, name);
            }
            if *turn % 4 == 2 && host["failure_state"] != "UP" {
                actor::repair(field, name);
            }
            actor::ask(field, name, &format!("/hosts/{name}/rejoin"), because).await;
        }
        _ => {
            actor::repair(field, name);
            let is_partly_fenced = host["applied_fencing"]
                .as_array()
                .is_some_and(|applied| !applied.is_empty());
            if is_partly_fenced {
                actor::ask(field, name, &format!("/hosts/{name}/rejoin"), because).await;
            } else if *turn > 4 {
                actor::switch_on(field, name);
            }
        }
    }
}

async fn hosts(field: &Field) -> Vec<Value> {
    let list = field.api.get("/hosts?limit=1000").await.unwrap_or_default();
    list["hosts"].as_array().cloned().unwrap_or_default()
}
