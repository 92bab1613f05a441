//! Whether another remediation wants a host to stay fenced.

use kube::api::ListParams;
use ringfence_core::HostId;

use super::object::{all, is_timed_out};
use super::serving::find;
use crate::OperatorError;
use crate::door::Door;

/// Remediations that are looked through. There is one for each node that is unwell.
const MOST: u32 = 500;

/// Whether a remediation, other than the one with this uid, wants the host fenced.
pub(crate) async fn wants_fenced(
    door: &Door,
    host: HostId,
    except: Option<&str>,
) -> Result<bool, OperatorError> {
    let list = match door
        .call(all(&door.client).list(&ListParams::default().limit(MOST)))
        .await
    {
        Ok(list) => list,
        // Remediations are not defined in this cluster.
        Err(error) if error.is_not_found() => return Ok(false),
        Err(error) => return Err(error),
    };
    for object in list.items {
        let of = &object.metadata;
        let stands = of.deletion_timestamp.is_none() && !is_timed_out(of);
        if !stands || of.uid.as_deref() == except {
            continue;
        }
        let namespace = of.namespace.as_deref().unwrap_or_default();
        if find(door, namespace, of).await?.host_id() == Some(host) {
            return Ok(true);
        }
    }
    Ok(false)
}
