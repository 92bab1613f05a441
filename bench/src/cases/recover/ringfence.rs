//! Ringfence, notified that a host is dead in the form of Masakari's monitors.

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use ringfence_lab::{Compute, HOOK_CLOUD, IpmiBmc};
use ringfence_tests::clouds_file::{Entry, write};
use ringfence_tests::{Client, Ground, Hypervisor};
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::Pair;
use crate::clock::now;
use crate::error::BenchError;
use crate::plant::{Plant, Settings};

/// The steps of a recovery, in their order; each begins where the one before ends.
pub const STEPS: [&str; 6] = [
    "notified to the fence begun",
    "the fence begun to FENCED",
    "FENCED to the evacuation begun",
    "forcing down",
    "listing",
    "moving",
];
const SEGMENT: &str = "rack";
/// Hosts are asked for every 5 s.
const SEEN: Duration = Duration::from_secs(60);
/// How long the records of the end may take.
const END: Duration = Duration::from_secs(60);
/// Nova may still receive the last messages of a host that is dead.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// The times, in seconds.
pub struct Recovery {
    pub total_s: f64,
    pub fence_s: f64,
    pub steps_s: [f64; STEPS.len()],
    /// Of each server, from the attempt's claim to its end.
    pub each_s: Vec<f64>,
}

/// Starts the product, lets it watch both hosts, and measures the recovery of the one that dies.
pub async fn recover(pair: &Pair, ground: Ground) -> Result<Recovery, BenchError> {
    let folder = tempfile::tempdir().map_err(BenchError::system("make a folder"))?;
    let clouds = folder.path().join("clouds.yaml");
    write(&clouds, &[Entry::new(HOOK_CLOUD, &pair.cloud)]);
    let settings = Settings::default()
        .with("RINGFENCE_OPENSTACK_CLOUDS", HOOK_CLOUD)
        .with("RINGFENCE_OPENSTACK_CLOUDS_FILE", clouds.display().to_string());
    let plant = Plant::start(ground, settings).await?;
    configure(&plant, pair).await?;

    let dying = &pair.dying.name;
    pair.dying.with(Compute::kill);
    tokio::time::sleep(LAST_WORDS).await;
    let (told_at, begun) = (now(), Instant::now());
    tell_of_dead_host(&plant.client, dying, told_at).await;
    let recovered = block_in_place(|| pair.until_recovered())?;
    let recovery = read_record(&plant.client, dying, told_at).await?;
    plant.stop().await;
    Ok(Recovery {
        total_s: (recovered - begun).as_secs_f64(),
        ..recovery
    })
}

async fn configure(plant: &Plant, pair: &Pair) -> Result<(), BenchError> {
    let secret = plant.machine.file("bmc-password");
    std::fs::write(&secret, IpmiBmc::PASSWORD).map_err(BenchError::system("write the BMC's password"))?;
    let policy = json!({
        "fencing": { "automatic": true, "after_s": 0, "at_most_percent": 100 },
        "evacuation": { "automatic": true },
    });
    let segment = json!({ "name": SEGMENT, "policy": ringfence_tests::policy(policy) });
    plant.client.post("/segments", segment).await.ok(201);
    let method = json!({
        "name": "bmc", "resource": "power", "driver": "ipmi",
        "parameters": { "address": "127.0.0.1", "username": IpmiBmc::USER, "cipher": "3" },
        "secrets": { "password": format!("file:{}", secret.display()) },
    });
    plant.add_method(method).await;
    plant.add_plan(&[("power.off", "bmc")]).await;
    for machine in [&pair.dying, &pair.other] {
        plant.client.post("/hosts", host(machine)).await.ok(201);
    }
    for machine in [&pair.dying, &pair.other] {
        let path = format!("/hosts/{}", machine.name);
        let is_up = |host: &Value| host["failure_state"] == "UP";
        plant.client.until_within(&path, SEEN, is_up).await;
    }
    Ok(())
}

fn host(machine: &Hypervisor) -> Value {
    json!({
        "name": machine.name, "segment": SEGMENT, "backend": "nova", "cloud": HOOK_CLOUD,
        "parameters": { "bmc": { "port": machine.bmc.port().to_string() } },
    })
}

async fn tell_of_dead_host(client: &Client, host: &str, at: DateTime<Utc>) {
    let notification = json!({
        "type": "COMPUTE_HOST",
        "hostname": host,
        "generated_time": at.format("%Y-%m-%dT%H:%M:%S%.6f").to_string(),
        "payload": { "event": "STOPPED", "cluster_status": "OFFLINE", "host_status": "NORMAL" },
    });
    let told = client
        .post("/v1/notifications", json!({ "notification": notification }))
        .await;
    told.ok(202);
}

/// The times in Ringfence's records; the caller measures the total.
async fn read_record(client: &Client, host: &str, told_at: DateTime<Utc>) -> Result<Recovery, BenchError> {
    let fence = until_ended(client, host, "fence").await;
    let evacuation = until_ended(client, host, "evacuation").await;
    let fenced_at = client.host(host).await["fenced_at"].clone();
    let ends = |kind| ends_of(&evacuation, kind);
    let (begun_at, fenced_at) = (time(&fence["created_at"])?, time(&fenced_at)?);
    let marks = [
        told_at,
        begun_at,
        fenced_at,
        time(&evacuation["created_at"])?,
        first(&ends("workloads.mark-down")?)?,
        first(&ends("workloads.list")?)?,
        last(&ends("workloads.move")?)?,
    ];
    let mut steps_s = [0.0; STEPS.len()];
    for (step, pair) in steps_s.iter_mut().zip(marks.windows(2)) {
        *step = seconds(pair[0], pair[1]);
    }
    Ok(Recovery {
        total_s: seconds(told_at, marks[STEPS.len()]),
        fence_s: seconds(begun_at, fenced_at),
        steps_s,
        each_s: each(&evacuation)?,
    })
}

async fn until_ended(client: &Client, host: &str, kind: &str) -> Value {
    let path = format!("/operations?host={host}&kind={kind}&limit=1");
    let has_ended = |list: &Value| list["operations"][0]["status"] == "succeeded";
    let list = client.until_within(&path, END, has_ended).await;
    list["operations"][0].clone()
}

fn attempts<'a>(operation: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    let each = |value: &'a Value, name: &str| value[name].as_array().into_iter().flatten();
    each(operation, "stages")
        .flat_map(move |stage| each(stage, "tasks"))
        .filter(move |task| task["kind"] == kind)
        .flat_map(move |task| each(task, "attempts"))
}

fn ends_of(operation: &Value, kind: &str) -> Result<Vec<DateTime<Utc>>, BenchError> {
    attempts(operation, kind)
        .map(|attempt| time(&attempt["ended_at"]))
        .collect()
}

fn each(operation: &Value) -> Result<Vec<f64>, BenchError> {
    attempts(operation, "workloads.move")
        .map(|attempt| {
            Ok(seconds(
                time(&attempt["claimed_at"])?,
                time(&attempt["ended_at"])?,
            ))
        })
        .collect()
}

fn first(times: &[DateTime<Utc>]) -> Result<DateTime<Utc>, BenchError> {
    times
        .iter()
        .min()
        .copied()
        .ok_or_else(|| not_a_time(&Value::Null))
}

fn last(times: &[DateTime<Utc>]) -> Result<DateTime<Utc>, BenchError> {
    times
        .iter()
        .max()
        .copied()
        .ok_or_else(|| not_a_time(&Value::Null))
}

fn time(value: &Value) -> Result<DateTime<Utc>, BenchError> {
    let text = value.as_str().unwrap_or_default();
    text.parse().map_err(|_| not_a_time(value))
}

fn not_a_time(value: &Value) -> BenchError {
    BenchError::Unexpected {
        what: "a time of an operation's record".to_owned(),
        found: value.to_string(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "some minutes")]
fn seconds(from: DateTime<Utc>, to: DateTime<Utc>) -> f64 {
    (to - from).num_milliseconds() as f64 / 1000.0
}
