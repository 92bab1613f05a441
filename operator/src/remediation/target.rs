//! Which node a remediation is about. The names follow the contracts of the Node Health Check operator and of Cluster API.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::core::ObjectMeta;

use crate::OperatorError;
use crate::door::Door;
use crate::marks::name_of;
use crate::refusal::Why;

/// The Node Health Check operator writes the node's name here where the object's name is another.
const NODE_NAME: &str = "remediation.medik8s.io/node-name";
/// Cluster API writes the name of the machine's cluster here.
const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";
const HEALTH_CHECK: (&str, &str) = ("remediation.medik8s.io", "NodeHealthCheck");
const MACHINES: [&str; 2] = ["cluster.x-k8s.io", "machine.openshift.io"];

/// A node, and the names by which its cluster may be known here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub node: String,
    /// The cluster that Cluster API names, if it does.
    pub named_cluster: Option<String>,
}

/// From where the name of the node is had.
#[derive(Debug, PartialEq)]
enum Source<'a> {
    Object(&'a str),
    Machine(&'a OwnerReference),
}

/// The machine that a health check of machines has made the remediation for, if one has.
pub(super) fn machine(of: &ObjectMeta) -> Option<&OwnerReference> {
    match source(of) {
        Source::Machine(machine) => Some(machine),
        Source::Object(_) => None,
    }
}

/// The machines of a kind like this one's.
pub(super) fn machines(door: &Door, namespace: &str, like: &OwnerReference) -> Api<DynamicObject> {
    let version = like.api_version.split('/').next_back().unwrap_or_default();
    let kind = GroupVersionKind::gvk(group(like), version, &like.kind);
    let kind = ApiResource::from_gvk_with_plural(&kind, "machines");
    Api::namespaced_with(door.client.clone(), namespace, &kind)
}

/// The node that a remediation is about, or why that is not known.
pub(super) async fn resolve(
    door: &Door,
    namespace: &str,
    of: &ObjectMeta,
) -> Result<Result<Target, Why>, OperatorError> {
    let node = match source(of) {
        Source::Object(name) => name.to_owned(),
        Source::Machine(machine) => match node_of_machine(door, namespace, machine).await? {
            Ok(node) => node,
            Err(why) => return Ok(Err(why)),
        },
    };
    let labels = of.labels.as_ref();
    Ok(Ok(Target {
        node,
        named_cluster: labels.and_then(|labels| labels.get(CLUSTER_NAME).cloned()),
    }))
}

/// A health check of nodes names the node, also where a machine owns the remediation as well; one of machines names the machine.
fn source(of: &ObjectMeta) -> Source<'_> {
    let owners = || of.owner_references.iter().flatten();
    let is_of_nodes = owners().any(|owner| (group(owner), owner.kind.as_str()) == HEALTH_CHECK);
    let machine = owners().find(|owner| owner.kind == "Machine" && MACHINES.contains(&group(owner)));
    match machine {
        Some(machine) if !is_of_nodes => Source::Machine(machine),
        _ => {
            let annotations = of.annotations.as_ref();
            let named = annotations.and_then(|annotations| annotations.get(NODE_NAME));
            Source::Object(named.map_or_else(|| name_of(of), String::as_str))
        }
    }
}

fn group(owner: &OwnerReference) -> &str {
    owner.api_version.split('/').next().unwrap_or_default()
}

async fn node_of_machine(
    door: &Door,
    namespace: &str,
    machine: &OwnerReference,
) -> Result<Result<String, Why>, OperatorError> {
    let api = machines(door, namespace, machine);
    let Some(found) = door.call(api.get_opt(&machine.name)).await? else {
        let message = format!("its owner, Machine {:?}, does not exist", machine.name);
        return Ok(Err(Why::new("MachineUnknown", message)));
    };
    Ok(found.data["status"]["nodeRef"]["name"]
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| {
            let message = format!(
                "its owner, Machine {:?}, names no node in status.nodeRef",
                machine.name
            );
            Why::new("MachineWithoutNode", message)
        }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(api_version: &str, kind: &str, name: &str) -> OwnerReference {
        OwnerReference {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
            ..OwnerReference::default()
        }
    }

    fn object(name: &str, annotation: Option<&str>, owners: Vec<OwnerReference>) -> ObjectMeta {
        let annotations = annotation.map(|node| [(NODE_NAME.to_owned(), node.to_owned())].into());
        ObjectMeta {
            name: Some(name.to_owned()),
            annotations,
            owner_references: Some(owners),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn a_health_check_of_nodes_names_the_node() {
        let check = || owner("remediation.medik8s.io/v1alpha1", "NodeHealthCheck", "workers");
        let plain = object("n1", None, vec![check()]);
        assert_eq!(source(&plain), Source::Object("n1"));
        let one_of_many = object("n1-x7k2p", Some("n1"), vec![check()]);
        assert_eq!(source(&one_of_many), Source::Object("n1"));
        let also_of_a_machine = vec![check(), owner("machine.openshift.io/v1beta1", "Machine", "m1")];
        let both = object("n1", None, also_of_a_machine);
        assert_eq!(source(&both), Source::Object("n1"));
    }

    #[test]
    fn a_health_check_of_machines_names_the_machine() {
        for api_version in ["cluster.x-k8s.io/v1beta2", "machine.openshift.io/v1beta1"] {
            let machine = owner(api_version, "Machine", "m1");
            let of = object("m1", None, vec![machine.clone()]);
            assert_eq!(source(&of), Source::Machine(&machine));
        }
        let another = object("n1", None, vec![owner("example.org/v1", "Machine", "m1")]);
        assert_eq!(source(&another), Source::Object("n1"));
    }

    #[test]
    fn a_remediation_that_was_made_by_hand_is_named_as_its_node() {
        assert_eq!(source(&object("n1", None, Vec::new())), Source::Object("n1"));
        assert_eq!(
            source(&object("try", Some("n1"), Vec::new())),
            Source::Object("n1")
        );
    }
}
