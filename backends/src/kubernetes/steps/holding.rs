//! Keeping pods off a node, and telling the cluster that the node is down.

use k8s_openapi::api::core::v1::Taint;

use super::Done;
use super::node::{Marks, NodeOf, is_ours};
use crate::BackendError;
use crate::kubernetes::objects::{NodeObject, Ready, ready};
use crate::kubernetes::sightings::SeenMarks;

/// Our taint. The kubelet itself starts no pod on a node with a taint of this effect that the pod does not tolerate.
pub(super) const FENCED: &str = "ringfence.io/fenced";
/// The cluster removes the pods and the attachments of a node with this taint.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
const NO_EXECUTE: &str = "NoExecute";
/// Written on a node that was schedulable before.
const CORDONED: &str = "ringfence.io/cordoned";
/// Written on a node that was in service before.
const TAKEN_OUT: &str = "ringfence.io/out-of-service";

fn taint(key: &str, value: Option<&str>) -> Taint {
    Taint {
        key: key.to_owned(),
        value: value.map(str::to_owned),
        effect: NO_EXECUTE.to_owned(),
        ..Taint::default()
    }
}

fn has(taints: &[Taint], key: &str) -> bool {
    taints
        .iter()
        .any(|taint| taint.key == key && taint.effect == NO_EXECUTE)
}

/// Cordon, and our taint.
pub(super) fn hold(_: &NodeObject, marks: &mut Marks) {
    if !marks.unschedulable {
        marks.unschedulable = true;
        marks.own(CORDONED, true);
    }
    if !has(&marks.taints, FENCED) {
        marks.taints.push(taint(FENCED, None));
    }
}

/// Also out of service.
pub(super) fn take_out(node: &NodeObject, marks: &mut Marks) {
    hold(node, marks);
    if !has(&marks.taints, OUT_OF_SERVICE) {
        marks.taints.push(taint(OUT_OF_SERVICE, Some("nodeshutdown")));
        marks.own(TAKEN_OUT, true);
    }
}

/// That it was ours stays written down until the node is released: an attempt that ends in between is followed by one that knows it.
fn put_back(node: &NodeObject, marks: &mut Marks) {
    if is_ours(node, TAKEN_OUT) {
        marks.taints.retain(|taint| taint.key != OUT_OF_SERVICE);
    }
}

fn release(node: &NodeObject, marks: &mut Marks) {
    marks.taints.retain(|taint| taint.key != FENCED);
    if is_ours(node, CORDONED) {
        marks.unschedulable = false;
        marks.own(CORDONED, false);
    }
    if is_ours(node, TAKEN_OUT) {
        marks.own(TAKEN_OUT, false);
    }
}

impl NodeOf<'_> {
    fn no_node(&self) -> Done {
        Done::So(format!(
            "{} has no node {}",
            self.cluster.settings().name,
            self.name
        ))
    }

    /// Before anything is proven.
    pub(super) async fn isolate(&self) -> Result<Done, BackendError> {
        let Some(_) = self.mark(hold).await? else {
            return Ok(self.no_node());
        };
        Ok(Done::So(format!(
            "{} is cordoned and has the taint {FENCED}",
            self.name
        )))
    }

    /// After FENCED. The cluster's gates are opened first: they hold the taint, and what the cluster does because of it. A cluster that does
    /// not act on the taint is not given it.
    pub(super) async fn mark_down(&self) -> Result<Done, BackendError> {
        self.gate().open().await?;
        if !self.cluster.version().await?.has_out_of_service() {
            let done = self.isolate().await?;
            self.forget_volumes_in_use().await?;
            return Ok(done);
        }
        let Some(_) = self.mark(take_out).await? else {
            return Ok(self.no_node());
        };
        Ok(Done::So(format!("{} is out of service", self.name)))
    }

    /// Takes the node back into service, where Ringfence has taken it out. `false` if the cluster has no such node.
    pub(super) async fn put_back_into_service(&self) -> Result<bool, BackendError> {
        Ok(self.mark(put_back).await?.is_some())
    }

    /// Takes the taint away, and the cordon if it is Ringfence's.
    pub(super) async fn release(&self) -> Result<bool, BackendError> {
        Ok(self.mark(release).await?.is_some())
    }
}

/// The node's marks as far as others may have changed them.
pub(in crate::kubernetes) fn marks(node: &NodeObject) -> SeenMarks {
    let taints = &node.spec.taints;
    SeenMarks {
        version: node.metadata.resource_version.clone(),
        is_isolated: node.spec.unschedulable && has(taints, FENCED),
        was_put_back: is_ours(node, TAKEN_OUT) && !has(taints, OUT_OF_SERVICE) && ready(node) != Ready::Yes,
    }
}

/// Whether Ringfence has taken the node out of service and has not released it since.
pub(super) fn was_taken_out(node: &NodeObject) -> bool {
    is_ours(node, TAKEN_OUT)
}

#[cfg(test)]
mod tests {
    use kube::core::Object;

    use super::*;
    use crate::kubernetes::objects::{NodeSpec, nodes};

    fn node(taints: Vec<Taint>, unschedulable: bool, ours: &[&str]) -> NodeObject {
        let spec = NodeSpec {
            unschedulable,
            taints,
            provider_id: None,
        };
        let mut node = Object::new("n1", &nodes(), spec);
        let annotations = ours.iter().map(|what| ((*what).to_owned(), "true".to_owned()));
        node.metadata.annotations = Some(annotations.collect());
        node
    }

    fn changed(node: &NodeObject, change: impl Fn(&NodeObject, &mut Marks)) -> Marks {
        let mut marks = Marks::of(node);
        change(node, &mut marks);
        marks
    }

    #[test]
    fn what_others_have_set_stays_when_ours_goes() {
        let theirs = taint(OUT_OF_SERVICE, Some("nodeshutdown"));
        let node = node(vec![theirs.clone(), taint(FENCED, None)], true, &[]);
        let marks = changed(&node, |node, marks| {
            put_back(node, marks);
            release(node, marks);
        });
        assert_eq!(marks.taints, [theirs]);
        assert!(marks.unschedulable, "an administrator has cordoned it");
    }

    #[test]
    fn what_is_set_is_written_down_as_ours_and_goes_again() {
        let marks = changed(&node(Vec::new(), false, &[]), take_out);
        assert!(has(&marks.taints, FENCED) && has(&marks.taints, OUT_OF_SERVICE) && marks.unschedulable);
        let ours: Vec<&str> = marks.annotations.keys().copied().collect();
        assert_eq!(ours, [CORDONED, TAKEN_OUT]);
        let node = node(marks.taints, true, &ours);
        let after = changed(&node, |node, marks| {
            put_back(node, marks);
            release(node, marks);
        });
        assert!(after.taints.is_empty() && !after.unschedulable);
        assert!(after.annotations.values().all(Option::is_none));
    }

    #[test]
    fn a_second_time_changes_nothing() {
        let once = changed(&node(Vec::new(), false, &[]), take_out);
        let node = node(once.taints.clone(), true, &[CORDONED, TAKEN_OUT]);
        assert_eq!(changed(&node, take_out).taints, once.taints);
        assert!(changed(&node, take_out).annotations.is_empty());
    }
}
