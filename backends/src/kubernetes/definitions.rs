//! Whether a cluster has the definitions of Ringfence's objects as they are shipped. A cluster drops fields that its definition does not have,
//! and says nothing. What it serves is read from its own description, which every user may read; the definitions themselves take a right.

use kube::client::Body;
use serde_json::Value;

use super::{Cluster, faults};
use crate::{BackendError, Preflight};

pub(super) const GROUP: &str = "ringfence.io";
pub(super) const VERSION: &str = "v1alpha1";
/// How the definitions are installed.
pub(super) const DEFINE: &str = "ringfence kubernetes crds | kubectl apply -f -";

const NODE_FENCES: &str = include_str!("../../../deploy/helm/ringfence/crds/nodefences.yaml");
const REMEDIATIONS: &str = include_str!("../../../deploy/helm/ringfence/crds/ringfenceremediations.yaml");
/// The field of a `NodeFence` without which nothing that was proven outlives a process.
const RECORD: &str = "status.record";

/// A definition, as it is shipped.
struct Definition(Value);

impl Definition {
    fn of(text: &str) -> Result<Self, BackendError> {
        serde_saphyr::from_str(text)
            .map(Self)
            .map_err(|error| BackendError::Settings {
                platform: faults::label(""),
                why: format!("a definition that is shipped cannot be read: {error}"),
            })
    }

    fn name(&self, of: &str) -> &str {
        self.0["spec"]["names"][of].as_str().unwrap_or_default()
    }

    fn version(&self) -> &Value {
        &self.0["spec"]["versions"][0]
    }

    fn schema(&self) -> &Value {
        &self.version()["schema"]["openAPIV3Schema"]
    }

    /// The resources that it defines.
    fn resources(&self) -> Vec<String> {
        let plural = self.name("plural");
        let has_status = !self.version()["subresources"]["status"].is_null();
        let status = has_status.then(|| format!("{plural}/status"));
        [Some(plural.to_owned()), status].into_iter().flatten().collect()
    }
}

/// The definitions of the objects that the cluster is used for.
pub(super) async fn preflight(cluster: &Cluster) -> Result<Vec<Preflight>, BackendError> {
    let uses = cluster.settings().uses;
    if !uses.has_operator && !uses.has_records {
        return Ok(Vec::new());
    }
    let mut needed = vec![Definition::of(NODE_FENCES)?];
    if uses.has_operator {
        needed.push(Definition::of(REMEDIATIONS)?);
    }
    let of = &cluster.settings().name;
    let served = match served(cluster).await {
        Err(BackendError::NotFound { .. }) => return Ok(vec![undefined(of, &versions(cluster).await?)]),
        served => served?,
    };
    let description = description(cluster).await?;
    let faults = needed.iter().filter_map(|definition| {
        missing(of, definition, &served).or_else(|| outdated(of, definition, description.as_ref()?))
    });
    let mut found: Vec<Preflight> = faults.collect();
    if found.is_empty() && description.is_some() {
        let kinds: Vec<&str> = needed.iter().map(|definition| definition.name("kind")).collect();
        found.push(Preflight::Good(format!(
            "{of}: {} objects are defined as this version needs them",
            kinds.join(" and ")
        )));
    }
    Ok(found)
}

/// The resources of Ringfence's group, in the version that is used.
async fn served(cluster: &Cluster) -> Result<Vec<String>, BackendError> {
    let client = cluster.client().await?;
    let group = format!("{GROUP}/{VERSION}");
    let list = cluster.call(client.list_api_group_resources(&group)).await?;
    Ok(list.resources.into_iter().map(|resource| resource.name).collect())
}

/// The versions of Ringfence's group.
async fn versions(cluster: &Cluster) -> Result<Vec<String>, BackendError> {
    let client = cluster.client().await?;
    let groups = cluster.call(client.list_api_groups()).await?;
    let own = groups.groups.into_iter().filter(|group| group.name == GROUP);
    Ok(own
        .flat_map(|group| group.versions)
        .map(|version| version.version)
        .collect())
}

/// What the cluster says of its objects' fields, by releases from 1.24 on and by older ones; `None` where it does not say.
async fn description(cluster: &Cluster) -> Result<Option<Value>, BackendError> {
    for path in [
        format!("/openapi/v3/apis/{GROUP}/{VERSION}"),
        "/openapi/v2".to_owned(),
    ] {
        let client = cluster.client().await?;
        let ask = async {
            let request = http::Request::get(&path).body(Body::empty());
            let answer = client.send(request.map_err(kube::Error::HttpError)?).await?;
            // A path that an API server does not know is answered by a list of paths, and not as other questions.
            if !answer.status().is_success() {
                return Ok(None);
            }
            let text = answer.into_body().collect_bytes().await?;
            serde_json::from_slice(&text)
                .map(Some)
                .map_err(kube::Error::SerdeError)
        };
        if let Some(description) = cluster.call(ask).await? {
            return Ok(Some(description));
        }
    }
    Ok(None)
}

fn undefined(of: &str, versions: &[String]) -> Preflight {
    let found = match versions.is_empty() {
        true => format!("{of}: NodeFence objects are not defined"),
        false => format!(
            "{of}: Ringfence's objects are defined as {GROUP}/{} alone, and this version uses {GROUP}/{VERSION}",
            versions.join(" and ")
        ),
    };
    Preflight::Failure(found, DEFINE.to_owned())
}

/// A resource of the definition that the cluster does not serve.
fn missing(of: &str, definition: &Definition, served: &[String]) -> Option<Preflight> {
    let resources = definition.resources();
    let missing = resources.iter().find(|resource| !served.contains(resource))?;
    let found = format!("{of}: the cluster does not serve {missing}.{GROUP} in version {VERSION}");
    Some(Preflight::Failure(found, DEFINE.to_owned()))
}

/// A field that the cluster drops.
fn outdated(of: &str, definition: &Definition, description: &Value) -> Option<Preflight> {
    let kind = definition.name("kind");
    let field = lacking(definition.schema(), schema_of(description, kind)?, "")?;
    let found = format!(
        "{of}: the definition of {kind} is of another version of Ringfence: the cluster drops the field {field}"
    );
    Some(match field == RECORD {
        true => Preflight::Failure(found, DEFINE.to_owned()),
        false => Preflight::Warning(found, DEFINE.to_owned()),
    })
}

fn schema_of<'a>(description: &'a Value, kind: &str) -> Option<&'a Value> {
    let schemas = [&description["components"]["schemas"], &description["definitions"]];
    let mut all = schemas
        .into_iter()
        .filter_map(Value::as_object)
        .flat_map(|all| all.values());
    all.find(|schema| {
        let mut kinds = schema["x-kubernetes-group-version-kind"]
            .as_array()
            .into_iter()
            .flatten();
        kinds.any(|one| one["group"] == GROUP && one["version"] == VERSION && one["kind"] == kind)
    })
}

fn keeps_all(schema: &Value) -> bool {
    schema["x-kubernetes-preserve-unknown-fields"] == true
}

/// The first field of what is shipped that is not served.
fn lacking(shipped: &Value, served: &Value, at: &str) -> Option<String> {
    if keeps_all(served) {
        return None;
    }
    if keeps_all(shipped) {
        return Some(at.to_owned());
    }
    let of_items = || lacking(shipped.get("items")?, &served["items"], &format!("{at}[]"));
    let mut fields = shipped["properties"].as_object().into_iter().flatten();
    let of_fields = fields.find_map(|(name, schema)| {
        let at = if at.is_empty() {
            name.clone()
        } else {
            format!("{at}.{name}")
        };
        match served["properties"].get(name) {
            None => Some(at),
            Some(served) => lacking(schema, served, &at),
        }
    });
    of_fields.or_else(of_items)
}
