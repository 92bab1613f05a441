//! Why something is to be done, which most that is asked for has to say.

use serde::Deserialize;
use utoipa::ToSchema;

/// Why.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReasonBody {
    /// 1 to 255 characters of plain text; goes into the audit trail.
    #[schema(
        min_length = 1,
        max_length = 255,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$"
    )]
    pub reason: String,
}
