//! Whether a `NodeFence` wants a host to stay fenced.

use ringfence_core::Host;

use super::object::{api, is_deleted, is_own};
use crate::OperatorError;
use crate::door::Door;

/// Whether one that was made by hand wants the host fenced.
pub(crate) async fn wants_fenced(door: &Door, host: &Host) -> Result<bool, OperatorError> {
    if host.cloud.as_deref() != Some(&door.cluster) {
        return Ok(false);
    }
    let node = host.known_as.as_deref().unwrap_or(&host.name);
    let object = door.call(api(&door.client).get_opt(node)).await?;
    let stands = object.filter(|object| !is_deleted(object) && !is_own(object));
    Ok(stands.is_some_and(|object| !object.spec.suspend))
}
