//! A copy of what another Ringfence has, put into an empty database: for simulations. What was checked there is not checked again.

use std::collections::BTreeMap;

use ringfence_core::{
    Host, HostState, Method, Plan, Record, Restored, Segment, SegmentId, SegmentPolicy, Suspension,
};
use ringfence_db::{Begun, Changes, Ended, HostWrite, Locking};

use crate::checks::note_sharing;
use crate::{Engine, EngineError};

/// What is copied.
#[derive(Clone, Debug, Default)]
pub struct SiteCopy {
    /// Segments.
    pub segments: Vec<Segment>,
    /// Methods.
    pub methods: Vec<Method>,
    /// Plans.
    pub plans: Vec<Plan>,
    /// Hosts, each without a live operation.
    pub hosts: Vec<Host>,
    /// Suspensions of segments.
    pub suspensions: BTreeMap<SegmentId, Suspension>,
    /// The suspension of all hosts.
    pub everything: Option<Suspension>,
}

impl Engine {
    /// Puts the copy into the database, which has to be empty. Until [`Engine::put_policies`] nothing begins by itself in its segments.
    ///
    /// # Errors
    /// The database cannot be written, or two things of the copy have one name.
    pub async fn put_copy(&self, copy: &SiteCopy) -> Result<(), EngineError> {
        let mut tx = self.0.db.begin().await?;
        for segment in &copy.segments {
            let idle = Segment {
                policy: SegmentPolicy {
                    // What hosts are known to have of these is taken down.
                    conditions: segment.policy.conditions.clone(),
                    ..SegmentPolicy::default()
                },
                ..segment.clone()
            };
            ringfence_db::insert_segment(&mut tx, &idle).await?;
        }
        for method in &copy.methods {
            ringfence_db::insert_method(&mut tx, method).await?;
        }
        for plan in &copy.plans {
            ringfence_db::insert_plan(&mut tx, plan).await?;
        }
        for host in &copy.hosts {
            ringfence_db::insert_host(&mut tx, host).await?;
        }
        tx.commit().await?;
        let has_more =
            |host: &&Host| host.fence.is_some() || host.suspension.is_some() || !host.flapping.is_none();
        for host in copy.hosts.iter().filter(has_more) {
            self.put_host(host).await?;
        }
        // Devices that two hosts share keep both from being fenced.
        note_sharing(self).await
    }

    /// What is not written of a host that is new.
    async fn put_host(&self, host: &Host) -> Result<(), EngineError> {
        let Begun {
            hosts, transaction, ..
        } = self
            .0
            .db
            .begin_with_hosts(&[host.id], Locking::Pessimistic)
            .await?;
        let known = hosts.into_iter().next();
        let known = known.ok_or_else(|| EngineError::not_found("host", host.id))?;
        let proven_by = host.fence.as_ref().and_then(|_| {
            let state = HostState {
                host: host.clone(),
                ..known.clone()
            };
            let record = Record::of(&state)?;
            let Restored { proven_by, .. } = record.restore(state, host.updated_at);
            proven_by
        });
        let proofs = proven_by.iter().flat_map(|operation| &operation.proofs);
        let changes = Changes {
            proofs: proofs.map(|proof| (host.id, proof)).collect(),
            new_operations: proven_by.iter().collect(),
            hosts: vec![HostWrite {
                host,
                known: Some(&known.host),
                wake_at: None,
            }],
            ..Changes::default()
        };
        match transaction.commit(&changes).await? {
            Ended::Committed { .. } => Ok(()),
            Ended::HostsChanged | Ended::Refused(_) => Err(EngineError::Interrupted),
        }
    }

    /// Gives the segments of the copy their policies, and the suspensions begin.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn put_policies(&self, copy: &SiteCopy) -> Result<(), EngineError> {
        let now = self.0.clock.now();
        let mut tx = self.0.db.begin().await?;
        for segment in &copy.segments {
            ringfence_db::update_segment(&mut tx, segment, segment.revision).await?;
        }
        for (segment, suspension) in &copy.suspensions {
            ringfence_db::set_segment_suspension(&mut tx, *segment, Some(suspension)).await?;
        }
        ringfence_db::set_suspension_of_all(&mut tx, copy.everything.as_ref()).await?;
        ringfence_db::wake_hosts(&mut tx, None, now).await?;
        tx.commit().await?;
        Ok(())
    }
}
