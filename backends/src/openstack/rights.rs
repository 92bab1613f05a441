//! Whether a cloud lets us do what a driver of its services needs, tried before it is needed and without changing anything.

use super::{CINDER, Cloud, IRONIC, NEUTRON};
use crate::BackendError;

/// The id of nothing. Who may not do something with it is told so before anybody looks whether there is such a thing.
pub(super) const NOBODY: &str = "00000000-0000-0000-0000-000000000000";
/// By whose tokens Cinder knows a service, unless its `service_token_roles` name another.
const SERVICE_ROLE: &str = "service";

/// A call, in words, and why it failed.
pub type FailedCall = (&'static str, BackendError);

impl Cloud {
    /// Makes the calls that this driver needs, as far as they can be made without changing anything, and gives those that failed.
    /// Drivers that need nothing of a cloud need no call.
    pub async fn failing_calls_of(&self, driver: &str) -> Vec<FailedCall> {
        match driver {
            CINDER => self.failing_calls_of_cinder().await,
            NEUTRON => self.failing_calls_of_neutron().await,
            IRONIC => self.failing_calls_of_ironic().await,
            _ => Vec::new(),
        }
    }

    /// Whether our token is a service's.
    pub(super) async fn has_service_role(&self) -> Result<(), BackendError> {
        let roles = self.roles().await?;
        if roles.iter().any(|role| role == SERVICE_ROLE) {
            return Ok(());
        }
        Err(BackendError::Denied {
            cloud: self.name().to_owned(),
            service: CINDER,
            why: format!(
                "the role {SERVICE_ROLE} is needed beside admin, and the entry's user has {}",
                roles.join(", ")
            ),
        })
    }
}

/// Calls that were made, without those that went well.
pub(super) fn failed(
    calls: impl IntoIterator<Item = (&'static str, Result<(), BackendError>)>,
) -> Vec<FailedCall> {
    let failed = calls
        .into_iter()
        .filter_map(|(what, done)| done.err().map(|why| (what, why)));
    failed.collect()
}
