//! A `NodeFence` that Ringfence makes, for a fence that was asked for elsewhere or not at all.

use std::time::Duration;

use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::core::Object;
use ringfence_core::{MAX_REASON_CHARS, OperationKind};

use super::object::{MADE_BY, NodeFence, Spec, api, has_record, kind};
use super::serving::{Served, Verdict};
use super::suspending;
use crate::OperatorError;
use crate::door::{Door, Standing};
use crate::marks::{FINALIZER, name_of};
use crate::refusal::Why;
use crate::taking_back::is_released;
use crate::text::cut;

/// Soon enough to show the host's state in what was made.
const AT_ONCE: Duration = Duration::ZERO;

/// Makes a `NodeFence` for a host that is FENCED, or is being fenced.
pub(super) async fn make(
    door: &Door,
    node: &str,
    standing: &Standing,
) -> Result<Option<Duration>, OperatorError> {
    let live = standing.state.operation.as_ref();
    let is_being_fenced = live.is_some_and(|live| live.kind() == OperationKind::Fence);
    if standing.state.host.fence.is_none() && !is_being_fenced {
        return Ok(None);
    }
    let reason = standing
        .last
        .as_ref()
        .map(|last| cut(&last.reason, MAX_REASON_CHARS));
    let spec = Spec {
        node_name: Some(node.to_owned()),
        reason,
        ..Spec::default()
    };
    let mut object: NodeFence = Object::new(node, &kind(), spec);
    let labels = [(MADE_BY.to_owned(), "ringfence".to_owned())];
    object.metadata.labels = Some(labels.into());
    object.metadata.finalizers = Some(vec![FINALIZER.to_owned()]);
    door.call(api(&door.client).create(&PostParams::default(), &object))
        .await?;
    Ok(Some(AT_ONCE))
}

/// Shows the host's state, and removes the object once the host is UNFENCED.
pub(super) async fn keep(
    door: &Door,
    object: &NodeFence,
    standing: Option<Standing>,
) -> Result<Option<Served>, OperatorError> {
    let stays = |standing: &Standing| {
        let is_suspended = suspending::is_in_force(door, object, standing);
        !is_released(standing) || has_record(object) || is_suspended
    };
    let Some(standing) = standing.filter(stays) else {
        let name = name_of(&object.metadata);
        // A record that was written meanwhile, for a fence that is not committed yet, is not removed with it.
        let how = DeleteParams::default().preconditions(Preconditions {
            uid: object.metadata.uid.clone(),
            resource_version: object.metadata.resource_version.clone(),
        });
        door.call(api(&door.client).delete(name, &how)).await?;
        return Ok(None);
    };
    if object.spec.suspend {
        return Box::pin(suspending::suspend(door, object, standing))
            .await
            .map(Some);
    }
    let message = "Ringfence has made this NodeFence for a fence that was not asked for by one";
    Ok(Some(Served {
        verdict: Verdict {
            accepted: Some(Why::new("MadeByRingfence", message)),
            ..Verdict::default()
        },
        standing: Some(standing),
    }))
}
