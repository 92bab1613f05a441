//! The cost of watching the hosts of a cloud: one request for all of them, and now and then a report for each.

use std::time::{Duration, Instant};

use ringfence_tests::{Client, FakeNova, Ground};

use super::ms;
use crate::error::BenchError;
use crate::plant::{Plant, Settings};
use crate::process::{processor_ms, resident_mb};
use crate::report::{Figure, Report, Target};
use crate::statistics::Summary;

const NAME: &str = "observe";
const HOSTS: usize = 1000;
/// Short, so that a minute has many requests.
const POLL_S: u32 = 1;
/// The default of the settings.
const USUAL_POLL_MS: f64 = 5000.0;
/// Each host is reported anew once a minute: a shorter window would miss these writes.
const WINDOW: Duration = Duration::from_secs(66);
const MOST_PERCENT: f64 = 5.0;
const MOST_MB: f64 = 100.0;
/// Hosts are added in batches.
const ADDED_WITHIN: Duration = Duration::from_secs(120);

/// Measures on one ground.
pub async fn measure(ground: Ground, report: &mut Report) -> Result<(), BenchError> {
    let names: Vec<String> = (1..=HOSTS).map(|number| format!("compute-{number:04}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let nova = FakeNova::start(&names);
    let folder = tempfile::tempdir().map_err(BenchError::system("make a folder"))?;
    let file = folder.path().join("clouds.yaml");
    std::fs::write(&file, clouds(&nova)).map_err(BenchError::system("write clouds.yaml"))?;
    let settings = Settings::default()
        .with("RINGFENCE_OPENSTACK_CLOUDS", "bench")
        .with("RINGFENCE_OPENSTACK_CLOUDS_FILE", file.display().to_string())
        .with("RINGFENCE_OPENSTACK_ADOPT", "bench:default")
        .with("RINGFENCE_OPENSTACK_POLL_S", POLL_S.to_string());
    let plant = Plant::start(ground, settings).await?;
    until_all_are_up(&plant).await?;
    let floor = alone(&nova).await?;
    let watcher = plant
        .services
        .iter()
        .find(|(name, _)| *name != "api" && *name != "worker");
    let Some((_, watcher)) = watcher else {
        return Ok(());
    };
    let (used, answers) = (processor_ms(watcher)?, nova.answers());
    tokio::time::sleep(WINDOW).await;
    #[expect(clippy::cast_precision_loss, reason = "some dozens")]
    let asked = (nova.answers() - answers).max(1) as f64;
    let per_question = (processor_ms(watcher)? - used) / asked;
    let percent = per_question / USUAL_POLL_MS * 100.0;
    let figure = |what: &str, unit, summary| Figure::new(NAME, what, unit, summary).on(ground);
    report.add(
        figure("processor time of one request for 1,000 hosts", "ms", Summary::once(per_question))
            .over("an equal answer fetched and read only", floor.median)
            .target(Target::at_most("asked every 5 s, of one core,", percent, MOST_PERCENT, "%"))
            .note("includes the write of each host once a minute; measured with a request every second, five times the default rate"),
    )?;
    let resident = resident_mb(watcher)?;
    report.add(
        figure(
            "resident memory with 1,000 hosts watched",
            "MB",
            Summary::once(resident),
        )
        .target(Target::at_most("resident", resident, MOST_MB, "MB")),
    )?;
    plant.stop().await;
    Ok(())
}

fn clouds(nova: &FakeNova) -> String {
    format!(
        "clouds:\n  bench:\n    auth:\n      auth_url: {}\n      username: bench\n      password: bench\n      project_name: bench\n    \
         region_name: RegionOne\n",
        nova.auth_url()
    )
}

async fn until_all_are_up(plant: &Plant) -> Result<(), BenchError> {
    let begun = Instant::now();
    while begun.elapsed() < ADDED_WITHIN {
        let list = plant
            .client
            .get("/hosts?failure_state=UP&limit=1000")
            .await
            .ok(200);
        if list["hosts"].as_array().is_some_and(|hosts| hosts.len() == HOSTS) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    Err(BenchError::Late {
        what: format!("{HOSTS} hosts that are UP"),
        seconds: ADDED_WITHIN.as_secs(),
    })
}

/// The floor: fetching and reading the answer.
async fn alone(nova: &FakeNova) -> Result<Summary, BenchError> {
    let client = Client::new(&nova.url(), None);
    let mut taken = Vec::new();
    for _ in 0..20 {
        let begun = Instant::now();
        let services = client.get("/os-services").await.ok(200);
        let found = services["services"].as_array().map_or(0, Vec::len);
        taken.push(ms(begun));
        if found != HOSTS + 1 {
            return Err(BenchError::Unexpected {
                what: "the answer of the made-up Nova".to_owned(),
                found: format!("{found} services"),
            });
        }
    }
    Ok(Summary::of(&taken).unwrap_or(Summary::once(0.0)))
}
