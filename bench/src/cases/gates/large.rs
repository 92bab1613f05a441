//! A large site with many live operations: requests for random hosts, some of which have a live operation.

use std::time::{Duration, Instant};

use serde_json::json;

use super::super::{Case, ms};
use super::rate::{Client, Random, rate};
use super::{Bare, CLIENTS, HOSTS, LEAST_SHARE, NAME, ROUNDS};
use crate::asker::Asker;
use crate::error::BenchError;
use crate::floor::Commits;
use crate::plant::Plant;
use crate::report::{Figure, Report, Target};
use crate::statistics::Summary;

const LIVE: u32 = 5_000;
/// The host whose operation is copied.
const FENCED: &str = "f1";
const FLOOR_TIME: Duration = Duration::from_secs(2);
/// Lists that contain no host.
const EMPTY_LISTS: [&str; 6] = [
    "zone=nowhere",
    "type=nothing",
    "backend=kubernetes",
    "generation=gt:1000",
    "fencing_state=FENCED",
    "zone=in:nowhere,elsewhere",
];

/// Measures on one ground.
pub async fn measure(case: &Case, plant: &Plant, bare: &Bare, report: &mut Report) -> Result<(), BenchError> {
    // Without a simulator the attempts are refused, so that the operation waits for a person.
    plant.add_simulated_methods(&["power"]).await;
    plant.add_plan(&[("power.off", "power")]).await;
    plant.add_host(FENCED, true).await;
    let fence = plant.client.fence(FENCED).await;
    plant.client.until_settled(&fence).await;
    bare.go_live(FENCED, LIVE).await?;
    gates(plant, bare, report).await?;
    reports(plant, report).await?;
    lists(case, plant, report).await
}

fn figure(plant: &Plant, what: &str, unit: &'static str, summary: Summary) -> Figure {
    Figure::new(
        NAME,
        format!("{what}, 100,000 hosts, 5,000 operations live"),
        unit,
        summary,
    )
    .on(plant.ground)
}

fn random(client: u32) -> Random {
    Random::of(client + 1, HOSTS)
}

async fn asker(plant: &Plant) -> Result<Asker, BenchError> {
    Asker::connect(&plant.url, &plant.token, "/").await
}

async fn gates(plant: &Plant, bare: &Bare, report: &mut Report) -> Result<(), BenchError> {
    let (mut floors, mut figures) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let clients = (0..CLIENTS).map(|client| Client::BareOfRandom(bare.clone(), random(client)));
        floors.push(rate(clients.collect()).await?.per_s);
        let mut clients = Vec::new();
        for client in 0..CLIENTS {
            clients.push(Client::Gates(asker(plant).await?, random(client)));
        }
        figures.push(rate(clients).await?.per_s);
    }
    let Some(floor) = Summary::of(&floors) else {
        return Ok(());
    };
    report.add(figure(
        plant,
        "floor: the bare SELECT of random hosts",
        "1/s",
        floor,
    ))?;
    report.add_summary(&figures, |s| {
        let share = s.median / floor.median;
        figure(plant, "GET /hosts/{id}/gates of random hosts", "1/s", s)
            .over("the bare SELECT", floor.median)
            .target(Target::at_least(
                "share of the bare SELECT's rate, random hosts",
                share,
                LEAST_SHARE,
                "",
            ))
    })
}

async fn reports(plant: &Plant, report: &mut Report) -> Result<(), BenchError> {
    let commits = Commits::prepare(plant.ground, CLIENTS).await?;
    let (mut floors, mut figures) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        floors.push(commits.rate(CLIENTS, FLOOR_TIME).await?);
        let mut clients = Vec::new();
        for client in 0..CLIENTS {
            clients.push(Client::Reports(asker(plant).await?, random(client)));
        }
        figures.push(rate(clients).await?.per_s);
    }
    let Some(floor) = Summary::of(&floors) else {
        return Ok(());
    };
    report.add(figure(
        plant,
        "floor: commits by the database alone",
        "commits/s",
        floor,
    ))?;
    report.add_summary(&figures, |s| {
        figure(plant, "PUT /hosts/{id}/failure-state of random hosts", "1/s", s)
            .over("commits by the database alone", floor.median)
    })
}

async fn lists(case: &Case, plant: &Plant, report: &mut Report) -> Result<(), BenchError> {
    let lists = std::iter::once("limit=100").chain(EMPTY_LISTS);
    let mut taken: Vec<(&str, Vec<f64>)> = lists.map(|list| (list, Vec::new())).collect();
    for _ in 0..case.samples {
        for (list, taken) in &mut taken {
            let begun = Instant::now();
            let page = plant.client.get(&format!("/hosts?{list}")).await;
            taken.push(ms(begun));
            let hosts = page.ok(200)["hosts"].as_array().map_or(0, Vec::len);
            let expected = if *list == "limit=100" { 100 } else { 0 };
            if hosts != expected {
                return Err(BenchError::Unexpected {
                    what: (*list).to_owned(),
                    found: json!({ "hosts": hosts }).to_string(),
                });
            }
        }
    }
    for (list, taken) in taken {
        report.add_summary(&taken, |s| figure(plant, &format!("GET /hosts?{list}"), "ms", s))?;
    }
    Ok(())
}
