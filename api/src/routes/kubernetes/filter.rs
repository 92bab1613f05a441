//! `POST /kubernetes/filter`: which of these nodes may get a pod, from memory. The protocol is the scheduler's, for its extenders.

use std::borrow::Cow;
use std::collections::HashSet;

use actix_web::{HttpResponse, web};
use ringfence_scheduler_hook::Hook;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use crate::ApiError;
use crate::auth::Caller;
use crate::body::LongBody;
use crate::error::ErrorList;
use crate::role::Role;
use crate::routes::host_name::HostName;

/// The most nodes of one question: twice as many as a cluster has.
const MAX_NODES: usize = 10_000;
/// The longest question, in bytes: a pod, and the names of its possible nodes.
pub(crate) const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;

/// Which cluster asks.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Asking {
    /// The cluster's name in `kubernetes.clusters`; it may be left out where that has one
    cluster: Option<String>,
}

/// A scheduler's question. The pod makes no difference.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ExtenderArgs<'a> {
    /// The nodes' names, from a scheduler with `nodeCacheCapable: true`; at most 10000
    #[serde(borrow, default)]
    #[schema(value_type = Option<Vec<String>>)]
    node_names: Option<Vec<HostName<'a>>>,
    /// The nodes, from a scheduler without it
    #[serde(borrow, default)]
    #[schema(value_type = Option<Object>)]
    nodes: Option<NodeList<'a>>,
}

#[derive(Debug, Deserialize)]
struct NodeList<'a> {
    #[serde(borrow)]
    items: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Node<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
}

#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

/// The answer to a scheduler.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ExtenderFilterResult<'a> {
    /// The nodes that may get the pod, where nodes were asked about
    #[schema(value_type = Option<Object>)]
    nodes: Option<Items<'a>>,
    /// The names of the nodes that may get the pod, where names were asked about
    node_names: Option<&'a [&'a str]>,
    /// The nodes that may not, each with its reason; to remove other pods from one would not help
    #[serde(serialize_with = "by_name")]
    #[schema(value_type = std::collections::BTreeMap<String, String>)]
    failed_and_unresolvable_nodes: &'a [(&'a str, &'a str)],
    /// As `FailedAndUnresolvableNodes`, for schedulers that do not know it
    #[serde(serialize_with = "by_name")]
    #[schema(value_type = std::collections::BTreeMap<String, String>)]
    failed_nodes: &'a [(&'a str, &'a str)],
    /// Empty
    error: &'static str,
}

#[derive(Serialize)]
struct Items<'a> {
    items: Vec<&'a RawValue>,
}

fn by_name<S: Serializer>(refused: &[(&str, &str)], serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(refused.len()))?;
    for (node, reason) in refused {
        map.serialize_entry(node, reason)?;
    }
    map.end()
}

/// Which of these nodes may get a pod?
///
/// A scheduler of Kubernetes asks it as its extender. Served by `ringfence scheduler-hook` and `ringfence standalone`. Answered from memory;
/// 503 if that is older than `scheduler_hook.max_age_ms`, and then the scheduler binds nothing. A node that Ringfence does not know is
/// refused unless `scheduler_hook.unknown_hosts` says otherwise.
#[utoipa::path(post, path = "/kubernetes/filter", operation_id = "filter_nodes", tag = "scheduler hook", params(Asking),
    request_body = ExtenderArgs<'_>,
    responses((status = 200, body = ExtenderFilterResult<'_>), (status = 400, body = ErrorList), (status = 401, body = ErrorList),
        (status = 403, body = ErrorList), (status = 413, body = ErrorList), (status = 415, body = ErrorList), (status = 503, body = ErrorList)))]
pub(crate) async fn filter(
    hook: web::Data<Hook>,
    caller: Caller,
    asking: web::Query<Asking>,
    body: LongBody<MAX_BODY_BYTES>,
) -> Result<HttpResponse, ApiError> {
    caller.require(Role::Reader)?;
    let args: ExtenderArgs<'_> = body.parse()?;
    let cluster = cluster(&hook, asking.0.cluster.as_deref())?;
    let names = names(&args)?;
    let snapshot = hook.snapshot()?;
    let filtered = hook.filter(&snapshot, &cluster, names.iter().map(AsRef::as_ref));
    let nodes = args.nodes.as_ref().filter(|_| args.node_names.is_none());
    let items = nodes.map(|nodes| {
        let refused: HashSet<&str> = filtered.refused.iter().map(|(name, _)| *name).collect();
        let all = nodes.items.iter().zip(&names);
        let allowed = all
            .filter(|(_, name)| !refused.contains(name.as_ref()))
            .map(|(node, _)| *node);
        Items {
            items: allowed.collect(),
        }
    });
    let answer = HttpResponse::Ok()
        .insert_header(("Cache-Control", "no-store"))
        .json(ExtenderFilterResult {
            node_names: items.is_none().then_some(&filtered.allowed),
            nodes: items,
            failed_and_unresolvable_nodes: &filtered.refused,
            failed_nodes: &filtered.refused,
            error: "",
        });
    hook.confirm(&filtered).await?;
    // Last of all: what has grown too old meanwhile does not go out.
    hook.require_fresh(&snapshot)?;
    Ok(answer)
}

fn cluster(hook: &Hook, named: Option<&str>) -> Result<String, ApiError> {
    let clusters = hook.clusters();
    match (named, clusters) {
        (Some(named), _) => Ok(named.to_owned()),
        (None, [only]) => Ok(only.clone()),
        (None, _) => {
            let why = format!(
                "is missing; one of kubernetes.clusters ({}) is allowed",
                clusters.join(", ")
            );
            Err(ApiError::bad("cluster", why))
        }
    }
}

fn names<'a>(args: &'a ExtenderArgs<'a>) -> Result<Vec<Cow<'a, str>>, ApiError> {
    let names: Vec<Cow<'a, str>> = match (&args.node_names, &args.nodes) {
        (Some(names), _) => names.iter().map(|name| Cow::Borrowed(&*name.0)).collect(),
        (None, Some(nodes)) => nodes
            .items
            .iter()
            .map(|node| name(node))
            .collect::<Result<_, _>>()?,
        (None, None) => {
            let why = "is missing, and so is Nodes; a scheduler sends one of them";
            return Err(ApiError::bad("NodeNames", why));
        }
    };
    if names.len() > MAX_NODES {
        let why = format!("has {} names; at most {MAX_NODES} are allowed", names.len());
        return Err(ApiError::bad("NodeNames", why));
    }
    Ok(names)
}

fn name(node: &RawValue) -> Result<Cow<'_, str>, ApiError> {
    let node: Result<Node<'_>, _> = serde_json::from_str(node.get());
    let node =
        node.map_err(|error| ApiError::bad("Nodes", format!("has an item without metadata.name: {error}")))?;
    Ok(node.metadata.name)
}
