//! What a fence of a host would cost a Ceph.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;
use ringfence_core::*;
use ringfence_world::World;
use ringfence_world::plans::{self, power_plan, start};

fn group(id: &str, state: &str, acting: &[i32]) -> PlacementGroup {
    PlacementGroup {
        id: id.to_owned(),
        state: state.to_owned(),
        acting: acting.to_vec(),
    }
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Three hosts with two OSDs and a monitor each; pool 1 takes writes with two OSDs.
fn maps(groups: Vec<PlacementGroup>) -> CephMaps {
    let hosts = ["a", "b", "c"];
    let osd = |id: i32, host: &str| {
        let osd = CephOsd {
            is_up: true,
            is_in: true,
            hosts: names(&[host]),
            domain: Some(host.to_owned()),
        };
        (id, osd)
    };
    let monitor = |host: &str| CephMonitor {
        hosts: names(&[host]),
        is_in_quorum: true,
    };
    CephMaps {
        fsid: "f".to_owned(),
        osds: (0..6).map(|id| osd(id, hosts[id as usize / 2])).collect(),
        monitors: hosts.map(monitor).into(),
        pools: BTreeMap::from([(
            1,
            CephPool {
                min_size: 2,
                groups: 1,
            },
        )]),
        groups,
    }
}

fn policy() -> SegmentPolicy {
    SegmentPolicy {
        fencing: FencingPolicy {
            automatic: true,
            after_s: 0,
            ceph: vec!["main".to_owned()],
            ..FencingPolicy::default()
        },
        ..plans::policy()
    }
}

/// What is ruled of a silent host whose Ceph gave this answer.
fn ruling(answer: Result<CephSurvey, String>, age_s: i64) -> Ruling {
    let all = rulings_of([("main", answer)], age_s);
    assert_eq!(all.len(), 1, "{all:?}");
    all[0].clone()
}

/// What is ruled of a silent host whose segment names several, which gave these answers.
fn rulings_of<const N: usize>(answers: [(&str, Result<CephSurvey, String>); N], age_s: i64) -> Vec<Ruling> {
    let mut policy = policy();
    policy.fencing.ceph = answers.iter().map(|(name, _)| (*name).to_owned()).collect();
    let mut world = World::new(power_plan(), policy);
    let _ = world.see(FailureState::Unreachable);
    let opinions = Opinions {
        asked_at: Some(start()),
        ceph: answers.map(|(name, answer)| (name.to_owned(), answer)).into(),
        ..Opinions::default()
    };
    let now = start() + TimeDelta::seconds(age_s);
    rulings(
        &world.state,
        Cause::Silence,
        FailureState::Unreachable,
        &Neighbourhood::default(),
        &opinions,
        now,
    )
}

#[track_caller]
fn survey_says(survey: CephSurvey, verdict: Verdict, part: &str) {
    let ruling = ruling(Ok(survey), 0);
    assert_eq!(ruling.verdict, verdict, "{ruling:?}");
    assert!(ruling.reason.contains(part), "{ruling:?}");
    assert_eq!(ruling.release.is_some(), ruling.holds(), "{ruling:?}");
}

#[track_caller]
fn says(maps: &CephMaps, host: &str, is_ok_to_stop: Option<bool>, verdict: Verdict, part: &str) {
    survey_says(maps.survey(host, &[], is_ok_to_stop), verdict, part);
}

fn healthy() -> CephMaps {
    maps(vec![
        group("1.0", "active+clean", &[0, 2, 4]),
        group("1.1", "active+clean+scrubbing+deep", &[1, 3, 5]),
    ])
}

fn down(maps: &mut CephMaps, osds: &[i32]) {
    for id in osds {
        maps.osds.get_mut(id).unwrap().is_up = false;
    }
}

#[test]
fn a_host_is_fenced_where_each_ceph_of_its_segment_goes_on_without_it() {
    let fine = || Ok(healthy().survey("a", &[], Some(true)));
    let mut hurt = healthy();
    down(&mut hurt, &[2]);
    let verdicts = |other: Result<CephSurvey, String>| -> Vec<Verdict> {
        let all = rulings_of([("archive", other), ("main", fine())], 0);
        all.iter().map(|ruling| ruling.verdict).collect()
    };
    assert_eq!(verdicts(fine()), [Verdict::Allow, Verdict::Allow]);
    // A Ceph of which the host carries nothing.
    assert_eq!(
        verdicts(Ok(hurt.survey("z", &[], None))),
        [Verdict::Allow, Verdict::Allow]
    );
    assert_eq!(
        verdicts(Ok(hurt.survey("a", &[], Some(true)))),
        [Verdict::Hold, Verdict::Allow]
    );
    assert_eq!(
        verdicts(Err("no monitor answers".to_owned())),
        [Verdict::Unknown, Verdict::Allow]
    );
}

#[test]
fn a_host_is_fenced_where_all_groups_are_clean_and_go_on_without_it() {
    says(
        &healthy(),
        "a",
        Some(true),
        Verdict::Allow,
        "goes on without the 2 OSDs",
    );
}

#[test]
fn a_host_without_osds_is_never_held() {
    let sick = maps(vec![group("1.0", "down", &[])]);
    says(
        &sick,
        "compute-1",
        None,
        Verdict::Allow,
        "no OSD of Ceph main is on the host",
    );
}

#[test]
fn a_host_whose_osds_are_all_down_already_is_not_held_by_its_own_failure() {
    let mut after = maps(vec![group("1.0", "active+undersized+degraded", &[2, 4])]);
    down(&mut after, &[0, 1]);
    says(
        &after,
        "a",
        None,
        Verdict::Allow,
        "all 2 OSDs of the host in Ceph main are down already",
    );
    // Another host waits until the groups are clean again.
    says(
        &after,
        "b",
        Some(true),
        Verdict::Hold,
        "1 of 1 placement groups of Ceph main are not active and clean",
    );
}

#[test]
fn what_fails_as_a_whole_may_be_fenced_as_a_whole() {
    let mut after = maps(vec![
        group("1.0", "active+undersized+degraded", &[2, 4]),
        group("1.1", "active+clean", &[1, 3, 5]),
    ]);
    down(&mut after, &[0]);
    says(
        &after,
        "a",
        Some(true),
        Verdict::Allow,
        "goes on without the 1 OSDs",
    );
    says(
        &after,
        "b",
        Some(true),
        Verdict::Hold,
        "1.0 (active+undersized+degraded)",
    );
    // Hosts of one rack, where the pools spread over racks.
    for id in 0..4 {
        after.osds.get_mut(&id).unwrap().domain = Some("rack-1".to_owned());
    }
    after.groups = vec![
        group("1.0", "active+undersized+degraded", &[4, 5]),
        group("1.1", "active+clean", &[3, 4, 5]),
    ];
    says(&after, "b", Some(true), Verdict::Allow, "goes on");
    says(&after, "c", Some(true), Verdict::Hold, "not active and clean");
    // A group that is not clean may need the host.
    after.groups[0].acting = vec![2, 4, 5];
    says(&after, "b", Some(true), Verdict::Hold, "not active and clean");
    // Nothing is known to be missing: the groups are unclean for another reason.
    after.osds.get_mut(&0).unwrap().is_in = false;
    after.groups[0].acting = vec![4, 5];
    says(&after, "b", Some(true), Verdict::Hold, "not active and clean");
}

#[test]
fn a_group_that_tells_its_state_late_is_not_clean() {
    let mut late = maps(vec![
        group("1.0", "active+clean", &[0, 2, 4]),
        group("1.1", "active+clean", &[3, 5]),
    ]);
    down(&mut late, &[0]);
    says(&late, "c", Some(true), Verdict::Hold, "1 of 2 placement groups");
}

#[test]
fn a_fence_that_ceph_has_not_noticed_yet_counts() {
    let mut maps = healthy();
    maps.monitors.clear();
    let survey = maps.survey("b", &["a".to_owned(), "elsewhere".to_owned()], Some(true));
    survey_says(
        survey,
        Verdict::Hold,
        "2 of 2 placement groups of Ceph main are not active and clean, as 1.0 (active+clean); those of a, which are FENCED or being fenced, are counted as lost",
    );
    maps.groups = vec![group("1.0", "active+clean", &[2, 4, 5])];
    survey_says(
        maps.survey("c", &["a".to_owned()], Some(true)),
        Verdict::Hold,
        "would take no writes",
    );
}

#[test]
fn a_host_is_known_by_the_first_label_of_its_name_unless_ceph_knows_the_whole() {
    let mut maps = healthy();
    assert_eq!(maps.up_on("a.example.org"), [0, 1]);
    assert_eq!(maps.up_on("aa"), [] as [i32; 0]);
    maps.osds.get_mut(&0).unwrap().hosts = names(&["a.example.org"]);
    assert_eq!(maps.up_on("a.example.org"), [0]);
    assert_eq!(maps.up_on("a"), [1]);
    assert_eq!(maps.up_on("a.other.org"), [0, 1]);
}

#[test]
fn a_group_that_would_take_no_writes_without_the_host_holds_whatever_ceph_answers() {
    // The last acting OSD is elsewhere: what Ceph's own answer once passed over.
    let thin = maps(vec![group("1.0", "active+clean", &[0, 1, 4])]);
    says(
        &thin,
        "a",
        Some(true),
        Verdict::Hold,
        "1 of 1 placement groups of Ceph main would take no writes",
    );
    says(&thin, "c", Some(true), Verdict::Allow, "goes on");
    let of_unknown_pool = maps(vec![group("7.0", "active+clean", &[0, 2, 4])]);
    says(&of_unknown_pool, "a", Some(true), Verdict::Hold, "7.0");
    // A number that stands for no OSD is none that is left.
    let with_holes = maps(vec![group("1.0", "active+clean", &[0, 2147483647, 4, -1])]);
    says(&with_holes, "c", Some(true), Verdict::Hold, "1.0");
}

#[test]
fn a_host_without_which_the_monitors_have_no_majority_is_held() {
    let mut maps = healthy();
    maps.monitors[1].is_in_quorum = false;
    says(
        &maps,
        "a",
        Some(true),
        Verdict::Hold,
        "without it 1 of 3 would be left in the quorum",
    );
    // Its monitor has left the quorum already.
    says(&maps, "b", Some(true), Verdict::Allow, "goes on");
    maps.monitors[1].is_in_quorum = true;
    survey_says(
        maps.survey("c", &["b".to_owned()], Some(true)),
        Verdict::Hold,
        "no majority",
    );
}

#[test]
fn what_ceph_itself_says_holds_too_and_what_is_not_known_holds() {
    says(&healthy(), "a", Some(false), Verdict::Hold, "cannot be stopped");
    says(&healthy(), "a", None, Verdict::Unknown, "was not asked");
    let gone = ruling(Err("no monitor answered within 10 s".to_owned()), 0);
    assert_eq!(gone.verdict, Verdict::Unknown);
    assert!(gone.reason.ends_with("no monitor answered within 10 s"));
    let survey = healthy().survey("a", &[], Some(true));
    let at = |seconds| ruling(Ok(survey.clone()), seconds).verdict;
    assert_eq!((at(30), at(31)), (Verdict::Allow, Verdict::Unknown));
}

#[test]
fn a_manager_that_has_just_begun_has_not_told_of_all_groups() {
    let mut maps = healthy();
    assert!(maps.is_complete());
    maps.pools.get_mut(&1).unwrap().groups = 3;
    assert!(!maps.is_complete());
}

#[test]
fn only_what_is_active_and_clean_is_clean() {
    for (state, is_clean) in [
        ("active+clean", true),
        ("active+clean+snaptrim_wait", true),
        ("active+clean+scrubbing+deep", true),
        ("active", false),
        ("active+clean+inconsistent", false),
        ("active+remapped+backfilling", false),
        ("clean", false),
        ("unknown", false),
        ("peering+clean", false),
    ] {
        let maps = maps(vec![group("1.0", state, &[0, 2, 4])]);
        let unclean = maps.survey("a", &[], Some(true)).unclean;
        assert_eq!(unclean == 0, is_clean, "{state}");
    }
}

/// A fence that has begun by itself, and whose first step of two is done.
fn after_its_first_step() -> World {
    let step = |kind, method| vec![plans::task(kind, &[&[method]])];
    let steps = vec![
        step(FencingKind::NetworkFence, "switch"),
        step(FencingKind::PowerOff, "bmc"),
    ];
    let mut world = World::new(plans::plan(steps), policy());
    say(&mut world, healthy());
    let _ = world.see(FailureState::Unreachable);
    world.pass(6_000);
    world
}

/// Ceph is asked now, and says this of a host with OSDs.
fn say(world: &mut World, maps: CephMaps) {
    world.opinions = Opinions {
        asked_at: Some(world.now),
        ceph: [("main".to_owned(), Ok(maps.survey("a", &[], Some(true))))].into(),
        ..Opinions::default()
    };
}

fn sick() -> CephMaps {
    let mut maps = healthy();
    down(&mut maps, &[4]);
    maps
}

fn live(world: &World) -> &Operation {
    world.state.operation.as_ref().unwrap()
}

fn power_is_asked_for(world: &World) -> bool {
    live(world)
        .tasks()
        .any(|task| task.kind() == FencingKind::PowerOff && !task.attempts.is_empty())
}

#[test]
fn a_fence_that_waits_for_its_turn_keeps_its_place_before_ceph_is_asked() {
    let mut policy = policy();
    policy.fencing.at_once = Some(1);
    let mut world = World::new(power_plan(), policy);
    world.others.under_way = 1;
    let _ = world.see(FailureState::Unreachable);
    world.pass(6_000);
    assert!(live(&world).is_in_line());
    assert!(!live(&world).detail.contains("Ceph"), "{}", live(&world).detail);
    world.others.under_way = 0;
    assert!(asks_others(&world.state, &world.others, world.now));
    // An engine asks, and gets no answer.
    world.opinions = Opinions {
        asked_at: Some(world.now),
        ceph: [("main".to_owned(), Err("no monitor answered".to_owned()))].into(),
        ..Opinions::default()
    };
    world.pass(6_000);
    assert!(!live(&world).is_in_line());
    assert!(live(&world).detail.contains("no monitor answered"));
}

#[test]
fn the_next_step_waits_for_what_ceph_says_then() {
    let mut world = after_its_first_step();
    assert_eq!(live(&world).status, OperationStatus::Running);
    let permits = live(&world).permits().to_vec();
    say(&mut world, sick());
    world.work_off();
    assert!(!power_is_asked_for(&world));
    assert_eq!(
        live(&world).detail,
        "its safeguards are looked at before its next step"
    );
    world.pass(1_000);
    assert_eq!(live(&world).status, OperationStatus::Held);
    assert!(live(&world).detail.contains("not active and clean"));
    world.pass(20_000);
    world.work_off();
    assert!(!power_is_asked_for(&world));
    say(&mut world, healthy());
    world.pass(6_000);
    assert_eq!(live(&world).status, OperationStatus::Running);
    assert_eq!(live(&world).permits(), permits);
    assert!(power_is_asked_for(&world));
    world.work_off();
    assert!(world.is_fenced());
}

#[test]
fn a_fence_that_has_begun_goes_on_though_its_segment_fences_no_more() {
    let mut world = after_its_first_step();
    world.state.policy.fencing.automatic = false;
    world.work_off();
    say(&mut world, healthy());
    world.pass(1_000);
    assert!(power_is_asked_for(&world));
}

#[test]
fn a_word_that_fences_the_host_ends_the_wait_between_two_steps() {
    let mut world = after_its_first_step();
    say(&mut world, sick());
    world.work_off();
    world.pass(1_000);
    assert_eq!(live(&world).status, OperationStatus::Held);
    let generation = world.state.host.generation.0;
    world.confirm(generation, plans::person("anna"), false).unwrap();
    assert!(world.is_fenced());
    world.pass(60_000);
    world.work_off();
    let held = |line: &String| line.contains("operation.held");
    assert_eq!(world.take_log().iter().filter(|line| held(line)).count(), 1);
}

#[test]
fn a_step_with_a_delay_asks_when_its_time_has_come() {
    let step = |kind, method| vec![plans::task(kind, &[&[method]])];
    let steps = vec![
        step(FencingKind::NetworkFence, "switch"),
        step(FencingKind::PowerOff, "bmc"),
    ];
    let mut plan = plans::plan(steps);
    plan.stages[1].delay_s = 60;
    let mut world = World::new(plan, policy());
    say(&mut world, healthy());
    let _ = world.see(FailureState::Unreachable);
    world.pass(6_000);
    world.work_off();
    world.pass(30_000);
    assert_eq!(look_due(world.state.operation.as_ref()), None);
    say(&mut world, sick());
    world.pass(35_000);
    assert!(
        live(&world).detail.contains("looked at before its next step"),
        "{}",
        live(&world).detail
    );
    say(&mut world, healthy());
    world.pass(6_000);
    assert!(power_is_asked_for(&world));
}

#[test]
fn a_held_fence_that_has_begun_is_kept_in_the_record() {
    let mut world = after_its_first_step();
    say(&mut world, sick());
    world.work_off();
    world.pass(1_000);
    let record = Record::of(&world.state).unwrap();
    assert!(record.unfinished.is_some());
    assert!(record.is_silence_answered);
}

#[test]
fn a_step_that_nothing_holds_begins_within_a_tick() {
    let mut world = after_its_first_step();
    world.work_off();
    say(&mut world, healthy());
    world.pass(1);
    world.work_off();
    assert!(world.is_fenced());
    assert!(
        !world
            .take_log()
            .iter()
            .any(|line| line.contains("operation.held"))
    );
}

#[test]
fn a_person_lets_the_next_step_begin_whatever_ceph_says() {
    let mut world = after_its_first_step();
    say(&mut world, sick());
    world.work_off();
    world.pass(1_000);
    world.retry().unwrap();
    world.work_off();
    assert!(world.is_fenced());
    let mut joined = after_its_first_step();
    say(&mut joined, sick());
    joined.work_off();
    let id = joined.live_id();
    assert_eq!(joined.fence(), Ok(Reply::Joined(id)));
    assert_eq!(look_due(joined.state.operation.as_ref()), None);
    joined.work_off();
    assert!(joined.is_fenced());
}

#[test]
fn a_fence_that_a_person_asks_for_does_not_wait_for_ceph() {
    let step = |kind, method| vec![plans::task(kind, &[&[method]])];
    let steps = vec![
        step(FencingKind::NetworkFence, "switch"),
        step(FencingKind::PowerOff, "bmc"),
    ];
    let mut world = World::new(plans::plan(steps), policy());
    world.fence().unwrap();
    world.work_off();
    assert!(world.is_fenced());
}

#[test]
fn between_two_steps_a_suspended_fence_asks_only_when_it_goes_on() {
    let mut world = after_its_first_step();
    world.work_off();
    let until = world.now + TimeDelta::hours(1);
    world.suspend(SuspensionScope::Host, Some(until));
    assert_eq!(look_due(world.state.operation.as_ref()), None);
    world.pass(60_000);
    assert!(!power_is_asked_for(&world));
    world.resume(SuspensionScope::Host);
    say(&mut world, healthy());
    world.pass(6_000);
    assert!(power_is_asked_for(&world));
}
