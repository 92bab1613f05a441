//! How many requests are answered per second, with several concurrent clients.

use std::time::{Duration, Instant};

use super::super::ms;
use super::bare::Bare;
use crate::asker::Asker;
use crate::clock::now;
use crate::error::BenchError;

const ROUND: Duration = Duration::from_secs(2);

/// A client that sends one request after the other.
pub enum Client {
    /// One request of the API, made again and again.
    Api(Asker),
    /// The gates of random hosts.
    Gates(Asker, Random),
    /// Reports of random hosts.
    Reports(Asker, Random),
    /// The bare statement, for one host.
    Bare(Bare, String),
    /// The bare statement, for random hosts.
    BareOfRandom(Bare, Random),
}

impl Client {
    async fn once(&mut self) -> Result<(), BenchError> {
        match self {
            Self::Api(asker) => asker.once().await,
            Self::Gates(asker, random) => {
                asker.ask_for(&format!("GET /hosts/{}/gates", random.host()), "");
                asker.once().await
            }
            Self::Reports(asker, random) => {
                let body = format!(
                    r#"{{"failure_state":"UP","source":"bench","observed_at":"{}"}}"#,
                    now().to_rfc3339()
                );
                asker.ask_for(&format!("PUT /hosts/{}/failure-state", random.host()), &body);
                asker.once().await
            }
            Self::Bare(bare, host) => bare.read(host).await,
            Self::BareOfRandom(bare, random) => bare.read(&random.host()).await,
        }
    }
}

/// Hosts of a large site in random order.
pub struct Random {
    state: u64,
    hosts: u64,
}

impl Random {
    pub fn of(seed: u32, hosts: u32) -> Self {
        Self {
            state: u64::from(seed),
            hosts: u64::from(hosts),
        }
    }

    fn host(&mut self) -> String {
        // Knuth's MMIX generator; its upper bits are the random ones.
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        format!("p{:06}", (self.state >> 33) % self.hosts)
    }
}

/// The result of a round.
pub struct Rate {
    pub per_s: f64,
    /// The time of each request, in milliseconds.
    pub ms: Vec<f64>,
}

/// Runs all clients for one round.
pub async fn rate(clients: Vec<Client>) -> Result<Rate, BenchError> {
    let begun = Instant::now();
    let clients = clients.into_iter().map(|mut client| {
        tokio::spawn(async move {
            let mut times = Vec::new();
            while begun.elapsed() < ROUND {
                let asked = Instant::now();
                client.once().await?;
                times.push(ms(asked));
            }
            Ok::<_, BenchError>(times)
        })
    });
    let mut times = Vec::new();
    for client in clients.collect::<Vec<_>>() {
        let taken = client.await.map_err(|error| BenchError::Unexpected {
            what: "a client of requests".to_owned(),
            found: error.to_string(),
        })?;
        times.extend(taken?);
    }
    #[expect(clippy::cast_precision_loss, reason = "a count of some thousands")]
    let per_s = times.len() as f64 / begun.elapsed().as_secs_f64();
    Ok(Rate { per_s, ms: times })
}
