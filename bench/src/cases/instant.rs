//! A fence by a device that answers at once: the rest of the time is Ringfence's own.
//!
//! Between POST and FENCED are three commits (the request, the claim, the result) and, on a broker, three confirmed publishes to quorum
//! queues (the task, the request for the claim, the result) and one to a queue for answers.
//!
//! The end is the commit where the database announces it, else the event `host.fenced` on the event stream.

use std::time::Instant;

use reqwest::Method;
use ringfence_tests::{Client, Ground};
use serde_json::json;
use sqlx::{Connection, PgConnection};

use super::{Case, ms, request_alone};
use crate::devices::Devices;
use crate::end::{End, Ends, from_post_to_end};
use crate::error::BenchError;
use crate::floor::{Commits, Kind, Publishes};
use crate::plant::{Plant, Settings};
use crate::report::{Figure, Report, Target};
use crate::statistics::Summary;

const NAME: &str = "instant";
const WARM_UP: usize = 5;
/// Four times the usual samples: the first dozens of fences take longer than later ones.
const TIMES_SAMPLES: usize = 4;
/// The commits between POST and FENCED.
const COMMITS: usize = 3;
const QUORUM_PUBLISHES: usize = 3;
const ANSWERS: usize = 1;
/// How much longer than its commits and publishes a fence may take, as a factor.
const MOST: f64 = 2.0;

/// Measures on one ground.
pub async fn measure(case: &Case, ground: Ground, report: &mut Report) -> Result<(), BenchError> {
    let samples = case.samples * TIMES_SAMPLES;
    let mut bench = Bench::prepare(ground, 2 * samples + WARM_UP).await?;
    let mut ends = Ends::open(&bench.plant).await?;
    let mut taken = Taken::default();
    for number in 0..samples + WARM_UP {
        if number == WARM_UP {
            taken = Taken::default();
        }
        bench.sample(number, &mut ends, &mut taken).await?;
    }
    for number in (samples + WARM_UP..).take(samples) {
        taken.in_a_row.push(bench.fence(number, &mut ends).await?.1);
    }
    bench.end().await?;
    tell(ground, &taken, report)
}

#[derive(Default)]
struct Taken {
    fence: Vec<f64>,
    /// Fences one right after the other, with nothing in between.
    in_a_row: Vec<f64>,
    floor: Vec<f64>,
    commit: Vec<f64>,
    publish: Vec<f64>,
    answer: Vec<f64>,
    device: Vec<f64>,
    stream: Vec<f64>,
    request: Vec<f64>,
    transactions: Vec<f64>,
}

struct Bench {
    plant: Plant,
    devices: Devices,
    device: Client,
    commits: Commits,
    broker: Option<(Publishes, Publishes)>,
    database: Option<PgConnection>,
}

impl Bench {
    async fn prepare(ground: Ground, hosts: usize) -> Result<Self, BenchError> {
        let devices = Devices::start()?;
        let settings = Settings::default().with("RINGFENCE_WORKER_SIMULATOR_URL", devices.url());
        let plant = Plant::start(ground, settings).await?;
        plant.add_simulated_methods(&["power"]).await;
        plant.add_plan(&[("power.off", "power")]).await;
        for number in 0..hosts {
            plant.add_host(&host(number), true).await;
        }
        plant.add_host("beside", false).await;
        let (mut broker, mut database) = (None, None);
        if let Some(site) = &plant.site {
            let url = site.amqp_url.as_deref().unwrap_or_default();
            broker = Some((
                Publishes::prepare(url, Kind::Quorum).await?,
                Publishes::prepare(url, Kind::Answers).await?,
            ));
            database = Some(PgConnection::connect(&site.database_url).await?);
        }
        Ok(Self {
            device: Client::new(devices.url(), None),
            devices,
            commits: Commits::prepare(ground, 1).await?,
            plant,
            broker,
            database,
        })
    }

    async fn sample(&mut self, number: usize, ends: &mut Ends, taken: &mut Taken) -> Result<(), BenchError> {
        let floor = self.floor(taken).await?;
        taken.floor.push(floor);
        let before = self.transactions().await?;
        let (end, took) = self.fence(number, ends).await?;
        taken.fence.push(took);
        if let (Some(before), Some(after)) = (before, self.transactions().await?) {
            // The query takes a number itself.
            taken.transactions.push(after - before - 1.0);
        }
        taken.device.push(self.device_alone(number).await?);
        taken
            .stream
            .push(ends.added_by_the_stream(&end, &self.plant, number).await?);
        taken.request.push(request_alone(&self.plant).await);
        Ok(())
    }

    /// The end of a fence, and how long the fence took in milliseconds.
    async fn fence(&self, number: usize, ends: &mut Ends) -> Result<(End, f64), BenchError> {
        let host = host(number);
        let begun = Instant::now();
        self.plant.client.fence(&host).await;
        let end = ends.of(&host, begun).await?;
        let took = end.committed.duration_since(begun).as_secs_f64() * 1000.0;
        Ok((end, took))
    }

    async fn floor(&self, taken: &mut Taken) -> Result<f64, BenchError> {
        let mut sum = 0.0;
        for _ in 0..COMMITS {
            let took = self.commits.once(0).await?;
            taken.commit.push(took);
            sum += took;
        }
        let Some((quorum, answers)) = &self.broker else {
            return Ok(sum);
        };
        for _ in 0..QUORUM_PUBLISHES {
            let took = quorum.once().await?;
            taken.publish.push(took);
            sum += took;
        }
        for _ in 0..ANSWERS {
            let took = answers.once().await?;
            taken.answer.push(took);
            sum += took;
        }
        Ok(sum)
    }

    /// The driver's requests to the device: read, off, read.
    async fn device_alone(&self, number: usize) -> Result<f64, BenchError> {
        let path = format!("/devices/alone-{number}/power");
        let begun = Instant::now();
        self.device.get(&path).await;
        let off = self
            .device
            .request(Method::PUT, &path)
            .json(&json!({ "state": "off" }));
        off.send().await?.error_for_status()?;
        self.device.get(&path).await;
        Ok(ms(begun))
    }

    /// The number of transactions that have written.
    async fn transactions(&mut self) -> Result<Option<f64>, BenchError> {
        let Some(database) = &mut self.database else {
            return Ok(None);
        };
        let number: i64 = sqlx::query_scalar("SELECT txid_current()")
            .fetch_one(database)
            .await?;
        #[expect(clippy::cast_precision_loss, reason = "a count of some thousands")]
        Ok(Some(number as f64))
    }

    async fn end(self) -> Result<(), BenchError> {
        self.plant.stop().await;
        drop(self.devices);
        if let Some((quorum, answers)) = self.broker {
            quorum.close().await?;
            answers.close().await?;
        }
        Ok(())
    }
}

fn tell(ground: Ground, taken: &Taken, report: &mut Report) -> Result<(), BenchError> {
    let figure = |what: &str, summary| Figure::new(NAME, what, "ms", summary).on(ground);
    let Some(floor) = Summary::of(&taken.floor) else {
        return Ok(());
    };
    report.add_summary(&taken.commit, |s| figure("floor: one durable commit", s))?;
    report.add_summary(&taken.publish, |s| {
        figure("floor: one confirmed publish to a quorum queue", s)
    })?;
    report.add_summary(&taken.answer, |s| {
        figure("floor: one confirmed publish to a queue for answers", s)
    })?;
    let path = match ground {
        Ground::Standalone => format!("floor: {COMMITS} commits"),
        Ground::Distributed => {
            format!(
                "floor: {COMMITS} commits, {QUORUM_PUBLISHES} publishes to quorum queues, {ANSWERS} answer"
            )
        }
    };
    report.add(figure(&path, floor))?;
    report.add_summary(&taken.fence, |s| {
        figure(from_post_to_end(ground), s)
            .over("commits and publishes", floor.median)
            .target(Target::at_most(
                "over commits and publishes",
                s.median / floor.median,
                MOST,
                "times",
            ))
    })?;
    report.add_summary(&taken.in_a_row, |s| {
        figure("beside: fences one right after the other", s)
            .over("commits and publishes", floor.median)
            .note("nothing runs in between, so that code and data stay in the processor's caches")
    })?;
    report.add_summary(&taken.device, |s| figure("the device alone: read, off, read", s))?;
    let without: Vec<f64> = taken
        .fence
        .iter()
        .zip(&taken.device)
        .map(|(fence, device)| fence - device)
        .collect();
    report.add_summary(&without, |s| {
        figure("beside: POST to the end, less the device alone", s)
            .over("commits and publishes", floor.median)
            .note("the device is asked over HTTP: it answers at once, but not in no time")
    })?;
    report.add_summary(&taken.request, |s| {
        figure("beside: a request that reads and writes nothing", s)
    })?;
    report.add_summary(&taken.stream, |s| {
        figure("what the event stream adds after a commit", s)
    })?;
    report.add_summary(&taken.transactions, |s| {
        Figure::new(NAME, "writing transactions from POST to host.fenced", "", s)
            .on(ground)
            .note("transactions that number events and clear the outbox are included; three are needed for FENCED")
    })
}

fn host(number: usize) -> String {
    format!("i{number}")
}
