//! Serving a remediation.

use std::time::Duration;

use kube::core::ObjectMeta;
use ringfence_core::{HostId, Operation, OperationKind};
use ringfence_engine::Operated;

use super::giving_up::give_up;
use super::object::{Remediation, Status, Strategy, api, is_timed_out};
use super::progress::{Next, Progress, progress};
use super::target::{Target, resolve};
use super::{asker, has_asked_for, releasing};
use crate::OperatorError;
use crate::condition::Conditions;
use crate::door::{Door, Standing, look_again};
use crate::marks::{carried_out, is_carried_out, keep, name_of};
use crate::node_fence;
use crate::refusal::{Why, told};
use crate::shown_operation::ShownOperation;

/// The reason of a fence whose template gives none.
const NO_REASON: &str = "a health check asked for a remediation";
const TIMED_OUT: &str = "the health check waits no longer";
const REBOOT: &str = "the remediation takes the node back";

/// A remediation's node and host, as far as they are known.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub cluster: Option<String>,
    pub node: Option<String>,
    pub standing: Option<Standing>,
    pub why: Option<Why>,
}

impl Found {
    pub fn host_id(&self) -> Option<HostId> {
        self.standing.as_ref().map(|standing| standing.state.host.id)
    }
}

/// What is known of a remediation after it was served.
#[derive(Debug, Default)]
pub(crate) struct Served {
    /// When it is looked at again without a change.
    pub next: Option<Duration>,
    /// Its host: it is looked at when something happens to it.
    pub host: Option<HostId>,
}

/// Serves a remediation.
pub(crate) async fn serve(door: &Door, namespace: &str, name: &str) -> Result<Served, OperatorError> {
    let api = api(&door.client, namespace);
    let Some(object) = door.call(api.get_opt(name)).await? else {
        return Ok(Served::default());
    };
    let mut found = find(door, namespace, &object.metadata).await?;
    let host = found.host_id();
    let progress = if object.metadata.deletion_timestamp.is_some() {
        match releasing::release(door, namespace, &object, &mut found).await? {
            Some(why) => Progress::Processing(why),
            None => return Ok(Served { next: None, host }),
        }
    } else {
        advance(door, namespace, &object, &mut found).await?
    };
    show(door, namespace, &object, &found, &progress).await?;
    Ok(Served {
        next: Some(look_again(found.standing.as_ref(), door.now())),
        host,
    })
}

/// The host of a remediation. A machine of Cluster API is looked for in the cluster that it names, and then in the remediation's own.
pub(super) async fn find(door: &Door, namespace: &str, of: &ObjectMeta) -> Result<Found, OperatorError> {
    let Target { node, named_cluster } = match resolve(door, namespace, of).await? {
        Ok(target) => target,
        Err(why) => {
            return Ok(Found {
                why: Some(why),
                ..Found::default()
            });
        }
    };
    let clusters: Vec<String> = named_cluster.into_iter().chain([door.cluster.clone()]).collect();
    for cluster in &clusters {
        if let Some(standing) = door.standing_in(cluster, &node).await? {
            return Ok(Found {
                cluster: Some(cluster.clone()),
                node: Some(node),
                standing: Some(standing),
                why: None,
            });
        }
    }
    let message = format!(
        "Ringfence has no host for node {node:?} of cluster {}. Add the host, or mend the remediation's name",
        clusters.join(" or ")
    );
    Ok(Found {
        node: Some(node),
        why: Some(Why::new("HostUnknown", message)),
        ..Found::default()
    })
}

impl Found {
    /// The host, read anew.
    pub async fn read_again(&mut self, door: &Door) -> Result<(), OperatorError> {
        if let (Some(cluster), Some(node)) = (&self.cluster, &self.node) {
            self.standing = door.standing_in(cluster, node).await?;
        }
        Ok(())
    }
}

async fn advance(
    door: &Door,
    namespace: &str,
    object: &Remediation,
    found: &mut Found,
) -> Result<Progress, OperatorError> {
    let Some(standing) = &found.standing else {
        let why = found.why.clone().unwrap_or_else(|| Why::new("HostUnknown", ""));
        return Ok(Progress::Failed(why));
    };
    if is_timed_out(&object.metadata) {
        stop(door, standing).await?;
        found.read_again(door).await?;
        return Ok(Progress::Failed(Why::new("TimedOut", TIMED_OUT)));
    }
    keep(door, &api(&door.client, namespace), &object.metadata).await?;
    if !is_carried_out(&object.metadata) {
        return fence(door, namespace, object, found).await;
    }
    let evacuation = evacuation_of(door, standing).await?;
    let is_taken_back = object.spec.strategy == Strategy::Reboot && may_take_back(door, standing).await?;
    let (progress, next) = progress(
        &standing.state,
        standing.last.as_ref(),
        evacuation.as_ref(),
        is_taken_back,
    );
    if let Progress::Succeeded(why) = &progress
        && object.spec.strategy == Strategy::Replace
        && standing.state.host.good_fence().is_some()
    {
        give_up(door, namespace, &object.metadata, why).await?;
    }
    let Some(next) = next else { return Ok(progress) };
    let refused = ask(door, standing, next).await?;
    found.read_again(door).await?;
    Ok(match refused {
        Some(why) => Progress::Processing(why),
        None => progress,
    })
}

/// Whether the fence is a remediation's own, and no `NodeFence` wants the host fenced.
async fn may_take_back(door: &Door, standing: &Standing) -> Result<bool, OperatorError> {
    let is_own = |last: &Operation| has_asked_for(door, last);
    let is_own = standing.last.as_ref().is_some_and(is_own);
    Ok(is_own && !node_fence::wants_fenced(door, &standing.state.host).await?)
}

/// Stops the fence that a remediation has asked for, unless it is proven.
async fn stop(door: &Door, standing: &Standing) -> Result<(), OperatorError> {
    let by = asker(door);
    let live = standing.state.operation.as_ref();
    let is_own = |live: &&Operation| live.kind() == OperationKind::Fence && live.requested_by == by.actor;
    let Some(fence) = live
        .filter(is_own)
        .filter(|_| standing.state.host.current_fence().is_none())
    else {
        return Ok(());
    };
    if let Err(error) = door.engine.cancel(fence.id.0, TIMED_OUT, &by).await {
        // A refusal: it has ended by itself.
        told(error)?;
    }
    Ok(())
}

async fn fence(
    door: &Door,
    namespace: &str,
    object: &Remediation,
    found: &mut Found,
) -> Result<Progress, OperatorError> {
    let Some(standing) = &found.standing else {
        return Ok(Progress::Failed(Why::new("HostUnknown", "")));
    };
    let given = object.spec.reason.as_deref().filter(|reason| !reason.is_empty());
    let host_id = standing.state.host.id.to_string();
    let by = asker(door);
    let operation = match door.engine.fence(&host_id, given.unwrap_or(NO_REASON), &by).await {
        Ok(Operated::Started(id, _) | Operated::Joined(id, _)) => id.to_string(),
        Ok(Operated::Already(_)) => "none".to_owned(),
        Err(error) => {
            let why = told(error)?;
            // The health check may notice a silence before Ringfence does.
            return Ok(match why.reason.as_str() {
                "HostUp" => Progress::Processing(why),
                _ => Progress::Failed(why),
            });
        }
    };
    let (cluster, name) = (&door.cluster, name_of(&object.metadata));
    tracing::info!(
        cluster,
        namespace,
        name,
        operation,
        "a RingfenceRemediation asked for a fence"
    );
    carried_out(
        door,
        &api(&door.client, namespace),
        &object.metadata,
        Some(&operation),
    )
    .await?;
    found.read_again(door).await?;
    let message = format!("operation {operation} carries it out");
    Ok(Progress::Processing(Why::new("Fencing", message)))
}

/// The last evacuation since the fence.
async fn evacuation_of(door: &Door, standing: &Standing) -> Result<Option<Operation>, OperatorError> {
    let Some(fence) = &standing.state.host.fence else {
        return Ok(None);
    };
    let mut reader = door.engine.db().reader();
    let last = ringfence_db::last_evacuation_of_host(&mut reader, standing.state.host.id).await?;
    Ok(last.filter(|last| last.created_at >= fence.at))
}

/// Asks the engine for what comes next; why that is refused, if it is.
async fn ask(door: &Door, standing: &Standing, next: Next) -> Result<Option<Why>, OperatorError> {
    let by = asker(door);
    let host_id = standing.state.host.id.to_string();
    let asked = match next {
        Next::Evacuate => door.engine.evacuate(&host_id, REBOOT, &by).await,
        Next::Rejoin => door.engine.rejoin(&host_id, REBOOT, false, &by).await,
    };
    match asked {
        Ok(_) => Ok(None),
        Err(error) => Ok(Some(told(error)?)),
    }
}

async fn show(
    door: &Door,
    namespace: &str,
    object: &Remediation,
    found: &Found,
    progress: &Progress,
) -> Result<(), OperatorError> {
    let known = object
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_deref());
    let mut conditions = Conditions::new(known.unwrap_or_default(), object.metadata.generation, door.now());
    match progress {
        Progress::Processing(why) => {
            conditions.yes("Processing", why);
            conditions.unknown("Succeeded", why);
        }
        Progress::Succeeded(why) => {
            conditions.no("Processing", why);
            conditions.yes("Succeeded", why);
        }
        Progress::Failed(why) => {
            conditions.no("Processing", why);
            conditions.no("Succeeded", why);
        }
    }
    let standing = found.standing.as_ref();
    let shown = standing.and_then(|standing| standing.state.operation.as_ref().or(standing.last.as_ref()));
    let wanted = Status {
        cluster: found.cluster.clone(),
        node: found.node.clone(),
        operation: shown.map(ShownOperation::of),
        conditions: Some(conditions.done()),
    };
    if object.status.as_ref() != Some(&wanted) {
        let api = api(&door.client, namespace);
        door.merge_status(&api, name_of(&object.metadata), &wanted)
            .await?;
    }
    Ok(())
}
