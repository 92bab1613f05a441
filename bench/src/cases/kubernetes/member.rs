//! A member of a set, with a volume, whose node dies: from the last heartbeat to FENCED, and from FENCED to the member bound elsewhere.
//!
//! In turns with the bare calls by which an operator who knows that the node is off would do it.

mod bmc;
mod rig;

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use ringfence_tests::{Ground, tell};
use serde_json::Value;

use self::rig::{DOWN_AFTER, Rig};
use super::NAME;
use crate::cases::Case;
use crate::error::BenchError;
use crate::report::{Figure, Report, Target};
use crate::statistics::Summary;

/// Each round of figure and floor takes the better part of a minute.
const ROUNDS: usize = 4;
/// How much longer than by the bare calls, at the median.
const MOST_OVER_CALLS_S: f64 = 0.25;
/// How much longer than the detection time and the device, at the median.
const MOST_OVER_DEVICE_S: f64 = 1.0;
const PATIENCE: Duration = Duration::from_secs(120);

/// Measures on one ground.
pub async fn measure(case: &Case, ground: Ground, report: &mut Report) -> Result<(), BenchError> {
    let mut rig = Rig::start(ground).await?;
    let mut taken = Taken::default();
    // The first round fills caches and opens connections.
    for round in 0..=ROUNDS.min(case.samples) {
        if round == 1 {
            taken = Taken::default();
        }
        taken.take_ringfence(&mut rig).await?;
        taken.take_calls(&mut rig).await?;
    }
    rig.stop().await;
    taken.tell(ground, report)
}

/// All measurements in seconds, one of each kind per round.
#[derive(Default)]
struct Taken {
    silence_to_seen: Vec<f64>,
    silence_to_fenced: Vec<f64>,
    acting: Vec<f64>,
    bound: Vec<f64>,
    running: Vec<f64>,
    device: Vec<f64>,
    calls_bound: Vec<f64>,
    calls_running: Vec<f64>,
}

impl Taken {
    async fn take_ringfence(&mut self, rig: &mut Rig) -> Result<(), BenchError> {
        let (node, uid) = rig.member().await?;
        let killed = rig.kill(&node)?;
        let seen = rig.until_told("host.failure_state", &node, killed).await?;
        let fenced = rig.until_told("host.fenced", &node, killed).await?;
        let silent_since = rig.last_renewal(&node)?;
        let (bound, running) = rig.until_elsewhere(&node, &uid).await?;
        self.silence_to_seen.push(seconds(silent_since, seen));
        self.silence_to_fenced.push(seconds(silent_since, fenced));
        self.bound.push(seconds(fenced, bound));
        self.running.push(seconds(fenced, running));
        self.acting.push(claim_to_reading(rig, &node).await?);
        tell(&format!(
            "Ringfence: FENCED after {:.2} s, bound {:.3} s and running {:.2} s after that",
            seconds(silent_since, fenced),
            seconds(fenced, bound),
            seconds(fenced, running),
        ));
        rig.take_back(&node).await
    }

    async fn take_calls(&mut self, rig: &mut Rig) -> Result<(), BenchError> {
        let (node, uid) = rig.member().await?;
        rig.fence_by_itself(false).await;
        rig.kill(&node)?;
        self.device.push(bmc::switch_off(rig.bmc_port(&node)?).await?);
        rig.until_not_ready(&node)?;
        let attachment = rig.attachment(&node).await?;
        rig.cordon(&node, true).await?;
        let begun = rig.let_go(&node, &attachment).await?;
        let (bound, running) = rig.until_elsewhere(&node, &uid).await?;
        self.calls_bound.push(seconds(begun, bound));
        self.calls_running.push(seconds(begun, running));
        tell(&format!(
            "bare calls: bound after {:.3} s, running after {:.2} s",
            seconds(begun, bound),
            seconds(begun, running),
        ));
        rig.start_again(&node).await?;
        rig.cordon(&node, false).await?;
        rig.fence_by_itself(true).await;
        Ok(())
    }

    fn tell(&self, ground: Ground, report: &mut Report) -> Result<(), BenchError> {
        let figure = |what: &str, summary| Figure::new(NAME, what, "s", summary).on(ground);
        let (Some(calls), Some(device)) = (Summary::of(&self.calls_bound), Summary::of(&self.device)) else {
            return Ok(());
        };
        report.add(
            figure("floor: the bare calls, to the member bound on another node", calls)
                .note("at once, on a node that is off and cordoned: deletion by force of the pod with its UID, deletion of the attachment, volumesInUse emptied"),
        )?;
        report.add_summary(&self.bound, |s| {
            figure("FENCED to the member bound on another node", s)
                .over("the bare calls", calls.median)
                .target(Target::at_most(
                    "over the bare calls, to the member bound elsewhere, median,",
                    s.median - calls.median,
                    MOST_OVER_CALLS_S,
                    "s",
                ))
                .note("Kubernetes 1.20, which has no out-of-service taint; on a 1.36 the bare calls with the taint took 0.06 s")
        })?;
        if let Some(calls) = Summary::of(&self.calls_running) {
            report.add(figure(
                "floor: the bare calls, to the member running there",
                calls,
            ))?;
            report.add_summary(&self.running, |s| {
                figure("FENCED to the member running there, with its volume", s)
                    .over("the bare calls", calls.median)
            })?;
        }
        let detection = DOWN_AFTER.as_secs_f64();
        report.add(
            figure(
                "floor: the device alone, ipmitool off and status until off",
                device,
            )
            .note("ipmi_sim, of a host that is dead already, so that the first status shows it as off"),
        )?;
        report.add_summary(&self.silence_to_fenced, |s| {
            figure("last heartbeat to FENCED", s)
                .over("detection and the device", detection + device.median)
                .target(Target::at_most(
                    "over detection and the device, to FENCED, median,",
                    s.median - detection - device.median,
                    MOST_OVER_DEVICE_S,
                    "s",
                ))
                .note(format!(
                    "down_after_s {detection}, fencing.after_s 0; the heartbeat is the last renewal of the lease that a watch beside Ringfence's saw"
                ))
        })?;
        report.add_summary(&self.silence_to_seen, |s| {
            figure("of which: last heartbeat to UNREACHABLE", s).over("the detection time", detection)
        })?;
        report.add_summary(&self.acting, |s| {
            figure("of which: claim to read back", s).over("the device alone", device.median)
        })
    }
}

fn seconds(from: Instant, to: Instant) -> f64 {
    to.saturating_duration_since(from).as_secs_f64()
}

/// The time in which the last fence of a node was carried out, in seconds.
async fn claim_to_reading(rig: &Rig, node: &str) -> Result<f64, BenchError> {
    let path = format!("/operations?host={node}&kind=fence&sort=created_at:desc&limit=1");
    let list = rig.plant.client.get(&path).await.ok(200);
    let path = format!(
        "/operations/{}",
        list["operations"][0]["id"].as_str().unwrap_or_default()
    );
    let operation = rig.plant.client.get(&path).await.ok(200);
    let tasks = operation["stages"].as_array().into_iter().flatten();
    let mut tasks = tasks.flat_map(|stage| stage["tasks"].as_array().into_iter().flatten());
    let power = tasks.find(|task| task["kind"] == "power.off");
    let attempt = power.map_or(&Value::Null, |task| &task["attempts"][0]);
    let time = |value: &Value| {
        let text = value.as_str().unwrap_or_default();
        let read: Result<DateTime<Utc>, _> = text.parse();
        read.map_err(|_| BenchError::Unexpected {
            what: format!("the fence of {node}"),
            found: operation.to_string(),
        })
    };
    let (claimed, observed) = (
        time(&attempt["claimed_at"])?,
        time(&attempt["observation"]["observed_at"])?,
    );
    Ok((observed - claimed).as_seconds_f64())
}
