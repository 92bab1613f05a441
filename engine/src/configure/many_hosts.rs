//! Adding many hosts at once.

use std::collections::{HashMap, HashSet};

use ringfence_core::{EventKind, Host, Segment, SegmentId};
use ringfence_db::Tx;

use super::HostDraft;
use super::hosts::{created, event, line, twice};
use crate::idempotency::leave_receipt;
use crate::{Context, Engine, EngineError, Receipt};

/// A host that is added, or why it is not.
type Added = Result<Host, EngineError>;

impl Engine {
    /// Adds hosts as [`Engine::create_host`] does, all of them in one transaction. One that is refused keeps no other from being added.
    ///
    /// # Errors
    /// No host was added: the database is not there, or the key of the request was used.
    pub async fn create_hosts(
        &self,
        drafts: Vec<HostDraft>,
        by: &Context,
    ) -> Result<Vec<Added>, EngineError> {
        let segments = self.segments_of(&drafts).await?;
        let now = self.0.clock.now();
        let mut unique = Unique::default();
        let host = |draft: HostDraft| {
            let segment = segments[&draft.segment].as_ref();
            let segment = segment.ok_or_else(|| {
                EngineError::not_found("segment", draft.segment.as_deref().unwrap_or_default())
            })?;
            unique.add(draft.host(segment, now)?)
        };
        let mut hosts: Vec<Added> = drafts.into_iter().map(host).collect();
        let mut tx = self.0.db.begin().await?;
        insert(&mut tx, &mut hosts).await?;
        let added: Vec<&Host> = hosts.iter().flatten().collect();
        if added.is_empty() {
            return Ok(hosts);
        }
        record(&mut tx, &added, segments.values().flatten(), by).await?;
        let ids = added.iter().map(|host| host.id).collect();
        leave_receipt(&mut tx, by, Receipt::Hosts(ids)).await?;
        tx.commit().await?;
        self.events_written();
        Ok(hosts)
    }

    /// The segments that are named; `None` for one that is not there.
    async fn segments_of(
        &self,
        drafts: &[HostDraft],
    ) -> Result<HashMap<Option<String>, Option<Segment>>, EngineError> {
        let mut found = HashMap::new();
        for draft in drafts {
            if found.contains_key(&draft.segment) {
                continue;
            }
            let segment = match self.segment_or_default(draft.segment.as_deref()).await {
                Ok(segment) => Some(segment),
                Err(EngineError::NotFound { .. }) => None,
                Err(error) => return Err(error),
            };
            found.insert(draft.segment.clone(), segment);
        }
        Ok(found)
    }
}

/// The hosts of one request: what only one host may have goes to the first.
#[derive(Default)]
struct Unique {
    names: HashSet<String>,
    in_clouds: HashSet<(String, String)>,
}

impl Unique {
    fn add(&mut self, host: Host) -> Added {
        if self.names.contains(&host.name) {
            return Err(EngineError::Duplicate(twice(&host, false)));
        }
        let in_cloud = host
            .cloud
            .clone()
            .map(|cloud| (cloud, host.known_as().to_owned()));
        if in_cloud.is_some_and(|in_cloud| !self.in_clouds.insert(in_cloud)) {
            return Err(EngineError::Duplicate(twice(&host, true)));
        }
        self.names.insert(host.name.clone());
        Ok(host)
    }
}

/// Adds those that can be, and says of the others that they are there already.
async fn insert(tx: &mut Tx, hosts: &mut [Added]) -> Result<(), EngineError> {
    let new: Vec<&Host> = hosts.iter().flatten().collect();
    let added = ringfence_db::insert_hosts(tx, &new).await?;
    let others = new.into_iter().filter(|host| !added.contains(&host.id));
    let names = others.map(|host| host.name.clone()).collect();
    let names = ringfence_db::host_ids(tx, names).await?;
    for entry in hosts {
        if let Ok(host) = entry
            && !added.contains(&host.id)
        {
            *entry = Err(EngineError::Duplicate(twice(
                host,
                !names.contains_key(&host.name),
            )));
        }
    }
    Ok(())
}

async fn record(
    tx: &mut Tx,
    added: &[&Host],
    segments: impl Iterator<Item = &Segment>,
    by: &Context,
) -> Result<(), EngineError> {
    let segments: HashMap<SegmentId, &str> = segments.map(|s| (s.id, s.name.as_str())).collect();
    let kind = EventKind::HostCreated;
    let (mut events, mut lines) = (Vec::with_capacity(added.len()), Vec::with_capacity(added.len()));
    for host in added {
        let data = created(host, segments[&host.segment_id]);
        events.push(event(host, kind, data.clone()));
        lines.push(line(host, kind, data, by));
    }
    ringfence_db::append_events(tx, &events).await?;
    Ok(ringfence_db::append_audit_lines(tx, &lines).await?)
}
