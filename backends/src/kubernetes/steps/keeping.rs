//! Marks that other programs have taken off a node which is kept isolated: some write the whole list of taints.

use std::time::Duration;

use ringfence_core::Movable;

use super::holding::{hold, take_out};
use super::node::NodeOf;
use crate::kubernetes::Cluster;
use crate::kubernetes::sightings::SeenMarks;
use crate::{BackendError, KeptHost, TimeGiven};

/// Puts the marks back. A node that has changed since the last look is left to the next: a step may have released it.
pub(in crate::kubernetes) async fn keep(
    cluster: &Cluster,
    hosts: &[KeptHost<'_>],
) -> Result<(), BackendError> {
    let looked = cluster.watching().await?.looked();
    for host in hosts.iter().filter(|host| host.is_isolated) {
        if let Some(seen) = looked.marks.get(host.host).filter(|seen| lacks(seen, *host)) {
            put_back(cluster, *host, seen).await?;
        }
    }
    Ok(())
}

fn lacks(seen: &SeenMarks, host: KeptHost<'_>) -> bool {
    !seen.is_isolated || (seen.was_put_back && host.movable == Some(Movable::All))
}

async fn put_back(cluster: &Cluster, host: KeptHost<'_>, seen: &SeenMarks) -> Result<(), BackendError> {
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
    let change = if seen.was_put_back && host.movable == Some(Movable::All) {
        take_out
    } else {
        hold
    };
    match of.mark_as_read(node, change).await {
        Ok(_) => {
            tracing::warn!(
                cluster = cluster.settings().name,
                node = host.host,
                "another program has taken Ringfence's cordon or taints off a node that is being fenced or is FENCED; they were put back"
            );
            Ok(())
        }
        Err(BackendError::Refused { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
