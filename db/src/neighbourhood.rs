//! How the hosts around a host stand: what the storm brake and the safeguards go by.

use std::collections::BTreeMap;

use ringfence_core::{
    FencingPolicy, Group, GroupCount, GroupCounts, Host, HostId, Labels, Neighbourhood, Permit, Sights,
    Timestamp, not_quiet_since,
};
use sqlx::AssertSqlSafe;

use crate::run::{Run, fetch_all, fetch_optional};
use crate::value::args;
use crate::{DbError, hosts};

/// How the hosts of a segment, and those of a cloud, stand; `lately` counts those of the segment that fell silent or were fenced after
/// `since`, and `begun` those fences that have begun by themselves in the minute of `now`.
pub async fn neighbourhood(
    run: &mut impl Run,
    host: &Host,
    since: Timestamp,
    now: Timestamp,
) -> Result<Neighbourhood, DbError> {
    let sql = "SELECT count(CASE WHEN segment_id = $1 THEN 1 END) AS hosts,
                   count(CASE WHEN segment_id = $1 AND is_out = 1 THEN 1 END) AS out_of_service,
                   count(CASE WHEN segment_id = $1 AND is_lately = 1 THEN 1 END) AS lately,
                   count(CASE WHEN cloud = $3 THEN 1 END) AS in_cloud,
                   count(CASE WHEN cloud = $3 AND is_out = 1 THEN 1 END) AS out_of_service_in_cloud,
                   count(CASE WHEN segment_id = $1 AND id <> $4 AND is_under_way = 1 THEN 1 END) AS under_way,
                   count(CASE WHEN segment_id = $1 AND id <> $4 AND is_waiting = 1
                              AND (failure_since < $5 OR failure_since = $5 AND id < $4) THEN 1 END) AS before_it,
                   (SELECT count(*) FROM permits WHERE name = $6) AS begun
               FROM (SELECT hosts.id, segment_id, cloud, failure_since,
                         CASE WHEN live.kind = 'fence' AND live.status = 'running' THEN 1 END AS is_under_way,
                         CASE WHEN live.is_in_line OR live.status IS NULL AND fencing_state = 'UNFENCED'
                                AND (ill_since IS NOT NULL OR failure_state = 'UNREACHABLE' AND NOT is_silence_answered) THEN 1 END AS is_waiting,
                         CASE WHEN failure_state = 'UNREACHABLE' OR fencing_state = 'FENCED' OR ill_since IS NOT NULL
                                OR live.kind = 'fence' THEN 1 END AS is_out,
                         CASE WHEN failure_state = 'UNREACHABLE' AND failure_since > $2
                                OR fencing_state = 'FENCED' AND fenced_at > $2 OR ill_since > $2
                                OR live.kind = 'fence' AND live.created_at > $2 THEN 1 END AS is_lately
                     FROM hosts LEFT JOIN operations AS live ON live.host_id = hosts.id AND live.finished_at IS NULL
                     WHERE segment_id = $1 OR cloud = $3) AS around";
    let values = args![
        host.segment_id.0,
        since,
        host.cloud.clone(),
        host.id.0,
        host.failure_since,
        Permit::name_of_minute(host.segment_id, now)
    ];
    let Some(row) = fetch_optional(run, sql, values).await? else {
        return Ok(Neighbourhood::default());
    };
    Ok(Neighbourhood {
        hosts: row.count("hosts")?,
        out_of_service: row.count("out_of_service")?,
        lately: row.count("lately")?,
        in_cloud: row.count("in_cloud")?,
        out_of_service_in_cloud: row.count("out_of_service_in_cloud")?,
        under_way: row.count("under_way")?,
        before_it: row.count("before_it")?,
        begun: row.count("begun")?,
        not_quiet_since: None,
        groups: GroupCounts::default(),
        sights: Sights::default(),
    })
}

/// How the hosts stand of each group of the host that its segment has rules for.
pub async fn group_counts(
    run: &mut impl Run,
    host: &Host,
    policy: &FencingPolicy,
    now: Timestamp,
) -> Result<GroupCounts, DbError> {
    let mut by_name = BTreeMap::new();
    let mut begun = BTreeMap::new();
    for group in policy.groups(&host.labels) {
        // First: what has begun by then is counted among the hosts.
        for name in group.begun_as(now) {
            let sql = "SELECT count(*) AS taken FROM permits WHERE name = $1";
            let row = fetch_optional(run, sql, args![&name]).await?;
            let taken = row.map(|row| row.count("taken")).transpose()?;
            begun.insert(name, taken.unwrap_or_default());
        }
        by_name.insert(group.name(), group_count(run, host, group).await?);
    }
    Ok(GroupCounts {
        counted_at: Some(now),
        by_name,
        begun,
    })
}

async fn group_count(run: &mut impl Run, host: &Host, group: Group<'_>) -> Result<GroupCount, DbError> {
    let (label, value) = group.label().unwrap_or_default();
    let is_of_group = match group.label() {
        Some(_) => run.dialect().has_label(),
        None => "$1 = $2",
    };
    let sql = format!(
        "SELECT count(*) AS hosts,
             count(CASE WHEN hosts.id <> $3 AND (hosts.failure_state <> 'UP' OR hosts.fencing_state = 'FENCED' OR live.is_running = 1
                        OR CAST(hosts.applied_fencing AS text) LIKE '%\"fencing\"%') THEN 1 END) AS out,
             count(CASE WHEN hosts.id <> $3 AND live.is_running = 1 THEN 1 END) AS under_way,
             count(CASE WHEN hosts.id <> $3
                        AND (live.is_in_line OR hosts.segment_id = $5 AND live.is_running IS NULL AND hosts.fencing_state = 'UNFENCED'
                             AND (hosts.ill_since IS NOT NULL OR hosts.failure_state = 'UNREACHABLE' AND NOT hosts.is_silence_answered))
                        AND (hosts.failure_since < $4 OR hosts.failure_since = $4 AND hosts.id < $3) THEN 1 END) AS before_it
         FROM hosts
         LEFT JOIN (SELECT host_id, is_in_line, CASE WHEN kind = 'fence' AND status = 'running' THEN 1 ELSE 0 END AS is_running
                    FROM operations WHERE finished_at IS NULL) AS live ON live.host_id = hosts.id
         WHERE {is_of_group}"
    );
    // A host of another segment may never be fenced by itself: what waits there is in a line once it is held.
    let values = args![label, value, host.id.0, host.failure_since, host.segment_id.0];
    let Some(row) = fetch_optional(run, AssertSqlSafe(sql), values).await? else {
        return Ok(GroupCount::default());
    };
    Ok(GroupCount {
        hosts: row.count("hosts")?,
        out: row.count("out")?,
        under_way: row.count("under_way")?,
        before_it: row.count("before_it")?,
    })
}

/// How many hosts have each value of each label.
pub async fn label_values(run: &mut impl Run) -> Result<BTreeMap<String, BTreeMap<String, u64>>, DbError> {
    let sql = "SELECT CAST(labels AS text) AS labels, count(*) AS hosts FROM hosts GROUP BY labels";
    let mut all: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for row in fetch_all(run, sql, args![]).await? {
        let labels: Labels = row.document("labels")?;
        let hosts = row.count("hosts")?;
        for (name, value) in labels {
            *all.entry(name).or_default().entry(value).or_default() += hosts;
        }
    }
    Ok(all)
}

/// When the segment of the host changed last, if it has not been quiet for so many seconds since its storm brake held a fence.
pub async fn segment_not_quiet_since(
    run: &mut impl Run,
    host: &Host,
    quiet_s: u32,
    now: Timestamp,
) -> Result<Option<Timestamp>, DbError> {
    let sql = "SELECT max(braked_at) AS braked_at FROM hosts WHERE segment_id = $1";
    let row = fetch_optional(run, sql, args![host.segment_id.0]).await?;
    let Some(braked_at) = row.map(|row| row.opt_time("braked_at")).transpose()?.flatten() else {
        return Ok(None);
    };
    let sql = "SELECT occurred_at FROM events
               WHERE segment_id = $1 AND kind = 'host.failure_state' AND host_id <> $2 AND occurred_at > $3
               ORDER BY occurred_at DESC LIMIT $4";
    let rows = fetch_all(
        run,
        sql,
        args![host.segment_id.0, host.id.0, braked_at, MOST_CHANGES],
    )
    .await?;
    let changes: Result<Vec<Timestamp>, DbError> = rows.iter().map(|row| row.time("occurred_at")).collect();
    let changes = changes?;
    // Those that are left out may have come at any time between.
    let is_cut = changes.len() >= MOST_CHANGES as usize;
    let from = changes.last().copied().filter(|_| is_cut).unwrap_or(braked_at);
    Ok(not_quiet_since(from, &changes, quiet_s, now))
}

/// Changes of hosts that are looked at, the newest.
const MOST_CHANGES: u32 = 1_000;

/// Other hosts that are FENCED or being fenced, or from which a fence that has ended may have taken something, in whichever segment; at most `limit`.
pub async fn hosts_gone_beside(run: &mut impl Run, id: HostId, limit: u32) -> Result<Vec<Host>, DbError> {
    let sql = concat!(
        "SELECT ",
        hosts::columns!(),
        " FROM hosts WHERE id <> $1
             AND (fencing_state = 'FENCED' OR CAST(applied_fencing AS text) LIKE '%\"fencing\"%'
                  OR EXISTS (SELECT 1 FROM operations WHERE host_id = hosts.id AND finished_at IS NULL AND kind = 'fence' AND status = 'running'))
         ORDER BY name LIMIT $2"
    );
    let rows = fetch_all(run, sql, args![id.0, limit]).await?;
    rows.iter().map(hosts::read).collect()
}
