//! What a plan can prove when a zone has no workers.

use ringfence_core::*;

use ringfence_world::plans::*;

fn served(resources: &'static [Resource]) -> impl Fn(Resource, &str) -> bool {
    move |resource, zone| zone == "here" && resources.contains(&resource)
}

#[test]
fn a_task_needs_one_level_that_is_served_as_a_whole() {
    let mut elsewhere = method_with("far", Resource::Power, MethodTimes::default());
    elsewhere.zone = "there".to_owned();
    let near = method_with("near", Resource::Power, MethodTimes::default());
    let with = |levels: Vec<Vec<FrozenMethod>>| {
        plan(vec![vec![FrozenTask {
            kind: FencingKind::PowerOff,
            levels,
        }]])
    };
    let both = with(vec![vec![near.clone(), elsewhere.clone()]]);
    assert!(!both.can_prove_alone(false, served(&[Resource::Power])));
    let either = with(vec![vec![elsewhere], vec![near]]);
    assert!(either.can_prove_alone(false, served(&[Resource::Power])));
    assert!(!either.can_prove_alone(false, served(&[])));
    assert!(
        either.can_prove_alone(true, served(&[])),
        "the hosts' watchdogs prove it by themselves"
    );
    let needs: Vec<_> = either.needs().into_iter().map(|(_, zone)| zone).collect();
    assert_eq!(needs, ["here", "there"]);
}

#[test]
fn half_of_a_set_proves_nothing() {
    let plan = cut_off_plan();
    assert!(!plan.can_prove_alone(false, served(&[Resource::Storage])));
    assert!(plan.can_prove_alone(false, served(&[Resource::Storage, Resource::Network])));
}

#[test]
fn a_plan_without_tasks_needs_a_person() {
    assert!(!plan(Vec::new()).can_prove_alone(false, |_, _| true));
}

#[test]
fn a_method_that_is_not_trusted_proves_nothing_wherever_it_is_served() {
    let mut plan = cut_off_plan();
    plan.stages[0].tasks[1].levels[0][0].can_prove = false;
    assert!(!plan.can_prove_alone(false, served(&[Resource::Storage, Resource::Network])));
}
