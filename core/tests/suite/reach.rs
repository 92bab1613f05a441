//! What a plan can prove if a zone has no workers.

use ringfence_core::*;

use ringfence_world::plans::*;

fn served(resources: &'static [Resource]) -> impl Fn(&FrozenMethod) -> bool {
    move |method| method.zone == "here" && resources.contains(&method.resource)
}

fn can_prove_alone(plan: &FrozenPlan, has_watchdog: bool, is_usable: impl Fn(&FrozenMethod) -> bool) -> bool {
    !plan.sets_within_reach(has_watchdog, is_usable).is_empty()
}

#[test]
fn a_task_needs_one_level_with_workers_for_all_methods() {
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
    assert!(!can_prove_alone(&both, false, served(&[Resource::Power])));
    let either = with(vec![vec![elsewhere], vec![near]]);
    assert!(can_prove_alone(&either, false, served(&[Resource::Power])));
    assert!(!can_prove_alone(&either, false, served(&[])));
    assert!(
        can_prove_alone(&either, true, served(&[])),
        "the hosts' watchdogs prove the fence without a worker"
    );
    let needs: Vec<_> = either.needs().into_iter().map(|(_, zone)| zone).collect();
    assert_eq!(needs, ["here", "there"]);
}

#[test]
fn an_incomplete_set_proves_nothing() {
    let plan = cut_off_plan();
    assert!(!can_prove_alone(&plan, false, served(&[Resource::Storage])));
    assert!(can_prove_alone(
        &plan,
        false,
        served(&[Resource::Storage, Resource::Network])
    ));
}

#[test]
fn a_plan_without_tasks_needs_a_person() {
    assert!(!can_prove_alone(&plan(Vec::new()), false, |_| true));
}

#[test]
fn an_untrusted_method_proves_nothing_in_any_zone() {
    let mut plan = cut_off_plan();
    plan.stages[0].tasks[1].levels[0][0].can_prove = false;
    assert!(!can_prove_alone(
        &plan,
        false,
        served(&[Resource::Storage, Resource::Network])
    ));
}

#[test]
fn a_set_within_reach_names_the_methods_that_would_win_it() {
    let plan = cut_off_plan();
    let sets = plan.sets_within_reach(false, |_| true);
    let names: Vec<Vec<&str>> = sets
        .iter()
        .map(|set| {
            set.values()
                .flatten()
                .map(|method| method.name.as_str())
                .collect()
        })
        .collect();
    assert_eq!(names, [["ceph", "switch"]]);
    let both = plan.sets_within_reach(false, |method| method.name != "switch");
    assert!(both.is_empty(), "{both:?}");
}
