//! Suspending hosts, segments and everything, and ending that.

use chrono::TimeDelta;
use ringfence_core::{
    HostState, Input, Problems, Suspension, Timestamp, validate_reason, validate_suspension_end,
};
use ringfence_db::{Suspended, SuspendedOne, Tx};
use serde_json::json;

use crate::{Context, Engine, EngineError};

/// How the trail names what is about all hosts.
const EVERYTHING: &str = "everything";

/// What a person asks for who suspends something.
#[derive(Clone, Copy, Debug)]
pub struct SuspensionDraft<'a> {
    /// When it ends.
    pub end: SuspensionEnd,
    /// Why.
    pub reason: &'a str,
}

/// When a suspension ends.
#[derive(Clone, Copy, Debug)]
pub enum SuspensionEnd {
    /// By itself, at this moment.
    At(Timestamp),
    /// By itself, after so many seconds.
    After(u32),
    /// When a person ends it; for admins alone.
    ByHand,
}

impl Engine {
    /// What is suspended now; at most so many segments and so many hosts.
    pub async fn suspended(&self, limit: u32) -> Result<Suspended, EngineError> {
        let now = self.0.clock.now();
        let mut all = ringfence_db::suspensions(&mut self.0.db.reader(), limit).await?;
        all.everything = all.everything.filter(|suspension| suspension.is_in_force(now));
        all.segments.retain(|one| one.suspension.is_in_force(now));
        all.hosts.retain(|one| one.suspension.is_in_force(now));
        Ok(all)
    }

    /// Suspends a host.
    pub async fn suspend_host(
        &self,
        host: &str,
        draft: SuspensionDraft<'_>,
        by: &Context,
    ) -> Result<HostState, EngineError> {
        let Suspension { until, reason, .. } = self.suspension(draft, by)?;
        let id = self.host_id_of(host).await?;
        let input = Input::Suspend {
            until,
            reason,
            actor: by.actor(),
        };
        Ok(self.apply(id, input, by).await?.state)
    }

    /// Ends the suspension of a host.
    pub async fn resume_host(
        &self,
        host: &str,
        reason: &str,
        by: &Context,
    ) -> Result<HostState, EngineError> {
        validate_reason(reason)?;
        let id = self.host_id_of(host).await?;
        let input = Input::Resume {
            reason: reason.to_owned(),
            actor: by.actor(),
        };
        let state = self.apply(id, input, by).await?.state;
        self.fence_if_due(&state).await;
        Ok(state)
    }

    /// Suspends the hosts of a segment.
    pub async fn suspend_segment(
        &self,
        segment: &str,
        draft: SuspensionDraft<'_>,
        by: &Context,
    ) -> Result<SuspendedOne, EngineError> {
        self.require_kept()?;
        let suspension = self.suspension(draft, by)?;
        let segment = self.segment_or_default(Some(segment)).await?;
        let mut tx = self.0.db.begin().await?;
        ringfence_db::set_segment_suspension(&mut tx, segment.id, Some(&suspension)).await?;
        ringfence_db::wake_hosts(&mut tx, Some(segment.id), suspension.since).await?;
        let detail = json!(suspension);
        self.commit_suspension(tx, "segment.suspended", &segment.name, detail, by)
            .await?;
        Ok(SuspendedOne {
            id: segment.id.0,
            name: segment.name,
            suspension,
        })
    }

    /// Ends the suspension of a segment.
    pub async fn resume_segment(&self, segment: &str, reason: &str, by: &Context) -> Result<(), EngineError> {
        validate_reason(reason)?;
        let segment = self.segment_or_default(Some(segment)).await?;
        let mut tx = self.0.db.begin().await?;
        if !ringfence_db::set_segment_suspension(&mut tx, segment.id, None).await? {
            return Ok(());
        }
        ringfence_db::wake_hosts(&mut tx, Some(segment.id), self.0.clock.now()).await?;
        let detail = json!({ "reason": reason });
        self.commit_suspension(tx, "segment.resumed", &segment.name, detail, by)
            .await
    }

    /// Suspends all hosts.
    pub async fn suspend_everything(
        &self,
        draft: SuspensionDraft<'_>,
        by: &Context,
    ) -> Result<Suspension, EngineError> {
        self.require_kept()?;
        let suspension = self.suspension(draft, by)?;
        let mut tx = self.0.db.begin().await?;
        ringfence_db::set_suspension_of_all(&mut tx, Some(&suspension)).await?;
        ringfence_db::wake_hosts(&mut tx, None, suspension.since).await?;
        let detail = json!(suspension);
        self.commit_suspension(tx, "everything.suspended", EVERYTHING, detail, by)
            .await?;
        Ok(suspension)
    }

    /// Ends the suspension of all hosts.
    pub async fn resume_everything(&self, reason: &str, by: &Context) -> Result<(), EngineError> {
        validate_reason(reason)?;
        let mut tx = self.0.db.begin().await?;
        if !ringfence_db::set_suspension_of_all(&mut tx, None).await? {
            return Ok(());
        }
        ringfence_db::wake_hosts(&mut tx, None, self.0.clock.now()).await?;
        let detail = json!({ "reason": reason });
        self.commit_suspension(tx, "everything.resumed", EVERYTHING, detail, by)
            .await
    }

    /// Where a cluster keeps the records, it keeps those of hosts alone: another suspension would end with this process.
    fn require_kept(&self) -> Result<(), Problems> {
        let mut problems = Problems::default();
        if let Some(book) = &self.0.records {
            let platform = book.platform();
            problems.add(
                "suspension",
                format!("this Ringfence keeps its records in cluster {platform}, which has records of hosts alone; suspend its hosts one by one"),
            );
        }
        problems.into_result()
    }

    fn suspension(&self, draft: SuspensionDraft<'_>, by: &Context) -> Result<Suspension, EngineError> {
        let since = self.0.clock.now();
        let until = match draft.end {
            SuspensionEnd::At(until) => Some(until),
            SuspensionEnd::After(seconds) => Some(since + TimeDelta::seconds(i64::from(seconds))),
            SuspensionEnd::ByHand => None,
        };
        let mut problems = Problems::default();
        if let Err(found) = validate_reason(draft.reason) {
            problems.0.extend(found.0);
        }
        if let Err(problem) = validate_suspension_end(until, by.is_admin, since) {
            problems.0.push(problem);
        }
        problems.into_result()?;
        Ok(Suspension {
            since,
            until,
            by: by.actor.clone(),
            reason: draft.reason.to_owned(),
        })
    }

    async fn commit_suspension(
        &self,
        tx: Tx,
        action: &'static str,
        target: &str,
        detail: serde_json::Value,
        by: &Context,
    ) -> Result<(), EngineError> {
        tracing::info!(target, by = by.actor, %detail, "{action}");
        self.commit(tx, action, target, detail, by).await
    }
}
