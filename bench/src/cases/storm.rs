//! Fences of many hosts at once, each with three tasks by devices that answer at once.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, TryStreamExt, stream};
use ringfence_tests::Ground;
use serde_json::json;
use sqlx::{Connection, PgConnection};

use super::Case;
use crate::devices::Devices;
use crate::error::BenchError;
use crate::floor::Commits;
use crate::listener::Listener;
use crate::meter::{Meter, Reading, between};
use crate::plant::{Plant, Settings};
use crate::process::resident_mb;
use crate::report::{Figure, Report, Target};
use crate::statistics::Summary;

const NAME: &str = "storm";
const HOSTS: usize = 1_000;
/// The hosts with `--full`.
const MANY_HOSTS: usize = 10_000;
/// Concurrent requests.
const AT_ONCE: usize = 64;
/// The connections of one service to its database: the default.
const CONNECTIONS: u32 = 16;
/// The longest pause between two events of a storm.
const PATIENCE: Duration = Duration::from_secs(60);
const FLOOR_TIME: Duration = Duration::from_secs(4);
const LEAST_PER_S: f64 = 300.0;
/// The least rate with ten times the hosts, as a share; a lower one is worse than linear, and the difference to 1 is the noise of a run.
const LEAST_KEPT: f64 = 0.9;
const MOST_RESIDENT_MB: f64 = 200.0;

/// Measures on one ground.
pub async fn measure(case: &Case, ground: Ground, report: &mut Report) -> Result<(), BenchError> {
    let devices = Devices::start()?;
    let settings = Settings::default()
        .with("RINGFENCE_WORKER_SIMULATOR_URL", devices.url())
        .with("RINGFENCE_DATABASE_CONNECTIONS", CONNECTIONS.to_string());
    let plant = Plant::start(ground, settings).await?;
    plant
        .add_simulated_methods(&["power", "storage", "network"])
        .await;
    plant
        .add_plan(&[
            ("power.off", "power"),
            ("storage.fence", "storage"),
            ("network.fence", "network"),
        ])
        .await;
    let services = match ground {
        Ground::Standalone => 1,
        Ground::Distributed => 2,
    };
    let commits = Commits::prepare(ground, CONNECTIONS * services).await?;
    let mut storm = Storm {
        plant,
        commits,
        clients: CONNECTIONS * services,
    };
    let few = storm.run(&["r", "s", "t"], HOSTS, report).await?;
    if case.is_full {
        let many = storm.run(&["m"], MANY_HOSTS, report).await?;
        tell_linearity(ground, &few, &many, report)?;
    }
    storm.tell_memory(report)?;
    storm.plant.stop().await;
    drop(devices);
    Ok(())
}

struct Storm {
    plant: Plant,
    commits: Commits,
    clients: u32,
}

/// Hosts per second, by the median of the storms of one size.
struct Rates {
    fenced: f64,
    ended: f64,
}

/// All three tasks of every host count. When the last host becomes FENCED, by the first of its tasks, the remaining work is a greater share
/// of a short storm.
fn tell_linearity(ground: Ground, few: &Rates, many: &Rates, report: &mut Report) -> Result<(), BenchError> {
    let figure = |what: &str, few: f64, many: f64| {
        let what = format!("{what}, 10,000 over 1,000");
        Figure::new(NAME, what, "", Summary::once(many / few)).on(ground)
    };
    let kept = many.ended / few.ended;
    let target = Target::at_least("hosts/s kept with ten times the hosts", kept, LEAST_KEPT, "");
    report.add(figure("operations ended per second", few.ended, many.ended).target(target))?;
    report.add(figure("FENCED per second", few.fenced, many.fenced))
}

/// The times of a storm, in seconds from the first request.
struct Times {
    requested: f64,
    fenced: f64,
    ended: f64,
    transactions: Option<f64>,
    processor: Reading,
    /// Commits per second by the database alone, before and after the storm.
    floor: f64,
}

impl Storm {
    /// Fences this many fresh hosts for each prefix.
    async fn run(
        &mut self,
        prefixes: &[&str],
        hosts: usize,
        report: &mut Report,
    ) -> Result<Rates, BenchError> {
        let mut storms = Vec::with_capacity(prefixes.len());
        for prefix in prefixes {
            self.add_hosts(prefix, hosts).await?;
            let before = self.commits.rate(self.clients, FLOOR_TIME).await?;
            let mut times = self.fence_all(prefix, hosts).await?;
            let after = self.commits.rate(self.clients, FLOOR_TIME).await?;
            times.floor = f64::midpoint(before, after);
            storms.push(times);
        }
        let told = Told {
            ground: self.plant.ground,
            hosts,
            storms,
        };
        let fenced = told.summary(|count, times| count / times.fenced)?;
        let target = Target::at_least("hosts/s", fenced.median, LEAST_PER_S, "");
        let figure = told.figure("FENCED", "hosts/s", fenced);
        report.add(figure.target(target))?;
        let ended = told.summary(|count, times| count / times.ended)?;
        report.add(told.figure("operations ended", "hosts/s", ended))?;
        told.tell(self.clients, report)?;
        Ok(Rates {
            fenced: fenced.median,
            ended: ended.median,
        })
    }

    async fn add_hosts(&self, prefix: &str, hosts: usize) -> Result<(), BenchError> {
        let add = stream::iter(0..hosts).map(|number| async move {
            let body = json!({ "name": format!("{prefix}{number}") });
            self.plant.client.post("/hosts", body).await.ok(201);
        });
        add.buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
        Ok(())
    }

    async fn fence_all(&self, prefix: &str, hosts: usize) -> Result<Times, BenchError> {
        let mut listener = Listener::open(&self.plant.client).await?;
        let before = self.transactions().await?;
        let meter = Meter::of(&self.plant).await?;
        let processor = meter.read();
        let begun = Instant::now();
        let posting = async {
            let post = stream::iter(0..hosts).map(|number| async move {
                self.plant.client.fence(&format!("{prefix}{number}")).await;
                Ok::<_, BenchError>(())
            });
            post.buffer_unordered(AT_ONCE).try_collect::<Vec<()>>().await?;
            Ok::<_, BenchError>(begun.elapsed().as_secs_f64())
        };
        let (requested, (fenced, ended)) = tokio::try_join!(posting, until_all(&mut listener, hosts, begun))?;
        let processor = between(&processor, &meter.read());
        let after = self.transactions().await?;
        Ok(Times {
            floor: 0.0,
            processor,
            requested,
            fenced,
            ended,
            transactions: before.zip(after).map(|(before, after)| after - before),
        })
    }

    async fn transactions(&self) -> Result<Option<f64>, BenchError> {
        let Some(site) = &self.plant.site else {
            return Ok(None);
        };
        let mut database = PgConnection::connect(&site.database_url).await?;
        let number: i64 = sqlx::query_scalar("SELECT txid_current()")
            .fetch_one(&mut database)
            .await?;
        #[expect(clippy::cast_precision_loss, reason = "a count of some hundred thousands")]
        Ok(Some(number as f64))
    }

    fn tell_memory(&self, report: &mut Report) -> Result<(), BenchError> {
        for (name, service) in &self.plant.services {
            let resident = resident_mb(service)?;
            let figure = Figure::new(
                NAME,
                format!("resident memory of {name} after the storm"),
                "MB",
                Summary::once(resident),
            );
            let target = Target::at_most("resident after the storm", resident, MOST_RESIDENT_MB, "MB");
            report.add(figure.on(self.plant.ground).target(target))?;
        }
        Ok(())
    }
}

/// The figures of the storms of one size.
struct Told {
    ground: Ground,
    hosts: usize,
    storms: Vec<Times>,
}

impl Told {
    /// A figure of every storm, computed from the number of its hosts and its times.
    fn summary(&self, figure: impl Fn(f64, &Times) -> f64) -> Result<Summary, BenchError> {
        #[expect(clippy::cast_precision_loss, reason = "some thousands")]
        let count = self.hosts as f64;
        let figures: Vec<f64> = self.storms.iter().map(|times| figure(count, times)).collect();
        Summary::of(&figures).ok_or_else(|| BenchError::Unexpected {
            what: format!("the number of storms of {} hosts", self.hosts),
            found: "0".to_owned(),
        })
    }

    fn figure(&self, what: &str, unit: &'static str, summary: Summary) -> Figure {
        let what = format!("{what}, {} hosts", self.hosts);
        Figure::new(NAME, what, unit, summary).on(self.ground)
    }

    fn tell(&self, clients: u32, report: &mut Report) -> Result<(), BenchError> {
        let requested = self.summary(|count, times| count / times.requested)?;
        report.add(self.figure("requests answered", "hosts/s", requested))?;
        let floor = self.summary(|_, times| times.floor)?;
        let alone = floor.median;
        let figure = self.figure("floor: commits by the database alone", "commits/s", floor);
        report.add(figure.note(format!("{clients} connections, before and after each storm")))?;
        if self.storms.iter().all(|times| times.transactions.is_some()) {
            let made = |times: &Times| times.transactions.unwrap_or_default();
            let rate = self.summary(|_, times| made(times) / times.ended)?;
            let figure = self.figure("writing transactions", "commits/s", rate);
            report.add(figure.over("the database alone", alone))?;
            let each = self.summary(|count, times| made(times) / count)?;
            report.add(self.figure("writing transactions per host", "", each))?;
        }
        self.tell_processor(report)
    }

    fn tell_processor(&self, report: &mut Report) -> Result<(), BenchError> {
        let names = self.storms.first().map(|times| &times.processor);
        for (name, _) in names.into_iter().flatten() {
            let used = |times: &Times| {
                let of = times.processor.iter().find(|(other, _)| other == name);
                of.map_or(0.0, |(_, used)| *used)
            };
            let summary = self.summary(|count, times| used(times) * 1000.0 / count)?;
            report.add(self.figure(&format!("processor time per host of {name}"), "ms", summary))?;
        }
        Ok(())
    }
}

/// When the last host became FENCED and the last operation ended, in seconds from `begun`.
async fn until_all(listener: &mut Listener, hosts: usize, begun: Instant) -> Result<(f64, f64), BenchError> {
    let (mut fenced, mut ended) = (HashSet::new(), HashSet::new());
    let (mut fenced_at, mut ended_at) = (begun, begun);
    while fenced.len() < hosts || ended.len() < hosts {
        let heard = listener.next(PATIENCE).await?;
        let host = || heard.event["host"].as_str().unwrap_or_default().to_owned();
        match heard.kind.as_str() {
            "host.fenced" if fenced.insert(host()) => fenced_at = heard.at,
            "operation.succeeded" | "operation.needs_operator" if ended.insert(host()) => ended_at = heard.at,
            _ => {}
        }
    }
    let since = |at: Instant| at.duration_since(begun).as_secs_f64();
    Ok((since(fenced_at), since(ended_at)))
}
