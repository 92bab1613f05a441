//! Marks that other programs have changed, since some write the whole list of taints, as they saw it some time ago: those that are gone from
//! a node which is kept isolated, and those that are back on a node which was released.

use std::time::Duration;

use ringfence_core::Movable;

use super::marks::{hold, put_back as put_in_service, release, take_out};
use super::node::{Marks, NodeOf};
use crate::kubernetes::Cluster;
use crate::kubernetes::objects::NodeObject;
use crate::kubernetes::sightings::SeenMarks;
use crate::{BackendError, KeptHost, TimeGiven};

/// Puts marks back, or takes them away. A node that has changed since the last look is left to the next: a step may have released it, or begun
/// to isolate it.
pub(in crate::kubernetes) async fn keep(
    cluster: &Cluster,
    hosts: &[KeptHost<'_>],
) -> Result<(), BackendError> {
    let looked = cluster.watching().await?.looked();
    for host in hosts {
        let Some(seen) = looked.marks.get(host.host) else {
            continue;
        };
        if host.is_isolated && lacks(seen, *host) {
            put_back(cluster, *host, seen).await?;
        } else if host.is_mark_left_over && seen.is_kept_off {
            let told = "Ringfence's cordon or taint was back on a node whose host has been taken back; it was removed";
            change(cluster, *host, seen, free, told).await?;
        }
    }
    Ok(())
}

/// Ringfence's own out-of-service taint as well: an attempt that comes late sets that too.
fn free(node: &NodeObject, marks: &mut Marks) {
    put_in_service(node, marks);
    release(node, marks);
}

fn lacks(seen: &SeenMarks, host: KeptHost<'_>) -> bool {
    !seen.is_isolated || (seen.was_put_back && host.movable == Some(Movable::All))
}

async fn put_back(cluster: &Cluster, host: KeptHost<'_>, seen: &SeenMarks) -> Result<(), BackendError> {
    let how = if seen.was_put_back && host.movable == Some(Movable::All) {
        take_out
    } else {
        hold
    };
    let told = "another program has taken Ringfence's cordon or taints off a node that is being fenced or is FENCED; they were put back";
    change(cluster, host, seen, how, told).await
}

/// Changes the node as the look has seen it.
async fn change(
    cluster: &Cluster,
    host: KeptHost<'_>,
    seen: &SeenMarks,
    how: impl Fn(&NodeObject, &mut Marks),
    told: &str,
) -> Result<(), BackendError> {
    let of = NodeOf {
        cluster,
        name: host.host,
        generation: host.generation,
        movable: Movable::All,
        time: TimeGiven::of(Duration::ZERO),
    };
    let Some(node) = of.read().await? else {
        return Ok(());
    };
    if node.metadata.resource_version != seen.version {
        return Ok(());
    }
    match of.mark_as_read(node, how).await {
        Ok(_) => {
            tracing::warn!(cluster = cluster.settings().name, node = host.host, "{told}");
            Ok(())
        }
        Err(BackendError::Refused { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
