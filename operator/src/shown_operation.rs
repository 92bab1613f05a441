//! An operation, as objects show it.

use ringfence_core::Operation;
use serde::{Deserialize, Serialize};

use crate::text::{MESSAGE, cut, unless_empty};

/// An operation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ShownOperation {
    pub id: String,
    pub kind: String,
    pub status: String,
    /// `null` removes it in a merge.
    pub detail: Option<String>,
    pub requested_by: String,
}

impl ShownOperation {
    pub fn of(operation: &Operation) -> Self {
        Self {
            id: operation.id.to_string(),
            kind: operation.kind().to_string(),
            status: operation.status.to_string(),
            detail: unless_empty(&operation.detail),
            requested_by: cut(&operation.requested_by, MESSAGE),
        }
    }
}
