//! Which OSDs serve an object, and whether they have done so without a break: what Ceph calls an interval of a placement group.

use ringfence_core::OsdId;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::{Seen, printed};
use crate::WorkerError;
use crate::drivers::ceph::program::Ceph;

/// Where an object is, by the map of this number.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Placed {
    epoch: u64,
    pool_id: u64,
    pgid: String,
    up: Vec<OsdId>,
    up_primary: OsdId,
    acting: Vec<OsdId>,
    acting_primary: OsdId,
}

/// What begins anew when an OSD may have begun to count anew. While it is equal, none has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    group: String,
    up: (OsdId, Vec<OsdId>),
    acting: (OsdId, Vec<OsdId>),
    /// Since which map each of them has been up.
    up_from: Vec<(OsdId, u64)>,
    /// A pool that is split, and one whose copies are counted otherwise, begins anew, too.
    pool: Option<Pool>,
    /// Whether objects that miss a copy get it back.
    pub recovers: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Pool {
    pool: u64,
    size: u32,
    min_size: u32,
    pg_num: u32,
}

#[derive(Deserialize)]
struct OsdMap {
    flags_set: Vec<String>,
    pools: Vec<Pool>,
    osds: Vec<Osd>,
}

#[derive(Deserialize)]
struct Osd {
    osd: OsdId,
    up_from: u64,
}

impl Interval {
    /// The OSDs, for people.
    pub fn osds(&self) -> String {
        let names: Vec<_> = self.acting.1.iter().map(|osd| format!("osd.{osd}")).collect();
        names.join(", ")
    }

    fn new(placed: &Placed, map: OsdMap) -> Self {
        let serves = |osd: &&Osd| placed.up.contains(&osd.osd) || placed.acting.contains(&osd.osd);
        Self {
            group: placed.pgid.clone(),
            up: (placed.up_primary, placed.up.clone()),
            acting: (placed.acting_primary, placed.acting.clone()),
            up_from: map
                .osds
                .iter()
                .filter(serves)
                .map(|osd| (osd.osd, osd.up_from))
                .collect(),
            pool: map.pools.into_iter().find(|pool| pool.pool == placed.pool_id),
            recovers: !map.flags_set.iter().any(|flag| flag == "norecover"),
        }
    }
}

/// Where the object is, and in which interval. The map is long, and is read only where it is another one than before.
pub(super) async fn interval(
    ceph: &Ceph<'_>,
    pool: &str,
    object: &str,
    before: Option<&Seen>,
    until: Instant,
) -> Result<(Placed, Interval), WorkerError> {
    let placed: Placed = ask(ceph, &["osd", "map", pool, object], until).await?;
    if let Some(before) = before.filter(|before| before.placed == placed) {
        return Ok((placed, before.interval.clone()));
    }
    let map: OsdMap = ask(ceph, &["osd", "dump"], until).await?;
    let interval = Interval::new(&placed, map);
    Ok((placed, interval))
}

async fn ask<T: DeserializeOwned>(
    ceph: &Ceph<'_>,
    command: &[&str],
    until: Instant,
) -> Result<T, WorkerError> {
    let arguments = [command, &["--format", "json"]].concat();
    let told = printed("ceph", ceph.run(&arguments, until).await)?;
    serde_json::from_str(&told).map_err(|error| {
        WorkerError::unclear(format!(
            "what ceph {} tells cannot be read: {error}",
            command.join(" ")
        ))
    })
}
