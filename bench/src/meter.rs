//! How much processor time each part of a plant has used.

use std::fs;

use crate::error::BenchError;
use crate::plant::Plant;

/// The kernel's clock ticks, as `/proc` counts them.
const TICKS_PER_S: f64 = 100.0;

/// The processes of one part. A process that has ended counts with its parent.
struct Part {
    name: String,
    /// A process that counts with all of its children.
    root: u32,
}

/// The parts of a plant, its peers and this process.
pub struct Meter {
    parts: Vec<Part>,
}

/// Processor time so far, in seconds, by the name of the part.
pub type Reading = Vec<(String, f64)>;

impl Meter {
    pub async fn of(plant: &Plant) -> Result<Self, BenchError> {
        let part = |name: &str, root| Part {
            name: name.to_owned(),
            root,
        };
        let mut parts: Vec<_> = plant
            .services
            .iter()
            .map(|(name, service)| part(name, service.pid()))
            .collect();
        parts.push(part("this benchmark with its devices", std::process::id()));
        if let Some(site) = &plant.site {
            use sqlx::Connection;
            let mut database = sqlx::PgConnection::connect(&site.database_url).await?;
            let backend: i32 = sqlx::query_scalar("SELECT pg_backend_pid()")
                .fetch_one(&mut database)
                .await?;
            let backend = u32::try_from(backend).unwrap_or_default();
            parts.extend(Stat::of(backend).map(|stat| part("PostgreSQL", stat.parent)));
            let port = site
                .amqp_url
                .as_deref()
                .and_then(|url| url::Url::parse(url).ok()?.port());
            parts.extend(port.and_then(node).map(|root| part("RabbitMQ", root)));
        }
        Ok(Self { parts })
    }

    pub fn read(&self) -> Reading {
        let all: Vec<_> = pids().filter_map(|pid| Some((pid, Stat::of(pid)?))).collect();
        let of = |part: &Part| {
            let ours = |(pid, stat): &&(u32, Stat)| {
                // The services are children of this process, and parts of their own.
                *pid == part.root || (stat.parent == part.root && part.root != std::process::id())
            };
            let ticks: f64 = all.iter().filter(ours).map(|(_, stat)| stat.ticks).sum();
            (part.name.clone(), ticks / TICKS_PER_S)
        };
        self.parts.iter().map(of).collect()
    }
}

/// The processor time between two readings.
pub fn between(before: &Reading, after: &Reading) -> Reading {
    before
        .iter()
        .zip(after)
        .map(|((name, before), (_, after))| (name.clone(), after - before))
        .collect()
}

struct Stat {
    parent: u32,
    ticks: f64,
}

impl Stat {
    /// Fields 4 and 14 to 17 of `/proc/PID/stat`; the second may hold blanks and ends with the last parenthesis.
    fn of(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    fn parse(stat: &str) -> Option<Self> {
        let fields: Vec<_> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<f64>().ok();
        Some(Self {
            parent: fields.get(1)?.parse().ok()?,
            ticks: number(14)? + number(15)? + number(16)? + number(17)?,
        })
    }
}

fn pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// The process of the private broker on this port, which has the port in its environment.
fn node(port: u16) -> Option<u32> {
    let name = format!("RABBITMQ_NODENAME=ringfence-{port}@localhost");
    pids().find(|pid| {
        let is_erlang =
            fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.contains("beam"));
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        is_erlang
            && environment
                .split(|byte| *byte == 0)
                .any(|variable| variable == name.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_blanks_and_parentheses_moves_no_field() {
        let stat = "7 (a b) c) S 3 7 7 0 -1 0 0 0 0 0 10 20 1 2 20 0 1";
        let stat = Stat::parse(stat).unwrap();
        assert_eq!((stat.parent, stat.ticks), (3, 33.0));
    }
}
