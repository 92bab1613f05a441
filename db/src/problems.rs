//! Problems of hosts, counted from the events that tell them.

use std::collections::{BTreeMap, HashMap};

use ringfence_core::{HostId, HostProblem, SegmentId, Timestamp};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use crate::row::Row;
use crate::run::{Run, fetch_all, fetch_optional};
use crate::value::args;
use crate::wanted::Wanted;
use crate::{DbError, events_removed_up_to};

/// The most names of conditions that are told apart.
const MOST_NAMES: u32 = 100;

/// Which problems are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProblemTest {
    /// Those after this moment.
    pub since: Timestamp,
    /// Those of hosts that were in this segment when they came.
    pub segment_id: Option<SegmentId>,
}

/// How often each problem came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProblemCounts {
    /// By problem; what never came is left out.
    pub by_problem: BTreeMap<HostProblem, u64>,
    /// Conditions by name: the 100 names that come first.
    pub by_condition: BTreeMap<String, u64>,
}

impl ProblemCounts {
    /// How often this one came.
    #[must_use]
    pub fn of(&self, problem: HostProblem) -> u64 {
        self.by_problem.get(&problem).copied().unwrap_or_default()
    }

    fn add(&mut self, row: &Row) -> Result<(), DbError> {
        let problem = row.word("problem", HostProblem::from_word)?;
        let times = row.count("times")?;
        *self.by_problem.entry(problem).or_default() += times;
        if let Some(name) = row.opt_text("name")?
            && (self.by_condition.len() < MOST_NAMES as usize || self.by_condition.contains_key(&name))
        {
            *self.by_condition.entry(name).or_default() += times;
        }
        Ok(())
    }
}

/// A host with its problems.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TroubledHost {
    /// The host.
    pub id: HostId,
    /// Its name.
    pub name: String,
    /// The name of the segment that it is in now.
    pub segment: String,
    /// What it is listed by: how often the problem that is asked for came, or any that is no return.
    pub problems: u64,
    /// All that is counted of it.
    pub counts: ProblemCounts,
    /// Since when it is in quarantine.
    pub quarantined_at: Option<Timestamp>,
    /// Since when an alarm of it stands.
    pub alarmed_at: Option<Timestamp>,
}

const COUNTS: &str =
    "problem, CASE WHEN problem = 'condition' THEN data ->> 'condition' END AS name, count(*) AS times";

impl ProblemTest {
    fn wanted(&self) -> Wanted {
        let mut wanted = Wanted::default();
        self.add_to(&mut wanted);
        wanted
    }

    fn add_to(&self, wanted: &mut Wanted) {
        wanted.add("problem IS NOT NULL".to_owned());
        wanted.compare("occurred_at", ">", Some(self.since));
        wanted.compare("segment_id", "=", self.segment_id.map(|id| id.0));
    }
}

/// How often each problem of a host came after `since`.
pub async fn problems_of_host(
    run: &mut impl Run,
    id: HostId,
    since: Timestamp,
) -> Result<ProblemCounts, DbError> {
    let mut wanted = ProblemTest {
        since,
        segment_id: None,
    }
    .wanted();
    wanted.compare("host_id", "=", Some(id.0));
    counted(run, wanted).await
}

/// How often each problem came of any host, also of hosts that have been removed.
pub async fn problems_of_all(run: &mut impl Run, test: ProblemTest) -> Result<ProblemCounts, DbError> {
    counted(run, test.wanted()).await
}

async fn counted(run: &mut impl Run, wanted: Wanted) -> Result<ProblemCounts, DbError> {
    let conditions = wanted.conditions();
    let sql = format!("SELECT {COUNTS} FROM events{conditions} GROUP BY 1, 2 ORDER BY 1, 2");
    let mut counts = ProblemCounts::default();
    for row in fetch_all(run, AssertSqlSafe(sql), wanted.values()).await? {
        counts.add(&row)?;
    }
    Ok(counts)
}

/// The hosts with the most problems first, those with as many by name: all that had `problem`, or any that is no return; those after
/// the host `after`, at most `limit`.
pub async fn troubled_hosts(
    run: &mut impl Run,
    test: ProblemTest,
    problem: Option<HostProblem>,
    after: Option<HostId>,
    limit: u32,
) -> Result<Vec<TroubledHost>, DbError> {
    let mut wanted = test.wanted();
    match problem {
        Some(problem) => wanted.compare("problem", "=", Some(problem.as_str())),
        None => wanted.add(format!("problem <> '{}'", HostProblem::Returned)),
    }
    let conditions = wanted.conditions();
    let later = after.map_or_else(String::new, |id| {
        let marker = wanted.bind(id.0.into());
        let of = format!("coalesce((SELECT problems FROM counted WHERE host_id = {marker}), 0)");
        format!(
            " WHERE counted.problems < {of}
              OR counted.problems = {of} AND hosts.name > (SELECT name FROM hosts WHERE id = {marker})"
        )
    });
    let sql = format!(
        "WITH counted AS (SELECT host_id, count(*) AS problems FROM events{conditions} GROUP BY host_id)
         SELECT hosts.id AS id, hosts.name AS name, segments.name AS segment, problems, quarantined_at, alarmed_at
         FROM counted JOIN hosts ON hosts.id = counted.host_id JOIN segments ON segments.id = hosts.segment_id{later}
         ORDER BY problems DESC, hosts.name LIMIT {limit}"
    );
    let rows = fetch_all(run, AssertSqlSafe(sql), wanted.values()).await?;
    let mut hosts = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let mut counts = counts_of(run, hosts.iter().map(|host| host.id.0).collect(), test).await?;
    for host in &mut hosts {
        host.counts = counts.remove(&host.id).unwrap_or_default();
    }
    Ok(hosts)
}

fn read(row: &Row) -> Result<TroubledHost, DbError> {
    Ok(TroubledHost {
        id: HostId(row.id("id")?),
        name: row.text("name")?,
        segment: row.text("segment")?,
        problems: row.count("problems")?,
        counts: ProblemCounts::default(),
        quarantined_at: row.opt_time("quarantined_at")?,
        alarmed_at: row.opt_time("alarmed_at")?,
    })
}

async fn counts_of(
    run: &mut impl Run,
    ids: Vec<Uuid>,
    test: ProblemTest,
) -> Result<HashMap<HostId, ProblemCounts>, DbError> {
    let mut counts: HashMap<HostId, ProblemCounts> = HashMap::new();
    if ids.is_empty() {
        return Ok(counts);
    }
    let mut wanted = Wanted::default();
    wanted.bind(ids.into());
    wanted.add(run.dialect().in_first_argument("host_id"));
    test.add_to(&mut wanted);
    let conditions = wanted.conditions();
    let sql = format!("SELECT host_id, {COUNTS} FROM events{conditions} GROUP BY 1, 2, 3 ORDER BY 1, 2, 3");
    for row in fetch_all(run, AssertSqlSafe(sql), wanted.values()).await? {
        let id = HostId(row.id("host_id")?);
        counts.entry(id).or_default().add(&row)?;
    }
    Ok(counts)
}

/// The moment from which on every event is still kept; `None`: none was removed.
pub async fn events_kept_since(run: &mut impl Run) -> Result<Option<Timestamp>, DbError> {
    let removed = events_removed_up_to(run).await?;
    if removed == 0 {
        return Ok(None);
    }
    let sql = "SELECT occurred_at FROM events WHERE sequence > $1 ORDER BY sequence LIMIT 1";
    let row = fetch_optional(run, sql, args![removed]).await?;
    row.map(|row| row.time("occurred_at")).transpose()
}
