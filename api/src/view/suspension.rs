//! Suspensions.

use chrono::{DateTime, Utc};
use ringfence_core::Suspension;
use ringfence_db::{Suspended, SuspendedOne};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

/// Until when nothing begins by itself, and why.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SuspensionView {
    /// What was asked for after that is not held by it.
    pub since: DateTime<Utc>,
    /// When it ends by itself; null: a person has to end it.
    pub until: Option<DateTime<Utc>>,
    /// Who asked for it.
    pub by: String,
    pub reason: String,
}

/// A host or a segment that is suspended.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SuspendedOneView {
    pub id: Uuid,
    pub name: String,
    pub suspension: SuspensionView,
}

/// All that is suspended; up to 1000 segments and 1000 hosts.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SuspendedView {
    /// The suspension of all hosts; null where there is none.
    pub everything: Option<SuspensionView>,
    /// Segments, by name.
    pub segments: Vec<SuspendedOneView>,
    /// Hosts that are suspended themselves, by name.
    pub hosts: Vec<SuspendedOneView>,
}

impl From<Suspension> for SuspensionView {
    fn from(suspension: Suspension) -> Self {
        let Suspension {
            since,
            until,
            by,
            reason,
        } = suspension;
        Self {
            since,
            until,
            by,
            reason,
        }
    }
}

impl From<SuspendedOne> for SuspendedOneView {
    fn from(one: SuspendedOne) -> Self {
        Self {
            id: one.id,
            name: one.name,
            suspension: one.suspension.into(),
        }
    }
}

impl From<Suspended> for SuspendedView {
    fn from(all: Suspended) -> Self {
        let view = |all: Vec<SuspendedOne>| all.into_iter().map(SuspendedOneView::from).collect();
        Self {
            everything: all.everything.map(SuspensionView::from),
            segments: view(all.segments),
            hosts: view(all.hosts),
        }
    }
}
