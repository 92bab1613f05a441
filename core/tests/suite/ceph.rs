//! What a fence of a host would cost a Ceph.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use ringfence_core::{CephMaps, PlacementGroup, Ruling, Verdict, ceph_ruling};
use ringfence_world::plans::start;

fn group(id: &str, state: &str, acting: &[i32]) -> PlacementGroup {
    PlacementGroup {
        id: id.to_owned(),
        state: state.to_owned(),
        acting: acting.to_vec(),
    }
}

/// Three hosts with two OSDs each; pool 1 takes writes with two of them.
fn maps(groups: Vec<PlacementGroup>) -> CephMaps {
    let host =
        |name: &str, osds: [i32; 2]| (name.to_owned(), osds.map(|osd| (osd, true)).into_iter().collect());
    CephMaps {
        hosts: BTreeMap::from([host("a", [0, 1]), host("b", [2, 3]), host("c", [4, 5])]),
        min_sizes: BTreeMap::from([(1, 2)]),
        groups,
    }
}

fn ruling(maps: &CephMaps, host: &str, is_ok_to_stop: Option<bool>) -> Option<Ruling> {
    ceph_ruling("main", Ok(&maps.survey(host, is_ok_to_stop, start())), start())
}

#[track_caller]
fn says(maps: &CephMaps, host: &str, is_ok_to_stop: Option<bool>, verdict: Verdict, part: &str) {
    let ruling = ruling(maps, host, is_ok_to_stop).unwrap();
    assert_eq!(ruling.verdict, verdict, "{ruling:?}");
    assert!(ruling.reason.contains(part), "{ruling:?}");
    assert_eq!(ruling.release.is_some(), ruling.holds(), "{ruling:?}");
}

fn healthy() -> CephMaps {
    maps(vec![
        group("1.0", "active+clean", &[0, 2, 4]),
        group("1.1", "active+clean+scrubbing+deep", &[1, 3, 5]),
    ])
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
    assert_eq!(ruling(&sick, "compute-1", None), None);
}

#[test]
fn a_host_whose_osds_are_all_down_already_is_not_held_by_its_own_failure() {
    let mut after = maps(vec![group("1.0", "active+undersized+degraded", &[2, 4])]);
    after
        .hosts
        .get_mut("a")
        .unwrap()
        .values_mut()
        .for_each(|is_up| *is_up = false);
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
    // One of its OSDs that is up still makes it a host like any other.
    after.hosts.get_mut("a").unwrap().insert(1, true);
    says(
        &after,
        "a",
        Some(true),
        Verdict::Hold,
        "1.0 (active+undersized+degraded)",
    );
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
        "1 placement groups of Ceph main would take no writes",
    );
    says(&thin, "c", Some(true), Verdict::Allow, "goes on");
    let of_unknown_pool = maps(vec![group("7.0", "active+clean", &[0, 2, 4])]);
    says(&of_unknown_pool, "a", Some(true), Verdict::Hold, "7.0");
    // A number that stands for no OSD is none that is left.
    let with_holes = maps(vec![group("1.0", "active+clean", &[0, 2147483647, 4, -1])]);
    says(&with_holes, "c", Some(true), Verdict::Hold, "1.0");
}

#[test]
fn what_ceph_itself_says_holds_too_and_what_is_not_known_holds() {
    says(&healthy(), "a", Some(false), Verdict::Hold, "cannot be stopped");
    says(&healthy(), "a", None, Verdict::Unknown, "was not asked");
    let gone = ceph_ruling("main", Err("no monitor answered within 10 s"), start()).unwrap();
    assert_eq!(gone.verdict, Verdict::Unknown);
    assert!(gone.reason.ends_with("no monitor answered within 10 s"));
    let survey = healthy().survey("a", Some(true), start());
    let at = |seconds| {
        ceph_ruling("main", Ok(&survey), start() + TimeDelta::seconds(seconds))
            .unwrap()
            .verdict
    };
    assert_eq!((at(30), at(31)), (Verdict::Allow, Verdict::Unknown));
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
        let unclean = maps(vec![group("1.0", state, &[0, 2, 4])])
            .survey("a", Some(true), start())
            .unclean;
        assert_eq!(unclean == 0, is_clean, "{state}");
    }
}
