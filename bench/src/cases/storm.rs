//! Many hosts at once, each with three tasks by devices that answer at once.

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
/// With `--full`.
const MANY_HOSTS: usize = 10_000;
/// Requests under way at once.
const AT_ONCE: usize = 64;
/// Connections of one service to its database, which is the default.
const CONNECTIONS: u32 = 16;
/// Between two events of a storm.
const PATIENCE: Duration = Duration::from_secs(60);
const FLOOR_TIME: Duration = Duration::from_secs(4);
const LEAST_PER_S: f64 = 300.0;
/// What ten times the hosts may cost in hosts per second before it counts as worse than linear: the noise of a run.
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
        lanes: CONNECTIONS * services,
    };
    let per_s = storm.run("s", HOSTS, report).await?;
    if case.is_full {
        let many_per_s = storm.run("m", MANY_HOSTS, report).await?;
        let kept = many_per_s / per_s;
        let figure = Figure::new(
            NAME,
            "hosts/s of 10,000 over hosts/s of 1,000",
            "",
            Summary::once(kept),
        );
        let target = Target::at_least("hosts/s kept with ten times the hosts", kept, LEAST_KEPT, "");
        report.add(figure.on(ground).target(target))?;
    }
    storm.tell_memory(report)?;
    storm.plant.stop().await;
    drop(devices);
    Ok(())
}

struct Storm {
    plant: Plant,
    commits: Commits,
    lanes: u32,
}

/// When what had happened, in seconds from the first request.
struct Times {
    requested: f64,
    fenced: f64,
    ended: f64,
    transactions: Option<f64>,
    processor: Reading,
}

impl Storm {
    /// Fences so many fresh hosts, and tells how many became FENCED per second.
    async fn run(&mut self, prefix: &str, hosts: usize, report: &mut Report) -> Result<f64, BenchError> {
        let ground = self.plant.ground;
        self.add_hosts(prefix, hosts).await?;
        let before = self.commits.rate(self.lanes, FLOOR_TIME).await?;
        let times = self.fence_all(prefix, hosts).await?;
        let after = self.commits.rate(self.lanes, FLOOR_TIME).await?;
        let floor = f64::midpoint(before, after);
        #[expect(clippy::cast_precision_loss, reason = "some thousands")]
        let count = hosts as f64;
        let per_s = count / times.fenced;
        let figure = |what: &str, unit, value| {
            let what = format!("{what}, {hosts} hosts");
            Figure::new(NAME, what, unit, Summary::once(value)).on(ground)
        };
        let target = Target::at_least("hosts/s", per_s, LEAST_PER_S, "");
        report.add(figure("FENCED", "hosts/s", per_s).target(target))?;
        report.add(figure("operations ended", "hosts/s", count / times.ended))?;
        report.add(figure("requests answered", "hosts/s", count / times.requested))?;
        let lanes = self.lanes;
        report.add(
            figure("floor: commits by the database alone", "commits/s", floor).note(format!(
                "{lanes} connections; {before:.0} before the storm, {after:.0} after it"
            )),
        )?;
        if let Some(transactions) = times.transactions {
            let rate = transactions / times.ended;
            report
                .add(figure("writing transactions", "commits/s", rate).over("the database alone", floor))?;
            report.add(figure("writing transactions per host", "", transactions / count))?;
        }
        for (name, used) in &times.processor {
            let what = format!("processor time per host of {name}");
            report.add(figure(&what, "ms", used * 1000.0 / count))?;
        }
        Ok(per_s)
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
                format!("resident memory of {name} after it"),
                "MB",
                Summary::once(resident),
            );
            let target = Target::at_most("resident after the storm", resident, MOST_RESIDENT_MB, "MB");
            report.add(figure.on(self.plant.ground).target(target))?;
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
