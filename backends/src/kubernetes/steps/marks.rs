//! The marks by which a node is kept from pods, and how they are set and taken away.

use k8s_openapi::api::core::v1::Taint;

use super::node::{Marks, noted};
use crate::kubernetes::hosts::HOST;
use crate::kubernetes::objects::{NodeObject, Ready, ready};
use crate::kubernetes::sightings::SeenMarks;

/// Our taint. Where its effect is NoExecute, the kubelet itself starts no pod that does not tolerate it.
pub(super) const FENCED: &str = "ringfence.io/fenced";
/// The cluster removes the pods and the attachments of a node with this taint.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
const NO_EXECUTE: &str = "NoExecute";
const NO_SCHEDULE: &str = "NoSchedule";
/// Written on a node that was schedulable before.
const CORDONED: &str = "ringfence.io/cordoned";
/// Written on a node that was in service before.
const TAKEN_OUT: &str = "ringfence.io/out-of-service";
/// Written on a node whose pods go one by one.
const ONE_BY_ONE: &str = "ringfence.io/one-by-one";
const YES: &str = "true";
/// It is back in service, and not released yet.
const ENDED: &str = "ended";

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

/// Cordon, and our taint, of the effect that was chosen for the node.
pub(super) fn hold(node: &NodeObject, marks: &mut Marks) {
    match noted(node, ONE_BY_ONE) {
        Some(_) => hold_one_by_one(node, marks),
        None => hold_all(node, marks),
    }
}

/// The cluster deletes all pods of a node with our taint, and no disruption budget applies to a pod that is being deleted. So the taint keeps
/// pods away, and deletes none; one that has begun to delete stays.
pub(super) fn hold_one_by_one(_: &NodeObject, marks: &mut Marks) {
    cordon(marks);
    marks.note(ONE_BY_ONE, Some(YES));
    if !is_tainted(&marks.taints) {
        marks.taints.push(Taint {
            effect: NO_SCHEDULE.to_owned(),
            ..taint(FENCED, None)
        });
    }
}

pub(super) fn hold_all(node: &NodeObject, marks: &mut Marks) {
    cordon(marks);
    if noted(node, ONE_BY_ONE).is_some() {
        marks.note(ONE_BY_ONE, None);
    }
    if !has(&marks.taints, FENCED) {
        marks.taints.retain(|taint| taint.key != FENCED);
        marks.taints.push(taint(FENCED, None));
    }
}

fn cordon(marks: &mut Marks) {
    if !marks.unschedulable {
        marks.unschedulable = true;
        marks.note(CORDONED, Some(YES));
    }
}

fn is_tainted(taints: &[Taint]) -> bool {
    let keeps_off = [NO_EXECUTE, NO_SCHEDULE];
    taints
        .iter()
        .any(|taint| taint.key == FENCED && keeps_off.contains(&taint.effect.as_str()))
}

/// Nothing is left that goes one by one.
pub(super) fn close(node: &NodeObject, marks: &mut Marks) {
    if noted(node, ONE_BY_ONE).is_some() {
        hold_all(node, marks);
    }
}

/// Also out of service.
pub(super) fn take_out(node: &NodeObject, marks: &mut Marks) {
    hold_all(node, marks);
    if !has(&marks.taints, OUT_OF_SERVICE) {
        marks.taints.push(taint(OUT_OF_SERVICE, Some("nodeshutdown")));
        marks.note(TAKEN_OUT, Some(YES));
    }
}

/// That it was ours stays written down until the node is released: an attempt that ends in between is followed by one that knows it. What
/// others have set meanwhile is not put back again.
pub(super) fn put_back(node: &NodeObject, marks: &mut Marks) {
    if is_taken_out(node) {
        let is_ours = |taint: &Taint| taint.key == OUT_OF_SERVICE && taint.effect == NO_EXECUTE;
        marks.taints.retain(|taint| !is_ours(taint));
        marks.note(TAKEN_OUT, Some(ENDED));
    }
}

/// Takes the taint away, and the cordon if it is Ringfence's.
pub(super) fn release(node: &NodeObject, marks: &mut Marks) {
    marks.taints.retain(|taint| taint.key != FENCED);
    if noted(node, CORDONED).is_some() {
        marks.unschedulable = false;
        marks.note(CORDONED, None);
    }
    if noted(node, ONE_BY_ONE).is_some() {
        marks.note(ONE_BY_ONE, None);
    }
    if was_taken_out(node) {
        marks.note(TAKEN_OUT, None);
    }
}

/// The node's marks as far as others may have changed them.
pub(in crate::kubernetes) fn marks(node: &NodeObject) -> SeenMarks {
    let taints = &node.spec.taints;
    SeenMarks {
        version: node.metadata.resource_version.clone(),
        is_host: noted(node, HOST).is_some(),
        is_kept_off: is_tainted(taints) || noted(node, CORDONED).is_some(),
        is_isolated: node.spec.unschedulable && is_held(node),
        was_put_back: is_taken_out(node) && !has(taints, OUT_OF_SERVICE) && ready(node) != Ready::Yes,
    }
}

/// Whether our taint has the effect that was chosen for the node.
fn is_held(node: &NodeObject) -> bool {
    let taints = &node.spec.taints;
    has(taints, FENCED) || (noted(node, ONE_BY_ONE).is_some() && is_tainted(taints))
}

/// Whether our taint lets the node's kubelet start pods, if that comes back.
pub(super) fn lets_pods_start(node: &NodeObject) -> bool {
    !has(&node.spec.taints, FENCED)
}

/// Whether Ringfence has taken the node out of service, and has not put it back.
pub(super) fn is_taken_out(node: &NodeObject) -> bool {
    noted(node, TAKEN_OUT).is_some_and(|noted| noted != ENDED)
}

/// Whether Ringfence has taken the node out of service, and has not released it since.
pub(super) fn was_taken_out(node: &NodeObject) -> bool {
    noted(node, TAKEN_OUT).is_some()
}

/// Whether a taint stands by which the cluster acts, and which Ringfence has not set: of whichever effect.
pub(super) fn is_tainted_by_others(node: &NodeObject) -> bool {
    let mut taints = node.spec.taints.iter();
    !is_taken_out(node) && taints.any(|taint| taint.key == OUT_OF_SERVICE)
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
    fn a_node_that_is_back_in_service_is_not_taken_out_by_the_way() {
        let taken_out = |node: &NodeObject| noted(node, TAKEN_OUT).map(str::to_owned);
        let mut node = node(vec![taint(FENCED, None)], true, &[TAKEN_OUT]);
        assert!(marks(&node).was_put_back, "others have taken the taint away");
        let after = changed(&node, put_back);
        let ended = after.annotations[TAKEN_OUT].clone().unwrap();
        node.metadata.annotations = Some([(TAKEN_OUT.to_owned(), ended)].into());
        assert!(taken_out(&node).is_some(), "it is not released");
        assert!(!marks(&node).was_put_back);
        // A taint of this time is another program's, and an evacuation makes it Ringfence's again only where there is none.
        node.spec.taints.push(taint(OUT_OF_SERVICE, None));
        assert!(is_tainted_by_others(&node));
        assert_eq!(changed(&node, put_back).taints, node.spec.taints);
        assert!(changed(&node, take_out).annotations.is_empty());
        node.spec.taints.pop();
        assert_eq!(
            changed(&node, take_out).annotations[TAKEN_OUT].as_deref(),
            Some(YES)
        );
    }

    #[test]
    fn a_taint_of_another_effect_is_not_ours() {
        let theirs = Taint {
            effect: "NoSchedule".to_owned(),
            ..taint(OUT_OF_SERVICE, Some("by-hand"))
        };
        let once = changed(&node(vec![theirs.clone()], false, &[]), take_out);
        let node = node(once.taints, true, &[CORDONED, TAKEN_OUT]);
        let after = changed(&node, |node, marks| {
            put_back(node, marks);
            release(node, marks);
        });
        assert_eq!(after.taints, [theirs]);
    }

    fn effect(marks: &Marks) -> Vec<&str> {
        let ours = marks.taints.iter().filter(|taint| taint.key == FENCED);
        ours.map(|taint| taint.effect.as_str()).collect()
    }

    #[test]
    fn a_node_whose_pods_go_one_by_one_loses_none_to_our_taint_until_the_last_has_gone() {
        let begun = changed(&node(Vec::new(), false, &[]), hold_one_by_one);
        assert_eq!(effect(&begun), [NO_SCHEDULE]);
        let held = node(begun.taints, true, &[CORDONED, ONE_BY_ONE]);
        let seen = marks(&held);
        assert!(seen.is_isolated && seen.is_kept_off);
        assert_eq!(effect(&changed(&held, hold)), [NO_SCHEDULE]);
        // Others have wiped it.
        let wiped = node(Vec::new(), true, &[CORDONED, ONE_BY_ONE]);
        assert!(!marks(&wiped).is_isolated);
        assert_eq!(effect(&changed(&wiped, hold)), [NO_SCHEDULE]);
        for whole in [close, hold_all, take_out] {
            let after = changed(&held, whole);
            assert_eq!(effect(&after), [NO_EXECUTE]);
            assert_eq!(after.annotations[ONE_BY_ONE], None);
        }
        let released = changed(&held, release);
        assert!(released.taints.is_empty() && released.annotations[ONE_BY_ONE].is_none());
    }

    #[test]
    fn what_has_begun_to_delete_pods_is_not_weakened_and_a_node_of_no_such_segment_needs_it() {
        let whole = changed(&node(Vec::new(), false, &[]), hold_all);
        let whole = node(whole.taints, true, &[CORDONED]);
        assert_eq!(effect(&changed(&whole, hold_one_by_one)), [NO_EXECUTE]);
        assert_eq!(changed(&whole, close), Marks::of(&whole));
        let weak = Taint {
            effect: NO_SCHEDULE.to_owned(),
            ..taint(FENCED, None)
        };
        let weak = node(vec![weak], true, &[CORDONED]);
        assert!(!marks(&weak).is_isolated, "it is put back");
        assert_eq!(effect(&changed(&weak, hold)), [NO_EXECUTE]);
    }

    #[test]
    fn a_second_time_changes_nothing() {
        let once = changed(&node(Vec::new(), false, &[]), take_out);
        let node = node(once.taints.clone(), true, &[CORDONED, TAKEN_OUT]);
        assert_eq!(changed(&node, take_out).taints, once.taints);
        assert!(changed(&node, take_out).annotations.is_empty());
    }
}
