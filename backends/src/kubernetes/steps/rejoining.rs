//! Opening a node that was taken back to pods again.

use std::time::Duration;

use tokio::time::Instant;

use super::Done;
use super::marks::{is_tainted_by_others, is_taken_out, put_back, release, was_taken_out};
use super::node::NodeOf;
use crate::BackendError;
use crate::kubernetes::objects::{NodeObject, Ready, ready};

/// The controllers of a cluster act on what they saw some seconds ago, also after the taint is gone.
const SETTLES: Duration = Duration::from_secs(21);

/// Since when the node is as it has to be, as far as one attempt has seen it.
#[derive(Default)]
struct Since {
    ready: Option<Instant>,
    in_service: Option<Instant>,
}

/// What comes next.
#[derive(Debug, PartialEq)]
enum Next {
    /// The out-of-service taint goes, if it is Ringfence's.
    PutBack,
    /// Nothing yet.
    Wait(&'static str),
    /// Ringfence's own taint and the cordon go.
    Open,
}

impl Since {
    /// On a node that is Ready the out-of-service taint does harm: it goes at once. A node that has gone again meanwhile is not opened.
    fn next(&mut self, node: &NodeObject, ready_for: Duration, now: Instant) -> Next {
        if ready(node) != Ready::Yes {
            self.ready = None;
            return Next::Wait("is not Ready");
        }
        let ready_since = *self.ready.get_or_insert(now);
        if is_taken_out(node) {
            self.in_service = None;
            return Next::PutBack;
        }
        let in_service_since = *self.in_service.get_or_insert(now);
        if now - ready_since < ready_for {
            return Next::Wait("has not been Ready for long enough");
        }
        if was_taken_out(node) && now - in_service_since < SETTLES {
            return Next::Wait(
                "was out of service a moment ago, and the cluster's controllers may still act on that",
            );
        }
        Next::Open
    }
}

impl NodeOf<'_> {
    /// The cluster's gates are closed first. The out-of-service taint goes as soon as the node is Ready; ours and the cordon go when the node
    /// has been Ready for a while, and some time after the other. Each change is one of the node as it was looked at.
    pub(super) async fn open(&self) -> Result<Done, BackendError> {
        self.gate().close().await?;
        let ready_for = self.cluster.settings().ready_for;
        let mut since = Since::default();
        loop {
            let Some(node) = self.read().await? else {
                return Ok(self.no_node());
            };
            let next = since.next(&node, ready_for, Instant::now());
            let changed = match next {
                Next::Wait(_) if self.has_time() => {
                    self.pause().await;
                    continue;
                }
                Next::Wait(why) => return Ok(Done::NotYet(format!("{} {why}", self.name), None)),
                Next::PutBack => self.mark_as_read(node, put_back).await,
                Next::Open => self.mark_as_read(node, release).await,
            };
            match changed {
                Ok(node) if next == Next::Open => return Ok(Done::So(opened(self.name, &node))),
                Ok(_) => {}
                // Others have changed the node since it was looked at.
                Err(BackendError::Refused { .. }) if self.has_time() => self.pause().await,
                Err(error) => return Err(error),
            }
        }
    }
}

fn opened(name: &str, node: &NodeObject) -> String {
    if is_tainted_by_others(node) {
        return format!(
            "{name} is not kept from pods by Ringfence any more; its taint node.kubernetes.io/out-of-service stays, since it is not Ringfence's: \
             remove it when the node is to take pods"
        );
    }
    format!("{name} takes pods again")
}

#[cfg(test)]
mod tests {
    use kube::core::Object;
    use serde_json::json;

    use super::*;
    use crate::kubernetes::objects::{NodeSpec, nodes};
    use crate::kubernetes::steps::marks::take_out;
    use crate::kubernetes::steps::node::Marks;

    const READY_FOR: Duration = Duration::from_secs(10);

    fn is(node: &mut NodeObject, ready: &str) {
        let status = json!({ "conditions": [{ "type": "Ready", "status": ready }] });
        node.status = Some(serde_json::from_value(status).unwrap());
    }

    fn change(node: &mut NodeObject, change: impl Fn(&NodeObject, &mut Marks)) {
        let mut marks = Marks::of(node);
        change(node, &mut marks);
        node.spec.taints = marks.taints;
        node.spec.unschedulable = marks.unschedulable;
        let annotations = node.metadata.annotations.get_or_insert_default();
        for (what, value) in marks.annotations {
            match value {
                Some(value) => drop(annotations.insert(what.to_owned(), value)),
                None => drop(annotations.remove(what)),
            }
        }
    }

    fn out_of_service() -> NodeObject {
        let mut node = Object::new("n1", &nodes(), NodeSpec::default());
        change(&mut node, take_out);
        is(&mut node, "True");
        node
    }

    fn waits(next: &Next, for_what: &str) -> bool {
        matches!(next, Next::Wait(why) if why.contains(for_what))
    }

    #[test]
    fn a_node_is_in_service_for_a_while_before_it_is_opened() {
        let begun = Instant::now();
        let (mut node, mut since) = (out_of_service(), Since::default());
        let mut next =
            |node: &NodeObject, second| since.next(node, READY_FOR, begun + Duration::from_secs(second));
        assert_eq!(next(&node, 0), Next::PutBack);
        // The change was refused: others have changed the node.
        assert_eq!(next(&node, 5), Next::PutBack);
        change(&mut node, put_back);
        assert!(waits(&next(&node, 6), "Ready for long enough"));
        assert!(waits(&next(&node, 26), "was out of service a moment ago"));
        assert_eq!(next(&node, 27), Next::Open);
        change(&mut node, release);
        assert!(!was_taken_out(&node) && node.spec.taints.is_empty() && !node.spec.unschedulable);
    }

    #[test]
    fn a_node_that_has_gone_again_is_not_opened() {
        let begun = Instant::now();
        let (mut node, mut since) = (out_of_service(), Since::default());
        let mut next =
            |node: &NodeObject, second| since.next(node, READY_FOR, begun + Duration::from_secs(second));
        change(&mut node, put_back);
        assert!(waits(&next(&node, 0), "Ready for long enough"));
        is(&mut node, "Unknown");
        assert!(waits(&next(&node, 22), "not Ready"));
        is(&mut node, "True");
        assert!(waits(&next(&node, 30), "Ready for long enough"));
        assert_eq!(next(&node, 40), Next::Open);
    }

    #[test]
    fn a_node_that_ringfence_has_not_taken_out_of_service_has_to_be_ready_alone() {
        let begun = Instant::now();
        let mut node = Object::new("n1", &nodes(), NodeSpec::default());
        is(&mut node, "True");
        let mut since = Since::default();
        assert!(waits(
            &since.next(&node, READY_FOR, begun),
            "Ready for long enough"
        ));
        assert_eq!(since.next(&node, READY_FOR, begun + READY_FOR), Next::Open);
    }
}
