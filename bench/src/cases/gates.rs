//! Reading the gates, and the list of many hosts.

mod bare;
mod large;
mod rate;

use std::time::Instant;

use ringfence_tests::Ground;

pub(super) use self::bare::Bare;
use self::bare::TEMPLATE;
use self::rate::{Client, rate};
use super::{Case, ms};
use crate::asker::Asker;
use crate::error::BenchError;
use crate::plant::{Plant, Settings};
use crate::report::{Figure, Report, Target};
use crate::statistics::Summary;

const NAME: &str = "gates";
/// Concurrent requests.
const CLIENTS: u32 = 16;
const ROUNDS: usize = 5;
/// The least share of the bare statement's rate.
const LEAST_SHARE: f64 = 0.25;
const HOSTS: u32 = 100_000;
const PAGE: u32 = 100;
/// How much longer than the first page the last page may take, as a factor.
const MOST_LAST: f64 = 1.5;

/// Measures on one ground.
pub async fn measure(case: &Case, ground: Ground, report: &mut Report) -> Result<(), BenchError> {
    let plant = Plant::start(ground, Settings::default()).await?;
    plant.add_host(TEMPLATE, false).await;
    plant.client.seen(TEMPLATE, "UP").await.ok(200);
    let bare = Bare::open(&plant).await?;
    gates(&plant, &bare, report).await?;
    bare.fill(HOSTS).await?;
    pages(case, &plant, report).await?;
    large::measure(case, &plant, &bare, report).await?;
    plant.stop().await;
    Ok(())
}

async fn gates(plant: &Plant, bare: &Bare, report: &mut Report) -> Result<(), BenchError> {
    let (mut floors, mut figures, mut times, mut floor_times) = (vec![], vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        let floor = rate(
            (0..CLIENTS)
                .map(|_| Client::Bare(bare.clone(), TEMPLATE.to_owned()))
                .collect(),
        )
        .await?;
        let mut askers = Vec::new();
        for _ in 0..CLIENTS {
            let asker = Asker::connect(&plant.url, &plant.token, &format!("/hosts/{TEMPLATE}/gates")).await?;
            askers.push(Client::Api(asker));
        }
        let figure = rate(askers).await?;
        floors.push(floor.per_s);
        figures.push(figure.per_s);
        times.extend(figure.ms);
        floor_times.extend(floor.ms);
    }
    let figure = |what: &str, unit, summary| Figure::new(NAME, what, unit, summary).on(plant.ground);
    let Some(floor) = Summary::of(&floors) else {
        return Ok(());
    };
    report.add(figure("floor: the bare SELECT", "1/s", floor))?;
    report.add_summary(&floor_times, |s| figure("floor: the bare SELECT", "ms", s))?;
    report.add_summary(&figures, |s| {
        let share = s.median / floor.median;
        figure("GET /hosts/{id}/gates", "1/s", s)
            .over("the bare SELECT", floor.median)
            .target(Target::at_least(
                "share of the bare SELECT's rate",
                share,
                LEAST_SHARE,
                "",
            ))
    })?;
    report.add_summary(&times, |s| {
        figure("GET /hosts/{id}/gates", "ms", s)
            .note(format!("{CLIENTS} at once, from one client on this machine"))
    })
}

async fn pages(case: &Case, plant: &Plant, report: &mut Report) -> Result<(), BenchError> {
    // Names have leading zeros, so that they sort by number.
    let before_last = plant.client.host(&format!("p{:06}", HOSTS - PAGE - 1)).await;
    let marker = before_last["id"].as_str().unwrap_or_default();
    let paths = [
        format!("/hosts?limit={PAGE}"),
        format!("/hosts?limit={PAGE}&marker={marker}"),
    ];
    let mut taken = [vec![], vec![]];
    for _ in 0..case.samples {
        for (path, taken) in paths.iter().zip(&mut taken) {
            let begun = Instant::now();
            let page = plant.client.get(path).await;
            taken.push(ms(begun));
            let found = page.ok(200)["hosts"].as_array().map_or(0, Vec::len);
            if found != PAGE as usize {
                return Err(BenchError::Unexpected {
                    what: path.clone(),
                    found: format!("{found} hosts"),
                });
            }
        }
    }
    let figure = |what: &str, summary| Figure::new(NAME, what, "ms", summary).on(plant.ground);
    let Some(first) = Summary::of(&taken[0]) else {
        return Ok(());
    };
    report.add(figure("GET /hosts, first page of 100 of 100,000", first))?;
    report.add_summary(&taken[1], |s| {
        let target = Target::at_most(
            "last page over first page",
            s.median / first.median,
            MOST_LAST,
            "times",
        );
        figure("GET /hosts, last page of 100 of 100,000", s)
            .over("the first page", first.median)
            .target(target)
    })
}
