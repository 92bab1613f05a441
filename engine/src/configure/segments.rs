//! Adding, changing and removing segments.

use ringfence_core::{
    DEFAULT_SEGMENT_ID, FencingPolicy, FieldChange, Method, Problems, Resource, Segment, SegmentDraft,
    SegmentId, SegmentPolicy, check_groups,
};
use ringfence_db::{DbError, Filters};
use serde_json::{Value, json};

use super::{check_revision, require_written};
use crate::idempotency::leave_receipt;
use crate::ids::new_id;
use crate::{Context, Engine, EngineError, Receipt};

/// The driver that can tell what a fence would cost.
const CEPH: &str = "ceph";

impl Engine {
    /// Adds a segment.
    pub async fn create_segment(&self, draft: SegmentDraft, by: &Context) -> Result<Segment, EngineError> {
        self.check_segment(&draft, &draft.name).await?;
        let now = self.0.clock.now();
        let segment = Segment {
            id: SegmentId(new_id()),
            name: draft.name,
            description: draft.description,
            policy: draft.policy,
            revision: 1,
            created_at: now,
            updated_at: now,
        };
        self.add_segment(&segment, by).await?;
        Ok(segment)
    }

    /// Makes the default segment if it is not there yet; called at every start.
    pub async fn ensure_default_segment(&self) -> Result<(), EngineError> {
        if ringfence_db::segment(&mut self.0.db.reader(), &DEFAULT_SEGMENT_ID.to_string())
            .await?
            .is_some()
        {
            return Ok(());
        }
        let now = self.0.clock.now();
        let segment = Segment {
            id: DEFAULT_SEGMENT_ID,
            name: "default".to_owned(),
            description: "Hosts that name no other segment".to_owned(),
            policy: SegmentPolicy::default(),
            revision: 1,
            created_at: now,
            updated_at: now,
        };
        match self.add_segment(&segment, &Context::own("ringfence")).await {
            // Another service was a moment faster.
            Ok(()) | Err(EngineError::Duplicate(_)) => Ok(()),
            Err(other) => Err(other),
        }
    }

    /// Refuses values that are out of range, and methods that the segment names and that are not there or cannot do what it wants of them. Rules for groups that the segment of
    /// this id or name has already stay, whatever has become of the hosts.
    pub async fn check_segment(&self, draft: &SegmentDraft, id: &str) -> Result<(), EngineError> {
        draft.validate()?;
        let SegmentPolicy {
            fencing: FencingPolicy { ceph, queries, .. },
            heartbeats,
            ..
        } = &draft.policy;
        let mut problems = Problems::default();
        for (at, name) in ceph.iter().enumerate() {
            let wrong =
                |method: &Method| (method.driver != CEPH).then(|| format!("its driver is {}", method.driver));
            if let Some(why) = self.wrong_method(name, wrong).await? {
                let allowed = format!("the name of a method of driver {CEPH} is allowed");
                problems.add(
                    format!("policy.fencing.ceph[{at}]"),
                    format!("is {name:?}, and {why}; {allowed}"),
                );
            }
        }
        let of_queries = ("policy.fencing.queries", queries, Resource::Query);
        let of_heartbeats = ("policy.heartbeats", heartbeats, Resource::Heartbeat);
        for (list, names, wanted) in [of_queries, of_heartbeats] {
            for (at, name) in names.iter().enumerate() {
                let wrong = |method: &Method| {
                    let resource = method.resource;
                    (resource != wanted).then(|| format!("its resource is {resource}"))
                };
                if let Some(why) = self.wrong_method(name, wrong).await? {
                    let allowed = format!("the name of a method of resource {wanted} is allowed");
                    problems.add(
                        format!("{list}[{at}]"),
                        format!("is {name:?}, and {why}; {allowed}"),
                    );
                }
            }
        }
        let groups = &draft.policy.fencing.groups;
        if !groups.is_empty() {
            let mut reader = self.0.db.reader();
            let present = ringfence_db::segment(&mut reader, id).await?;
            let present = present.map(|segment| segment.policy.fencing.groups);
            let labels = ringfence_db::label_values(&mut reader).await?;
            let hosts = ringfence_db::count_hosts(&mut reader, &Filters::default()).await?;
            let known = (hosts, &labels);
            check_groups(groups, &present.unwrap_or_default(), known, &mut problems);
        }
        Ok(problems.into_result()?)
    }

    /// Why a segment cannot name the method.
    async fn wrong_method(
        &self,
        name: &str,
        wrong: impl FnOnce(&Method) -> Option<String>,
    ) -> Result<Option<String>, EngineError> {
        let known = ringfence_db::method(&mut self.0.db.reader(), name).await?;
        Ok(known.map_or_else(
            || Some("no method has this name".to_owned()),
            |method| wrong(&method),
        ))
    }

    async fn add_segment(&self, segment: &Segment, by: &Context) -> Result<(), EngineError> {
        let mut tx = self.0.db.begin().await?;
        ringfence_db::insert_segment(&mut tx, segment)
            .await
            .map_err(|e| taken(e, &segment.name))?;
        leave_receipt(&mut tx, by, Receipt::Segment(segment.id)).await?;
        let detail = version(segment, Vec::new());
        self.commit(tx, "segment.created", &segment.name, detail, by)
            .await
    }

    /// Puts a segment in the place of one. Live operations keep the policy that they began with.
    pub async fn update_segment(
        &self,
        id: &str,
        draft: SegmentDraft,
        revision: Option<u64>,
        by: &Context,
    ) -> Result<Segment, EngineError> {
        self.check_segment(&draft, id).await?;
        let known = self.segment_or_default(Some(id)).await?;
        check_revision(revision, known.revision)?;
        let changes = SegmentDraft::from(known.clone()).changes(&draft);
        let segment = Segment {
            name: draft.name,
            description: draft.description,
            policy: draft.policy,
            revision: known.revision + 1,
            updated_at: self.0.clock.now(),
            ..known
        };
        let mut tx = self.0.db.begin().await?;
        let is_written = ringfence_db::update_segment(&mut tx, &segment, known.revision)
            .await
            .map_err(|e| taken(e, &segment.name))?;
        require_written(is_written, known.revision)?;
        ringfence_db::wake_hosts(&mut tx, Some(segment.id), segment.updated_at).await?;
        let detail = version(&segment, changes);
        self.commit(tx, "segment.updated", &segment.name, detail, by)
            .await?;
        Ok(segment)
    }

    /// Removes a segment that has no hosts.
    pub async fn delete_segment(
        &self,
        id: &str,
        revision: Option<u64>,
        by: &Context,
    ) -> Result<(), EngineError> {
        let known = self.segment_or_default(Some(id)).await?;
        check_revision(revision, known.revision)?;
        let in_use = || EngineError::InUse(format!("segment {:?} has hosts", known.name));
        if known.id == DEFAULT_SEGMENT_ID {
            return Err(EngineError::InUse(
                "the default segment cannot be removed".to_owned(),
            ));
        }
        let mut tx = self.0.db.begin().await?;
        if ringfence_db::segment_has_hosts(&mut tx, known.id).await? {
            return Err(in_use());
        }
        ringfence_db::delete_segment(&mut tx, known.id)
            .await
            .map_err(|e| match e {
                DbError::Constraint { .. } => in_use(),
                other => EngineError::Db(other),
            })?;
        let detail = version(&known, Vec::new());
        self.commit(tx, "segment.deleted", &known.name, detail, by).await
    }

    pub(crate) async fn segment_or_default(&self, id: Option<&str>) -> Result<Segment, EngineError> {
        let wanted = id.map_or_else(|| DEFAULT_SEGMENT_ID.to_string(), ToOwned::to_owned);
        ringfence_db::segment(&mut self.0.db.reader(), &wanted)
            .await?
            .ok_or_else(|| EngineError::not_found("segment", wanted))
    }
}

/// A version of a segment, as the audit trail keeps it: the whole of it, since retention may have removed the lines before, and what is new.
fn version(segment: &Segment, changes: Vec<FieldChange>) -> Value {
    let changes = Some(changes).filter(|changes| !changes.is_empty());
    json!({
        "segment_id": segment.id,
        "revision": segment.revision,
        "segment": SegmentDraft::from(segment.clone()).whole(),
        "changes": changes,
    })
}

fn taken(error: DbError, name: &str) -> EngineError {
    EngineError::or_duplicate(error, || format!("there is a segment named {name:?} already"))
}
