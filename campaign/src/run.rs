//! One campaign from its beginning to its end.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use reqwest::Method;
use ringfence_core::Resource;
use ringfence_simulators::{Fault, FaultKind, Simulators, World};
use serde_json::{Value, json};
use tokio_util::task::AbortOnDropHandle;

use crate::clock::SiteClock;
use crate::error::CampaignError;
use crate::field::Field;
use crate::log::Log;
use crate::options::Options;
use crate::plant::Plant;
use crate::report::Report;
use crate::script::{Script, host_name, needs_more_than_power};
use crate::truth::Truth;
use crate::{actor, faults, judge, monitor, settle};

/// Runs a campaign.
///
/// # Errors
/// If a program or library is missing, or the service could not be set up.
pub async fn run(options: Options) -> Result<Report, CampaignError> {
    let begun = Instant::now();
    let folder = tempfile::tempdir().map_err(CampaignError::system("make a folder"))?;
    let script = Script::of(&options);
    write_script(&script, folder.path())?;
    let field = set_up(options, folder.path()).await?;
    let keeping = field.plant.keep(&field.log);
    prepare(&field).await?;
    let watching = watch(&field);
    let mut actors = tokio::task::JoinSet::new();
    for (number, host) in field.hosts().enumerate() {
        actors.spawn(actor::act(Arc::clone(&field), host, number as u64));
    }
    let played = faults::play(&field, &script).await;
    field.log.note("the last fault is over");
    field.calm();
    field.plant.heal();
    while actors.join_next().await.is_some() {}
    if !field.is_violated() {
        settle::settle(&field).await;
    }
    let operations = operations(&field).await;
    drop((watching, keeping));
    field.plant.end();
    let violations = field.violations();
    let kept = (field.options.keep || !violations.is_empty())
        .then(|| keep(&field, folder.path()))
        .transpose()?;
    // Tasks that are about to end may still hold the field.
    Ok(Report {
        seed: field.options.seed,
        again: again(&field.options),
        faults: played,
        seconds: begun.elapsed().as_secs(),
        figures: Arc::clone(&field.figures),
        operations,
        writes: field.truth.writes(),
        violations,
        kept,
    })
}

fn again(options: &Options) -> String {
    format!(
        "cargo xtask campaign --ground {} --faults {} --seed {} --hosts {} --seconds {}",
        options.ground.as_str(),
        options.faults,
        options.seed,
        options.hosts,
        options.seconds
    )
}

fn write_script(script: &Script, folder: &Path) -> Result<(), CampaignError> {
    let line = |fault| {
        format!(
            "{script_at:9} {line}\n",
            script_at = at(fault),
            line = script.line(fault)
        )
    };
    let text: String = script.faults.iter().map(line).collect();
    let path = folder.join("script.txt");
    std::fs::write(&path, text).map_err(CampaignError::system(format!("write {}", path.display())))
}

fn at(fault: &crate::Fault) -> u64 {
    fault.at_ms
}

async fn set_up(options: Options, folder: &Path) -> Result<Arc<Field>, CampaignError> {
    let mut world = World::default();
    for host in 0..options.hosts {
        world.add_host(&host_name(host))?;
    }
    let simulators = Simulators::start(SocketAddr::from(([127, 0, 0, 1], 0)), None, world)?;
    let truth = Truth::new(simulators);
    let clock = SiteClock::default();
    let log = Arc::new(Log::new(folder)?);
    let plant = Plant::start(options.ground, &truth.url(), folder, &clock).await?;
    Ok(Arc::new(Field::new(options, truth, log, clock, Arc::new(plant))))
}

/// Adds methods, plans and hosts as an admin would.
async fn prepare(field: &Field) -> Result<(), CampaignError> {
    let policy = json!({ "settle_s": 0, "rejoin_wait_s": 8, "restarts": 1, "restart_delay_s": 3, "fencing": {
        "automatic": !field.options.ghosts, "after_s": 3, "at_most": 10_000, "within_s": 10, "at_most_percent": 100 } });
    let segment = json!({ "name": "default", "policy": policy });
    let api = &field.api;
    api.insist(Method::PUT, "/segments/default", segment).await?;
    for resource in ["power", "storage", "network"] {
        api.insist(Method::POST, "/methods", method(resource)).await?;
    }
    for plan in plans(field.options.ghosts) {
        api.insist(Method::POST, "/plans", plan).await?;
    }
    for (number, name) in field.hosts().enumerate() {
        let host_type = if needs_more_than_power(number) {
            "strict"
        } else {
            "plain"
        };
        api.insist(Method::POST, "/hosts", json!({ "name": name, "type": host_type }))
            .await?;
        if field.options.ghosts {
            field
                .truth
                .set_fault(&name, Resource::Power, Some(Fault::forever(FaultKind::Ghost)))?;
        }
    }
    Ok(())
}

fn method(resource: &str) -> Value {
    json!({
        "name": resource, "resource": resource, "driver": "simulated", "parameters": { "device": "${host.name}" },
        "times": { "attempt_timeout_s": 2, "timeout_s": 6, "retries": 1, "pause_ms": 100, "lingers_s": 4 },
    })
}

/// Power first, then storage and network in any case. For strict hosts power alone does not suffice.
fn plans(ghosts: bool) -> [Value; 2] {
    let task =
        |kind: &str, method: &str| json!({ "kind": kind, "levels": [{ "level": 1, "methods": [method] }] });
    let power = json!({ "tasks": [task("power.off", "power")] });
    let rest = json!({ "tasks": [task("storage.fence", "storage"), task("network.fence", "network")] });
    let stages = if ghosts {
        json!([power])
    } else {
        json!([power, rest])
    };
    let plan = |name: &str, sets: Value| json!({ "name": name, "scope": { "kind": "host_type", "value": name }, "stages": stages, "sufficient_sets": sets });
    if ghosts {
        let by_power = json!([["power.off"], ["operator"]]);
        return ["plain", "strict"].map(|name| plan(name, by_power.clone()));
    }
    let by_power = json!([["power.off"], ["storage.fence", "network.fence"], ["operator"]]);
    let of_strict = json!([
        ["power.off", "storage.fence"],
        ["storage.fence", "network.fence"],
        ["operator"]
    ]);
    [plan("plain", by_power), plan("strict", of_strict)]
}

fn watch(field: &Arc<Field>) -> Vec<AbortOnDropHandle<()>> {
    vec![
        AbortOnDropHandle::new(tokio::spawn(judge::write(Arc::clone(field)))),
        AbortOnDropHandle::new(tokio::spawn(judge::judge(Arc::clone(field)))),
        AbortOnDropHandle::new(tokio::spawn(monitor::watch(Arc::clone(field)))),
    ]
}

/// The number of operations of each kind and status, by the API's list.
async fn operations(field: &Field) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    let mut path = Some("/operations?limit=1000".to_owned());
    while let Some(page) = path.take() {
        let Some(list) = field.api.get(&page).await else {
            break;
        };
        for operation in list["operations"].as_array().into_iter().flatten() {
            let word = |name: &str| operation[name].as_str().unwrap_or_default().to_owned();
            *found
                .entry(format!("{} {}", word("kind"), word("status")))
                .or_default() += 1;
        }
        let links = list["links"].as_array().into_iter().flatten();
        let mut next = links.filter(|link| link["rel"] == "next");
        path = next
            .next()
            .and_then(|link| link["href"].as_str())
            .map(str::to_owned);
    }
    found
}

/// Copies the script, the log, and the output of the processes.
fn keep(field: &Field, folder: &Path) -> Result<PathBuf, CampaignError> {
    let name = format!(
        "campaign-{}-{}",
        field.options.ground.as_str(),
        field.options.seed
    );
    let kept = field.options.kept.join(name);
    let cannot = || CampaignError::system(format!("keep the logs in {}", kept.display()));
    std::fs::create_dir_all(&kept).map_err(cannot())?;
    for from in [folder, field.plant.home.as_path()] {
        for entry in std::fs::read_dir(from).map_err(cannot())?.flatten() {
            let path = entry.path();
            let is_log = path.extension().is_some_and(|end| end == "log" || end == "txt");
            if is_log {
                std::fs::copy(&path, kept.join(entry.file_name())).map_err(cannot())?;
            }
        }
    }
    Ok(kept)
}
