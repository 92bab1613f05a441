//! Checks whether a cloud allows the calls of a driver that uses its services, before they are needed and without changing anything.

use super::{CINDER, Cloud, IRONIC, NEUTRON, faults};
use crate::BackendError;

/// No object has this id. A service checks the caller's rights before it looks for the object, so that a call on this id shows missing
/// rights.
pub(super) const NO_SUCH_ID: &str = "00000000-0000-0000-0000-000000000000";
/// The role by which Cinder knows a service's token, unless its `service_token_roles` name another.
const SERVICE_ROLE: &str = "service";

/// A call, in words, and the error.
pub type FailedCall = (&'static str, BackendError);

impl Cloud {
    /// Makes the calls that this driver needs, as far as they change nothing, and returns the calls that failed. A driver that uses no
    /// service of a cloud makes no call.
    pub async fn failing_calls_of(&self, driver: &str) -> Vec<FailedCall> {
        match driver {
            CINDER => self.failing_calls_of_cinder().await,
            NEUTRON => self.failing_calls_of_neutron().await,
            IRONIC => self.failing_calls_of_ironic().await,
            _ => Vec::new(),
        }
    }

    /// Whether the token has the role of a service.
    pub(super) async fn has_service_role(&self) -> Result<(), BackendError> {
        let roles = self.roles().await?;
        if roles.iter().any(|role| role == SERVICE_ROLE) {
            return Ok(());
        }
        Err(BackendError::Denied {
            platform: faults::label(self.name()),
            service: CINDER,
            why: format!(
                "the role {SERVICE_ROLE} is needed beside admin, and the entry's user has {}",
                roles.join(", ")
            ),
        })
    }
}

/// Only the calls that failed.
pub(super) fn failed(
    calls: impl IntoIterator<Item = (&'static str, Result<(), BackendError>)>,
) -> Vec<FailedCall> {
    let failed = calls
        .into_iter()
        .filter_map(|(what, done)| done.err().map(|why| (what, why)));
    failed.collect()
}
