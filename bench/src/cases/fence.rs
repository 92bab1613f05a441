//! How much longer a fence with a fence agent takes than the agent itself.
//!
//! The end is the commit where the database announces it, else the event `host.fenced` on the event stream, which comes after the commit;
//! the delay of the stream is measured too.

use std::path::{Path, PathBuf};
use std::time::Instant;

use chrono::{DateTime, Utc};
use ringfence_lab::Fencer;
use ringfence_tests::Ground;
use serde_json::{Value, json};

use super::{Case, ms, request_alone};
use crate::agent::{self, Counting};
use crate::clock::now;
use crate::end::{Ends, from_post_to_end};
use crate::error::BenchError;
use crate::floor::{Commits, Kind, Publishes};
use crate::plant::{Plant, Settings};
use crate::report::{Figure, Report, Target};
use crate::statistics::{Summary, differences};

const NAME: &str = "fence";
/// The first fences fill caches and open connections.
const WARM_UP: usize = 3;
/// The driver's calls of the agent in one fence, which are the floor. That the driver makes these and no other is checked in each run.
const CALLS: [&str; 2] = ["off", "status"];
/// The agent's runs differ by tens of milliseconds: with four times the usual samples, the median of the differences is good to about one
/// millisecond.
const TIMES_SAMPLES: usize = 4;
/// The durable commits between POST and the claim, and between the reading and FENCED: the request and the result.
const COMMITS: f64 = 2.0;
/// The task, the request for the claim, the result.
const PUBLISHES: f64 = 3.0;
/// How much longer than its agent a fence may take, at the median.
const fn most_ms(ground: Ground) -> f64 {
    match ground {
        Ground::Standalone => 2.0,
        Ground::Distributed => 6.0,
    }
}

/// Measures on one ground.
pub async fn measure(case: &Case, ground: Ground, report: &mut Report) -> Result<(), BenchError> {
    let samples = case.samples * TIMES_SAMPLES;
    let bench = Bench::prepare(ground, samples + WARM_UP + 2).await?;
    let mut ends = Ends::open(&bench.plant).await?;
    let mut taken = Taken::default();
    for number in 0..samples + WARM_UP {
        if number == WARM_UP {
            taken = Taken::default();
        }
        bench.sample(number, &mut ends, &mut taken).await?;
    }
    bench.check_calls(samples + WARM_UP, &mut ends).await?;
    bench.end().await?;
    tell(ground, &taken, report)
}

/// All measurements in milliseconds, one of each kind per sample.
#[derive(Default)]
struct Taken {
    one_call: Vec<f64>,
    agent: Vec<f64>,
    fence: Vec<f64>,
    stream: Vec<f64>,
    request: Vec<f64>,
    commit: Vec<f64>,
    publish: Vec<f64>,
    path: Vec<f64>,
    to_claim: Vec<f64>,
    acting: Vec<f64>,
    to_result: Vec<f64>,
    to_end: Vec<f64>,
    post: Vec<f64>,
    pacemaker: Vec<f64>,
}

struct Bench {
    plant: Plant,
    dir: PathBuf,
    agents: PathBuf,
    commits: Commits,
    publishes: Option<Publishes>,
    pacemaker: Option<Fencer>,
}

impl Bench {
    async fn prepare(ground: Ground, hosts: usize) -> Result<Self, BenchError> {
        let agents = tempfile::Builder::new()
            .prefix("rf-agents-")
            .tempdir()
            .map_err(BenchError::system("make a folder for the agent"))?
            .keep();
        agent::agents(&agents.join("bin"))?;
        let settings = Settings::default().with(
            "RINGFENCE_WORKER_AGENTS_DIR",
            agents.join("bin").display().to_string(),
        );
        let plant = Plant::start(ground, settings).await?;
        let dir = plant.machine.file("power");
        std::fs::create_dir_all(&dir).map_err(BenchError::system("make a folder for the power"))?;
        let file = format!("{}/${{host.name}}", dir.display());
        let parameters = json!({ "agent": "fence_dummy", "status_file": file });
        plant
            .add_method(json!({ "name": "power", "driver": "fence-agent", "parameters": parameters }))
            .await;
        plant.add_plan(&[("power.off", "power")]).await;
        for number in 0..hosts {
            let host = host(number);
            switch_on(&dir.join(&host))?;
            plant.add_host(&host, true).await;
        }
        plant.add_host("beside", false).await;
        let publishes = match plant.site.as_ref().and_then(|site| site.amqp_url.as_deref()) {
            Some(url) => Some(Publishes::prepare(url, Kind::Quorum).await?),
            None => None,
        };
        Ok(Self {
            dir,
            agents,
            commits: Commits::prepare(ground, 1).await?,
            publishes,
            pacemaker: start_pacemaker()?,
            plant,
        })
    }

    /// Takes one measurement of each kind, so that a disturbance of the machine meets figure and floor alike.
    async fn sample(&self, number: usize, ends: &mut Ends, taken: &mut Taken) -> Result<(), BenchError> {
        let floor = self.dir.join("floor");
        switch_on(&floor)?;
        let mut calls = Vec::new();
        for action in CALLS {
            calls.push(agent::run(action, &floor).await?);
        }
        taken.one_call.push(calls[0]);
        taken.agent.push(calls.iter().sum());
        self.fence(number, ends, taken).await?;
        let commit = self.commits.once(0).await?;
        taken.commit.push(commit);
        let mut path = COMMITS * commit;
        if let Some(publishes) = &self.publishes {
            let publish = publishes.once().await?;
            taken.publish.push(publish);
            path += PUBLISHES * publish;
        }
        if let Some(fencer) = &self.pacemaker {
            let took = tokio::task::block_in_place(|| fencer.fence())?;
            taken.pacemaker.push(took.as_secs_f64() * 1000.0);
        }
        // Measured last: the agents of the next sample then run before the fence, as they do before the other measurements.
        let request = request_alone(&self.plant).await;
        taken.request.push(request);
        taken.path.push(path + request);
        Ok(())
    }

    async fn fence(&self, number: usize, ends: &mut Ends, taken: &mut Taken) -> Result<(), BenchError> {
        let host = host(number);
        let (begun, begun_at) = (Instant::now(), now());
        let operation = self.plant.client.fence(&host).await;
        taken.post.push(ms(begun));
        let end = ends.of(&host, begun).await?;
        taken
            .fence
            .push(end.committed.duration_since(begun).as_secs_f64() * 1000.0);
        let ended_at = begun_at + (end.committed - begun);
        let path = format!("/operations/{}", operation["id"].as_str().unwrap_or_default());
        let operation = self.plant.client.get(&path).await.ok(200);
        let attempt = &operation["stages"][0]["tasks"][0]["attempts"][0];
        let (claimed, ended) = (time(&attempt["claimed_at"])?, time(&attempt["ended_at"])?);
        let observed = time(&attempt["observation"]["observed_at"])?;
        taken.to_claim.push(between(begun_at, claimed));
        taken.acting.push(between(claimed, observed));
        taken.to_result.push(between(observed, ended));
        taken.to_end.push(between(ended, ended_at));
        taken
            .stream
            .push(ends.added_by_the_stream(&end, &self.plant, number).await?);
        Ok(())
    }

    /// Whether the floor has the calls of a fence. The first fence also asks once for the agent's parameters.
    async fn check_calls(&self, from: usize, ends: &mut Ends) -> Result<(), BenchError> {
        let counting = Counting::install(&self.agents.join("bin"))?;
        for number in [from, from + 1] {
            counting.clear()?;
            self.fence(number, ends, &mut Taken::default()).await?;
        }
        let actions = counting.actions(&self.dir.join(host(from + 1)))?;
        if actions == CALLS {
            return Ok(());
        }
        Err(BenchError::Unexpected {
            what: format!(
                "the agent's calls in one fence, which are {} in the floor",
                CALLS.join(", ")
            ),
            found: actions.join(", "),
        })
    }

    async fn end(self) -> Result<(), BenchError> {
        self.plant.stop().await;
        if let Some(publishes) = self.publishes {
            publishes.close().await?;
        }
        std::fs::remove_dir_all(&self.agents).map_err(BenchError::system("remove the agent's folder"))
    }
}

fn tell(ground: Ground, taken: &Taken, report: &mut Report) -> Result<(), BenchError> {
    let figure = |what: &str, summary| Figure::new(NAME, what, "ms", summary).on(ground);
    let Some(agent) = Summary::of(&taken.agent) else {
        return Ok(());
    };
    report.add_summary(&taken.one_call, |s| figure("floor: fence_dummy off, alone", s))?;
    report.add(figure(&format!("floor: fence_dummy {}", CALLS.join(", ")), agent))?;
    report.add_summary(&taken.fence, |s| {
        figure(from_post_to_end(ground), s).over("the agent's calls", agent.median)
    })?;
    report.add_summary(&differences(&taken.fence, &taken.agent), |s| {
        let most = most_ms(ground);
        figure("what a fence adds to its agent's calls", s).target(Target::at_most(
            "added to the agent's calls, median,",
            s.median,
            most,
            "ms",
        ))
    })?;
    let Some(path) = Summary::of(&taken.path) else {
        return Ok(());
    };
    let of_path = match ground {
        Ground::Standalone => "2 commits, a request",
        Ground::Distributed => "2 commits, 3 publishes, a request",
    };
    report.add(figure(&format!("floor: {of_path}"), path))?;
    report.add_summary(&differences(&taken.fence, &taken.acting), |s| {
        let figure = figure("of which: before the claim and after the reading", s);
        figure.over(of_path, path.median).note(
            "no agent runs in it, so that it is sharp where the machine is busy; the claim's commit and answer are not in it",
        )
    })?;
    for (what, taken) in [
        ("of which: POST answered", &taken.post),
        ("of which: POST to claim", &taken.to_claim),
        ("of which: claim to read back", &taken.acting),
        ("of which: read back to result", &taken.to_result),
        ("of which: result to its end", &taken.to_end),
        ("what the event stream adds after a commit", &taken.stream),
        ("floor: a request that reads and writes nothing", &taken.request),
        ("floor: one durable commit", &taken.commit),
        ("floor: one confirmed publish", &taken.publish),
        (
            "beside: stonith_admin --fence, which calls the agent once",
            &taken.pacemaker,
        ),
    ] {
        report.add_summary(taken, |s| figure(what, s))?;
    }
    if taken.pacemaker.is_empty() {
        report.skip(
            NAME,
            "Pacemaker's fencer is not measured beside: pacemaker is not installed",
        );
    }
    Ok(())
}

fn start_pacemaker() -> Result<Option<Fencer>, BenchError> {
    if Fencer::is_installed() {
        return Ok(Some(Fencer::alone()?));
    }
    Ok(None)
}

fn host(number: usize) -> String {
    format!("f{number}")
}

fn switch_on(file: &Path) -> Result<(), BenchError> {
    std::fs::write(file, "on").map_err(BenchError::system(format!("write {}", file.display())))
}

fn time(value: &Value) -> Result<DateTime<Utc>, BenchError> {
    let unexpected = || BenchError::Unexpected {
        what: "a time of an attempt".to_owned(),
        found: value.to_string(),
    };
    let text = value.as_str().ok_or_else(unexpected)?;
    DateTime::parse_from_rfc3339(text)
        .map(|at| at.to_utc())
        .map_err(|_| unexpected())
}

#[expect(clippy::cast_precision_loss, reason = "microseconds of some seconds")]
fn between(from: DateTime<Utc>, to: DateTime<Utc>) -> f64 {
    (to - from).num_microseconds().unwrap_or(i64::MAX) as f64 / 1000.0
}
