//! What the whole installation looks like at one moment, in numbers, for those who watch it.

use std::collections::BTreeMap;

use ringfence_core::{SegmentId, SourceCount, Timestamp};
use sqlx::AssertSqlSafe;

use crate::row::Row;
use crate::run::{Run, fetch_all, fetch_optional};
use crate::sights::are_sights_wanted;
use crate::value::args;
use crate::{DbError, Suspended};

/// Numbers over all hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Failure state, fencing state, hosts. What no host is in is left out.
    pub hosts: Vec<(String, String, u64)>,
    /// Kind, status, live operations. What none is in is left out.
    pub operations: Vec<(String, String, u64)>,
    /// When the oldest live fence was asked for that its host is not FENCED by.
    pub oldest_unproven_fence: Option<Timestamp>,
    /// Messages in the outbox.
    pub outbox_rows: u64,
    /// Since when any process could have published the message that waits longest; ahead of the present for a fresh one.
    pub outbox_since: Option<Timestamp>,
    /// The number of the last event.
    pub last_event: u64,
    /// Driver, methods' questions whose last answer was not good. What has none is left out.
    pub failing_checks: Vec<(String, u64)>,
    /// [`SubscriptionState`], subscriptions. What none is in is left out.
    pub subscriptions: Vec<(String, u64)>,
    /// When the oldest event happened that an enabled subscription may still have to be told of.
    pub undelivered_since: Option<Timestamp>,
    /// EventSink, when the oldest event happened that it was not told of.
    pub event_sinks: Vec<(String, Option<Timestamp>)>,
    /// What is suspended; at most 1000 segments and 1000 hosts.
    pub suspensions: Suspended,
    /// What the sources hear, where a segment wants that counted.
    pub sources: BTreeMap<String, SourceCount>,
    /// Segments, the first 100 by name, and all others together, if there are any.
    pub segments: Vec<SegmentSurvey>,
}

/// Numbers of the hosts of a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SegmentSurvey {
    /// Its id and name; `None`: of all that are not named.
    pub named: Option<(SegmentId, String)>,
    /// Hosts in quarantine.
    pub quarantined: u64,
    /// Hosts with an alarm that stands.
    pub alarmed: u64,
    /// Moves of evacuations that have begun and not ended.
    pub moves_under_way: u64,
    /// Moves of evacuations that wait until others have ended.
    pub moves_waiting: u64,
}

/// More segments are not told apart.
const MOST_SEGMENTS: u32 = 100;

/// More suspensions of one kind are not counted.
const MOST_SUSPENSIONS: u32 = 1_000;

/// What a subscription is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum SubscriptionState {
    /// Events are delivered.
    Enabled,
    /// An operator has disabled it.
    Disabled,
    /// It was disabled because its receiver failed.
    Failed,
}

ringfence_core::words!(SubscriptionState);

/// Counts everything. It reads all rows of the hosts, so that a caller that asks often has to keep the answer for a while.
pub async fn survey(run: &mut impl Run, now: Timestamp) -> Result<Survey, DbError> {
    let (outbox_rows, outbox_since) = outbox(run).await?;
    Ok(Survey {
        hosts: hosts(run).await?,
        operations: operations(run).await?,
        oldest_unproven_fence: oldest_unproven_fence(run).await?,
        outbox_rows,
        outbox_since,
        last_event: crate::last_sequence(run).await?,
        failing_checks: crate::failing_checks(run).await?,
        subscriptions: subscriptions(run).await?,
        undelivered_since: undelivered_since(run).await?,
        event_sinks: event_sinks(run).await?,
        suspensions: crate::suspensions(run, MOST_SUSPENSIONS).await?,
        sources: sources(run, now).await?,
        segments: segments(run, now).await?,
    })
}

async fn sources(run: &mut impl Run, now: Timestamp) -> Result<BTreeMap<String, SourceCount>, DbError> {
    if !are_sights_wanted(run).await? {
        return Ok(BTreeMap::new());
    }
    crate::count_sources(run, 0, now).await
}

async fn hosts(run: &mut impl Run) -> Result<Vec<(String, String, u64)>, DbError> {
    let sql = "SELECT failure_state, fencing_state, COUNT(*) AS hosts FROM hosts
               GROUP BY failure_state, fencing_state";
    let rows = fetch_all(run, sql, args![]).await?;
    rows.iter()
        .map(|row| {
            Ok((
                row.text("failure_state")?,
                row.text("fencing_state")?,
                row.count("hosts")?,
            ))
        })
        .collect()
}

async fn operations(run: &mut impl Run) -> Result<Vec<(String, String, u64)>, DbError> {
    let sql = "SELECT kind, status, COUNT(*) AS operations FROM operations
               WHERE status IN ('running', 'held', 'needs_operator') GROUP BY kind, status";
    let rows = fetch_all(run, sql, args![]).await?;
    rows.iter()
        .map(|row| Ok((row.text("kind")?, row.text("status")?, row.count("operations")?)))
        .collect()
}

async fn oldest_unproven_fence(run: &mut impl Run) -> Result<Option<Timestamp>, DbError> {
    let sql = "SELECT operations.created_at FROM operations JOIN hosts ON hosts.id = operations.host_id
               WHERE operations.status IN ('running', 'held', 'needs_operator') AND operations.kind = 'fence'
                 AND (hosts.fenced_generation IS NULL OR hosts.fenced_generation < operations.generation)
               ORDER BY operations.created_at LIMIT 1";
    let row = fetch_optional(run, sql, args![]).await?;
    row.map(|row| row.time("created_at")).transpose()
}

async fn outbox(run: &mut impl Run) -> Result<(u64, Option<Timestamp>), DbError> {
    let sql = "SELECT COUNT(*) AS waiting FROM outbox";
    let waiting = match fetch_optional(run, sql, args![]).await? {
        Some(row) => row.count("waiting")?,
        None => 0,
    };
    let sql = "SELECT waits_since FROM outbox ORDER BY waits_since LIMIT 1";
    let row = fetch_optional(run, sql, args![]).await?;
    Ok((waiting, row.map(|row| row.time("waits_since")).transpose()?))
}

async fn subscriptions(run: &mut impl Run) -> Result<Vec<(String, u64)>, DbError> {
    let sql = "SELECT state, COUNT(*) AS subscriptions FROM
                   (SELECT CASE WHEN enabled THEN 'enabled' WHEN disabled_reason IS NULL THEN 'disabled' ELSE 'failed' END AS state
                    FROM subscriptions) states
               GROUP BY state";
    let rows = fetch_all(run, sql, args![]).await?;
    rows.iter()
        .map(|row| Ok((row.text("state")?, row.count("subscriptions")?)))
        .collect()
}

async fn undelivered_since(run: &mut impl Run) -> Result<Option<Timestamp>, DbError> {
    let sql = "SELECT occurred_at FROM events
               WHERE sequence > (SELECT min(after_sequence) FROM subscriptions WHERE enabled)
               ORDER BY sequence LIMIT 1";
    let row = fetch_optional(run, sql, args![]).await?;
    row.map(|row| row.time("occurred_at")).transpose()
}

async fn segments(run: &mut impl Run, now: Timestamp) -> Result<Vec<SegmentSurvey>, DbError> {
    let sql = format!("SELECT id, name FROM segments ORDER BY name LIMIT {MOST_SEGMENTS}");
    let rows = fetch_all(run, AssertSqlSafe(sql), args![]).await?;
    let named = |row: &Row| {
        Ok(SegmentSurvey {
            named: Some((SegmentId(row.id("id")?), row.text("name")?)),
            ..SegmentSurvey::default()
        })
    };
    let mut segments = rows.iter().map(named).collect::<Result<Vec<_>, DbError>>()?;
    let mut others = SegmentSurvey::default();
    let mut of = |id: SegmentId, add: &dyn Fn(&mut SegmentSurvey)| {
        let is_it =
            |segment: &&mut SegmentSurvey| segment.named.as_ref().is_some_and(|(known, _)| *known == id);
        add(segments.iter_mut().find(is_it).unwrap_or(&mut others));
    };
    let sql =
        "SELECT segment_id, count(quarantined_at) AS quarantined, count(alarmed_at) AS alarmed FROM hosts
               WHERE quarantined_at IS NOT NULL OR alarmed_at IS NOT NULL GROUP BY segment_id";
    for row in fetch_all(run, sql, args![]).await? {
        let (quarantined, alarmed) = (row.count("quarantined")?, row.count("alarmed")?);
        of(SegmentId(row.id("segment_id")?), &|segment| {
            segment.quarantined += quarantined;
            segment.alarmed += alarmed;
        });
    }
    for one in crate::evacuations(run, now).await? {
        of(one.segment_id, &|segment| {
            segment.moves_under_way += u64::from(one.queue.under_way);
            segment.moves_waiting += u64::from(one.queue.all_waiting());
        });
    }
    segments.extend((others != SegmentSurvey::default()).then_some(others));
    Ok(segments)
}

async fn event_sinks(run: &mut impl Run) -> Result<Vec<(String, Option<Timestamp>)>, DbError> {
    let sql = "SELECT name, (SELECT occurred_at FROM events WHERE sequence > after_sequence ORDER BY sequence LIMIT 1) AS waits_since
               FROM event_sinks ORDER BY name";
    let rows = fetch_all(run, sql, args![]).await?;
    rows.iter()
        .map(|row| Ok((row.text("name")?, row.opt_time("waits_since")?)))
        .collect()
}
