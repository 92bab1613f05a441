//! Reading: the gates, which everybody asks, and the list of many hosts.

use std::time::{Duration, Instant};

use ringfence_tests::Ground;
use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::SqlitePoolOptions;
use sqlx::{PgPool, SqlitePool};

use super::{Case, ms};
use crate::asker::Asker;
use crate::error::BenchError;
use crate::plant::{Plant, Settings};
use crate::report::{Figure, Report, Target};
use crate::statistics::Summary;

const NAME: &str = "gates";
/// Questions under way at once.
const LANES: u32 = 16;
/// SQLite's readers, as the product has them.
const SQLITE_READERS: u32 = 4;
const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_secs(2);
/// Of the bare statement's rate.
const LEAST_SHARE: f64 = 0.25;
const HOSTS: u32 = 100_000;
const PAGE: u32 = 100;
/// What the last page may take over the first, as a factor.
const MOST_LAST: f64 = 1.5;

/// What the gates are decided from.
const SELECT: &str = "SELECT hosts.id, hosts.name, hosts.segment_id, hosts.backend, hosts.host_type, hosts.zone, hosts.parameters,
        hosts.sources, hosts.failure_state, hosts.failure_source, hosts.failure_observed_at, hosts.failure_since,
        hosts.generation, hosts.fence, hosts.is_silence_answered, hosts.given_back_at, hosts.last_off_at, hosts.standing,
        hosts.in_flight, hosts.event_sequence, hosts.revision, hosts.created_at, hosts.updated_at,
        segments.policy AS policy, operations.body AS body, operations.methods AS methods
    FROM hosts
    JOIN segments ON segments.id = hosts.segment_id
    LEFT JOIN operations ON operations.host_id = hosts.id AND operations.finished_at IS NULL
    WHERE hosts.name = $1";

/// Measures on one ground.
pub async fn measure(case: &Case, ground: Ground, report: &mut Report) -> Result<(), BenchError> {
    let plant = Plant::start(ground, Settings::default()).await?;
    plant.add_host("g1", true).await;
    let bare = Bare::open(&plant).await?;
    gates(&plant, &bare, report).await?;
    bare.fill(HOSTS).await?;
    pages(case, &plant, report).await?;
    plant.stop().await;
    Ok(())
}

async fn gates(plant: &Plant, bare: &Bare, report: &mut Report) -> Result<(), BenchError> {
    let (mut floors, mut figures, mut times, mut floor_times) = (vec![], vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        let floor = rate((0..LANES).map(|_| Lane::Bare(bare.clone())).collect()).await?;
        let mut askers = Vec::new();
        for _ in 0..LANES {
            let asker = Asker::connect(&plant.url, &plant.token, "/hosts/g1/gates").await?;
            askers.push(Lane::Api(asker));
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
            .note(format!("{LANES} at once, from one client on the same machine"))
    })
}

/// Who is asked, one question after the other.
enum Lane {
    Api(Asker),
    Bare(Bare),
}

impl Lane {
    async fn once(&mut self) -> Result<(), BenchError> {
        match self {
            Self::Api(asker) => asker.once().await,
            Self::Bare(bare) => bare.once().await,
        }
    }
}

struct Rate {
    per_s: f64,
    /// How long each took.
    ms: Vec<f64>,
}

/// Asks in all lanes for one round.
async fn rate(lanes: Vec<Lane>) -> Result<Rate, BenchError> {
    let begun = Instant::now();
    let lanes = lanes.into_iter().map(|mut lane| {
        tokio::spawn(async move {
            let mut times = Vec::new();
            while begun.elapsed() < ROUND {
                let asked = Instant::now();
                lane.once().await?;
                times.push(ms(asked));
            }
            Ok::<_, BenchError>(times)
        })
    });
    let mut times = Vec::new();
    for lane in lanes.collect::<Vec<_>>() {
        let taken = lane.await.map_err(|error| BenchError::Unexpected {
            what: "a lane of requests".to_owned(),
            found: error.to_string(),
        })?;
        times.extend(taken?);
    }
    #[expect(clippy::cast_precision_loss, reason = "a count of some thousands")]
    let per_s = times.len() as f64 / begun.elapsed().as_secs_f64();
    Ok(Rate { per_s, ms: times })
}

async fn pages(case: &Case, plant: &Plant, report: &mut Report) -> Result<(), BenchError> {
    // Names have as many digits as it takes to sort them.
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

/// The product's database without the product.
#[derive(Clone)]
pub(super) enum Bare {
    Postgres(PgPool),
    Sqlite(SqlitePool),
}

impl Bare {
    pub(super) async fn open(plant: &Plant) -> Result<Self, BenchError> {
        match &plant.site {
            Some(site) => {
                let pool = PgPoolOptions::new()
                    .max_connections(LANES)
                    .test_before_acquire(false);
                Ok(Self::Postgres(pool.connect(&site.database_url).await?))
            }
            None => {
                let pool = SqlitePoolOptions::new()
                    .max_connections(SQLITE_READERS)
                    .test_before_acquire(false);
                let url = format!("sqlite://{}", plant.machine.file("data/ringfence.db").display());
                Ok(Self::Sqlite(pool.connect(&url).await?))
            }
        }
    }

    async fn once(&self) -> Result<(), BenchError> {
        match self {
            Self::Postgres(pool) => sqlx::query(SELECT).bind("g1").fetch_all(pool).await.map(|_| ())?,
            Self::Sqlite(pool) => sqlx::query(SELECT).bind("g1").fetch_all(pool).await.map(|_| ())?,
        }
        Ok(())
    }

    /// Adds so many hosts that adding them one by one would take minutes: copies of the one that is there.
    pub(super) async fn fill(&self, hosts: u32) -> Result<(), BenchError> {
        let columns = self.columns().await?;
        let (numbers, id, name) = match self {
            Self::Postgres(_) => (
                format!("SELECT n FROM generate_series(0, {hosts} - 1) AS n"),
                "gen_random_uuid()",
                "'p' || lpad(n::text, 6, '0')",
            ),
            Self::Sqlite(_) => (
                format!(
                    "WITH RECURSIVE count(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM count WHERE n + 1 < {hosts}) SELECT n FROM count"
                ),
                // The form in which the product writes an id.
                "lower(hex(randomblob(4))) || '-' || lower(hex(randomblob(2))) || '-4' || substr(lower(hex(randomblob(2))), 2) \
                 || '-a' || substr(lower(hex(randomblob(2))), 2) || '-' || lower(hex(randomblob(6)))",
                "printf('p%06d', n)",
            ),
        };
        let fill = format!(
            "INSERT INTO hosts (id, name, {columns}) SELECT {id}, {name}, {columns} FROM ({numbers}) AS numbers, \
             (SELECT {columns} FROM hosts WHERE name = 'g1') AS one"
        );
        for sql in [fill, "ANALYZE".to_owned()] {
            let sql = sqlx::AssertSqlSafe(sql);
            match self {
                Self::Postgres(pool) => sqlx::query(sql).execute(pool).await.map(|_| ())?,
                Self::Sqlite(pool) => sqlx::query(sql).execute(pool).await.map(|_| ())?,
            }
        }
        Ok(())
    }

    /// All columns of a host but its id and name.
    async fn columns(&self) -> Result<String, BenchError> {
        let names: Vec<String> = match self {
            Self::Postgres(pool) => {
                let sql =
                    "SELECT column_name::text FROM information_schema.columns WHERE table_name = 'hosts'";
                sqlx::query_scalar(sql).fetch_all(pool).await?
            }
            Self::Sqlite(pool) => {
                let sql = "SELECT name FROM pragma_table_info('hosts')";
                sqlx::query_scalar(sql).fetch_all(pool).await?
            }
        };
        let others = names.into_iter().filter(|name| name != "id" && name != "name");
        Ok(others.collect::<Vec<_>>().join(", "))
    }
}
