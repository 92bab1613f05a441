//! Roles of callers.

use utoipa::ToSchema;

/// What a caller may do. Each role may do what those before it may.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ToSchema, strum::IntoStaticStr, strum::VariantArray,
)]
#[strum(serialize_all = "snake_case")]
#[schema(rename_all = "snake_case")]
pub enum Role {
    /// Reads.
    Reader,
    /// Another program: fences, confirms, rejoins, reports.
    Service,
    /// A person: fences, confirms, rejoins, reports.
    Operator,
    /// Configures, and overrides.
    Admin,
}

ringfence_core::words!(Role);
