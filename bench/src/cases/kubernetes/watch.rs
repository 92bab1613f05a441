//! Watching a cluster of 5,000 nodes: processor time and memory of the process that watches, beside one without a cluster, and a node that
//! falls silent among them.

use std::time::{Duration, Instant};

use ringfence_lab::ControlPlaneOptions;
use ringfence_tests::{Ground, Service, tell};

use super::cluster::{CLUSTER, Cluster};
use super::crowd::Crowd;
use crate::error::BenchError;
use crate::listener::Listener;
use crate::plant::{Plant, Settings};
use crate::process::{processor_ms, resident_mb};
use crate::report::{Figure, Report, Target};
use crate::statistics::Summary;

pub const NAME: &str = "kubernetes-watch";
const NODES: u16 = 5_000;
/// The default of Ringfence.
const DOWN_AFTER: Duration = Duration::from_secs(20);
/// As kubelets renew their leases.
const RENEWED_EVERY: Duration = Duration::from_secs(10);
/// Each host is reported anew once a minute: a shorter window would miss these writes.
const WINDOW: Duration = Duration::from_secs(66);
/// A machine whose API server takes fewer renewals measures something else, and says so.
const LEAST_OF_RENEWALS: f64 = 0.9;
const UP_WITHIN: Duration = Duration::from_secs(300);
const SILENT_ONES: usize = 3;
const MOST_PERCENT: f64 = 25.0;
const MOST_MB: f64 = 150.0;
const MOST_OVER_DETECTION_S: f64 = 1.0;

/// Measures on one ground.
pub async fn measure(ground: Ground, report: &mut Report) -> Result<(), BenchError> {
    let without = without_cluster(ground).await?;
    let options = ControlPlaneOptions {
        node_grace: Duration::from_secs(40),
        node_period: Duration::from_secs(5),
        ..ControlPlaneOptions::default()
    };
    let cluster = Cluster::start(options).await?;
    let names: Vec<String> = (0..NODES).map(|number| format!("node-{number:04}")).collect();
    tell("making the nodes");
    let crowd = Crowd::make(&cluster.client, &names, RENEWED_EVERY).await?;
    let settings = cluster
        .settings(DOWN_AFTER)
        .with("RINGFENCE_KUBERNETES_ADOPT", format!("{CLUSTER}:default"));
    let begun = Instant::now();
    let plant = Plant::start(ground, settings).await?;
    until_all_are_up(&plant).await?;
    let added_s = begun.elapsed().as_secs_f64();
    tell("watching");
    let watching = Usage::over_window(watcher(&plant)?, &crowd).await?;
    let delays = silences(&plant, &crowd, &names).await?;
    let unreachable = count(&plant, "UNREACHABLE").await;
    if unreachable != SILENT_ONES {
        return Err(BenchError::Unexpected {
            what: format!("the number of UNREACHABLE hosts, of which {SILENT_ONES} are silent"),
            found: unreachable.to_string(),
        });
    }
    plant.stop().await;
    let added = Summary::once(added_s);
    report.add(Figure::new(NAME, "start to all 5,000 nodes added, and UP", "s", added).on(ground))?;
    tell_all(&without, &watching, &delays, ground, report)
}

/// What a process uses.
struct Usage {
    /// Processor time, in per cent of one core.
    percent: f64,
    resident_mb: f64,
    /// Renewals of leases per second meanwhile.
    renewals: f64,
}

impl Usage {
    async fn over_window(service: &Service, crowd: &Crowd) -> Result<Self, BenchError> {
        let (before, _) = crowd.renewals();
        let usage = Self::of(service).await?;
        let (after, failed) = crowd.renewals();
        if failed > 0 {
            tell(&format!("{failed} renewals of leases failed"));
        }
        #[expect(clippy::cast_precision_loss, reason = "some ten thousands")]
        let renewals = (after - before) as f64 / WINDOW.as_secs_f64();
        Ok(Self { renewals, ..usage })
    }

    async fn of(service: &Service) -> Result<Self, BenchError> {
        let (begun, used) = (Instant::now(), processor_ms(service)?);
        tokio::time::sleep(WINDOW).await;
        let used = processor_ms(service)? - used;
        Ok(Self {
            percent: used / begun.elapsed().as_secs_f64() / 10.0,
            resident_mb: resident_mb(service)?,
            renewals: 0.0,
        })
    }
}

/// A Ringfence that watches nothing.
async fn without_cluster(ground: Ground) -> Result<Usage, BenchError> {
    let plant = Plant::start(ground, Settings::default()).await?;
    let usage = Usage::of(watcher(&plant)?).await?;
    plant.stop().await;
    Ok(usage)
}

/// The process that watches clusters.
fn watcher(plant: &Plant) -> Result<&Service, BenchError> {
    let mut services = plant.services.iter();
    let found = services.find(|(name, _)| matches!(*name, "standalone" | "engine"));
    found
        .map(|(_, service)| service)
        .ok_or_else(|| BenchError::Unexpected {
            what: "the services".to_owned(),
            found: "none that watches".to_owned(),
        })
}

async fn until_all_are_up(plant: &Plant) -> Result<(), BenchError> {
    let begun = Instant::now();
    while begun.elapsed() < UP_WITHIN {
        if count(plant, "UP").await == usize::from(NODES) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    Err(BenchError::Late {
        what: format!("{NODES} hosts that are UP"),
        seconds: UP_WITHIN.as_secs(),
    })
}

/// Hosts in a failure state.
async fn count(plant: &Plant, state: &str) -> usize {
    let (mut found, mut marker) = (0, String::new());
    loop {
        let path = format!("/hosts?failure_state={state}&limit=1000{marker}");
        let page = plant.client.get(&path).await.ok(200);
        let hosts = page["hosts"].as_array().map(Vec::as_slice).unwrap_or_default();
        found += hosts.len();
        match hosts.last().filter(|_| hosts.len() == 1000) {
            Some(last) => marker = format!("&marker={}", last["id"].as_str().unwrap_or_default()),
            None => return found,
        }
    }
}

/// Seconds from a node's last renewal to UNREACHABLE, of some nodes, one after the other.
async fn silences(plant: &Plant, crowd: &Crowd, names: &[String]) -> Result<Vec<f64>, BenchError> {
    let mut events = Listener::open(&plant.client).await?;
    let mut delays = Vec::new();
    for name in names.iter().step_by(names.len() / SILENT_ONES).take(SILENT_ONES) {
        let renewed = crowd.silence(name).ok_or_else(|| BenchError::Unexpected {
            what: format!("the lease of {name}"),
            found: "none".to_owned(),
        })?;
        let patience = DOWN_AFTER * 3;
        let told = events.until("host.failure_state", name, patience).await?;
        delays.push((told.at - renewed).as_secs_f64());
    }
    Ok(delays)
}

fn tell_all(
    without: &Usage,
    watching: &Usage,
    delays: &[f64],
    ground: Ground,
    report: &mut Report,
) -> Result<(), BenchError> {
    let figure = |what: &str, unit, value| Figure::new(NAME, what, unit, Summary::once(value)).on(ground);
    let wanted = f64::from(NODES) / RENEWED_EVERY.as_secs_f64();
    let renewals = figure("renewals of leases", "1/s", watching.renewals);
    report.add(renewals.target(Target::at_least(
        "of the renewals of 5,000 kubelets, the share that was made,",
        watching.renewals / wanted,
        LEAST_OF_RENEWALS,
        "",
    )))?;
    report.add(figure("floor: without a cluster", "% of a core", without.percent))?;
    let percent = watching.percent - without.percent;
    report.add(
        figure("watching 5,000 nodes", "% of a core", watching.percent)
            .over("without a cluster", without.percent)
            .target(Target::at_most(
                "over one without a cluster, of one core,",
                percent,
                MOST_PERCENT,
                "%",
            ))
            .note("the process that watches; includes the write of each host once a minute"),
    )?;
    report.add(figure(
        "floor: resident memory without a cluster",
        "MB",
        without.resident_mb,
    ))?;
    report.add(
        figure(
            "resident memory, watching 5,000 nodes",
            "MB",
            watching.resident_mb,
        )
        .over("without a cluster", without.resident_mb)
        .target(Target::at_most(
            "over one without a cluster, resident",
            watching.resident_mb - without.resident_mb,
            MOST_MB,
            "MB",
        )),
    )?;
    let detection = DOWN_AFTER.as_secs_f64();
    report.add_summary(delays, |s| {
        Figure::new(NAME, "last renewal to UNREACHABLE, one of 5,000", "s", s)
            .on(ground)
            .over("the detection time", detection)
            .target(Target::at_most(
                "over the detection time, median,",
                s.median - detection,
                MOST_OVER_DETECTION_S,
                "s",
            ))
            .note("the others stay UP, which is checked")
    })
}
