//! How long a scheduler waits for the answer which of its hosts may get a server, or which of its nodes a pod.

use std::time::{Duration, Instant};

use ringfence_tests::{Client, Ground};
use serde_json::{Value, json};

use super::gates::Bare;
use super::{Case, ms};
use crate::asker::Asker;
use crate::error::BenchError;
use crate::floor::Bodies;
use crate::plant::{Plant, Settings};
use crate::report::{Figure, Report, Target};
use crate::statistics::Summary;

const NAME: &str = "hook";
const CLOUD: &str = "east";
/// The number of hosts, and the most hosts of one request.
const HOSTS: u32 = 10_000;
const QUESTIONS: [u32; 3] = [1, 100, HOSTS];
/// The nodes of a large cluster.
const NODES: u32 = 5_000;
/// How long the longest request may take, in milliseconds.
const MOST_MS: f64 = 10.0;
const PATH: &str = "/nova/filter";
const EXTENDER_PATH: &str = "/kubernetes/filter?cluster=east";
/// Concurrent requests where the rate is measured.
const CLIENTS: usize = 8;
const ROUNDS: usize = 3;
const ROUND: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(60);

/// Measures on one ground.
pub async fn measure(case: &Case, ground: Ground, report: &mut Report) -> Result<(), BenchError> {
    let plant = Plant::start(ground, Settings::default()).await?;
    let (url, service) = match ground {
        Ground::Standalone => (plant.url.clone(), None),
        Ground::Distributed => {
            let words = ["scheduler-hook", "--listen", "127.0.0.1:0"];
            let mut service = plant.machine.start("scheduler-hook", &words);
            let url = service.until_it_listens("the scheduler hook listens").await;
            (url, Some(service))
        }
    };
    fill(&plant).await?;
    let client = Client::new(&url, Some(&plant.token));
    until_all_are_allowed(&client).await?;
    let of_nova = QUESTIONS.map(|hosts| (PATH, hosts, question(hosts)));
    let of_kubernetes = [(EXTENDER_PATH, NODES, extender_question(NODES))];
    for (path, hosts, question) in of_nova.into_iter().chain(of_kubernetes) {
        let answer = client.post(path, question.clone()).await.ok(200).to_string();
        let floor = Bodies::start(answer)?;
        let asked = Asked {
            product: (url.clone(), path),
            floor: (floor.url().to_owned(), "/"),
            token: plant.token.clone(),
            body: question.to_string(),
            hosts,
        };
        one_at_a_time(case, &asked, ground, report).await?;
        many_at_once(&asked, ground, report).await?;
    }
    if let Some(service) = service {
        service.stop().await;
    }
    plant.stop().await;
    Ok(())
}

/// A request to the product, and an equal one to the floor.
struct Asked {
    product: (String, &'static str),
    floor: (String, &'static str),
    token: String,
    body: String,
    hosts: u32,
}

impl Asked {
    /// The request in words.
    fn what(&self) -> String {
        let path = self.product.1.split('?').next().unwrap_or_default();
        format!("POST {path} for {}", self.hosts)
    }

    /// How long the request may take at p99, if it is one of the longest.
    fn target(&self, p99: f64) -> Option<Target> {
        let wanted = match (self.product.1, self.hosts) {
            (PATH, HOSTS) => "p99 of the longest request",
            (EXTENDER_PATH, NODES) => "p99 of the scheduler's extender, 5,000 nodes,",
            _ => return None,
        };
        Some(Target::at_most(wanted, p99, MOST_MS, "ms"))
    }

    async fn connect(&self, whom: &(String, &str)) -> Result<Asker, BenchError> {
        Asker::connect_to_post(&whom.0, &self.token, whom.1, &self.body).await
    }
}

fn host(number: u32) -> String {
    format!("p{number:06}")
}

fn question(hosts: u32) -> Value {
    let hosts: Vec<String> = (0..hosts).map(host).collect();
    json!({ "cloud": CLOUD, "hosts": hosts })
}

/// As a scheduler of Kubernetes asks which of its nodes may get a pod.
fn extender_question(nodes: u32) -> Value {
    let nodes: Vec<String> = (0..nodes).map(host).collect();
    let pod = json!({
        "metadata": { "name": "db-0", "namespace": "default", "labels": { "app": "db" } },
        "spec": { "containers": [{ "name": "main", "image": "registry.example/db:1" }] },
    });
    json!({ "Pod": pod, "Nodes": null, "NodeNames": nodes })
}

/// One host that is UP, and copies of it.
async fn fill(plant: &Plant) -> Result<(), BenchError> {
    let first = json!({ "name": "g1", "backend": "nova", "cloud": CLOUD });
    plant.client.post("/hosts", first).await.ok(201);
    plant.client.seen("g1", "UP").await.ok(200);
    Bare::open(plant).await?.fill(HOSTS).await
}

async fn until_all_are_allowed(client: &Client) -> Result<(), BenchError> {
    let begun = Instant::now();
    loop {
        let answer = client.post(PATH, question(HOSTS)).await;
        let allowed = answer.body["allowed"].as_array().map_or(0, Vec::len);
        if allowed == HOSTS as usize {
            return Ok(());
        }
        if begun.elapsed() > PATIENCE {
            return Err(BenchError::Unexpected {
                what: PATH.to_owned(),
                found: format!("{allowed} hosts allowed"),
            });
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// How long one request takes, in turns with the server alone.
async fn one_at_a_time(
    case: &Case,
    asked: &Asked,
    ground: Ground,
    report: &mut Report,
) -> Result<(), BenchError> {
    let (mut floors, mut figures) = (vec![], vec![]);
    let mut floor = asked.connect(&asked.floor).await?;
    let mut product = asked.connect(&asked.product).await?;
    for _ in 0..case.samples * 25 {
        for (asker, taken) in [(&mut floor, &mut floors), (&mut product, &mut figures)] {
            let begun = Instant::now();
            asker.once().await?;
            taken.push(ms(begun));
        }
    }
    let figure = |what: String, summary| Figure::new(NAME, what, "ms", summary).on(ground);
    let Some(floor) = Summary::of(&floors) else {
        return Ok(());
    };
    report.add(figure(
        format!("floor: a body of that size for {}", asked.hosts),
        floor,
    ))?;
    report.add_summary(&figures, |s| {
        let target = asked.target(s.p99);
        let figure = figure(asked.what(), s).over("the server alone", floor.median);
        match target {
            Some(target) => figure.target(target),
            None => figure,
        }
    })
}

async fn many_at_once(asked: &Asked, ground: Ground, report: &mut Report) -> Result<(), BenchError> {
    let (mut floors, mut figures) = (vec![], vec![]);
    for _ in 0..ROUNDS {
        floors.push(rate(asked, &asked.floor).await?);
        figures.push(rate(asked, &asked.product).await?);
    }
    let figure = |what: String, summary| Figure::new(NAME, what, "1/s", summary).on(ground);
    let Some(floor) = Summary::of(&floors) else {
        return Ok(());
    };
    report.add(figure(
        format!("floor: bodies of that size for {}", asked.hosts),
        floor,
    ))?;
    report.add_summary(&figures, |s| {
        figure(asked.what(), s)
            .over("the server alone", floor.median)
            .note(format!("{CLIENTS} at once, from one client on this machine"))
    })
}

/// Answers per second.
async fn rate(asked: &Asked, whom: &(String, &str)) -> Result<f64, BenchError> {
    let mut askers = Vec::new();
    for _ in 0..CLIENTS {
        askers.push(asked.connect(whom).await?);
    }
    let begun = Instant::now();
    let clients = askers.into_iter().map(|mut asker| async move {
        let mut times = 0_u32;
        while begun.elapsed() < ROUND {
            asker.once().await?;
            times += 1;
        }
        Ok::<_, BenchError>(times)
    });
    let counted = futures_util::future::try_join_all(clients).await?;
    Ok(f64::from(counted.into_iter().sum::<u32>()) / begun.elapsed().as_secs_f64())
}
