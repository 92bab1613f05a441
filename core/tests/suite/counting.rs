//! Which hosts of a cloud Ringfence has.

use ringfence_core::*;

fn of<'a>(name: &'a str, cloud: Option<&'a str>, known_as: &'a str) -> Listed<'a> {
    Listed {
        name,
        cloud,
        known_as,
    }
}

fn new(name: &str, known_as: Option<&str>) -> Newcomer {
    Newcomer {
        name: name.to_owned(),
        known_as: known_as.map(str::to_owned),
    }
}

#[test]
fn a_host_keeps_its_name_where_it_is_free() {
    let listed = [of("c1", Some("east"), "c1")];
    let found = census((Backend::Nova, "east"), "", &["c2", "c1", "c2"], &listed);
    assert_eq!(found.new, [new("c2", None)]);
    assert_eq!((found.missing.len(), found.barred.len()), (0, 0));
}

#[test]
fn a_host_whose_name_another_cloud_has_gets_its_own_cloud_as_a_prefix() {
    let listed = [of("c1", Some("west"), "c1")];
    let found = census((Backend::Nova, "east"), "", &["c1"], &listed);
    assert_eq!(found.new, [new("east-c1", Some("c1"))]);
    let again = [listed[0], of("east-c1", Some("east"), "c1")];
    assert_eq!(
        census((Backend::Nova, "east"), "", &["c1"], &again),
        Census::default(),
        "a second import adds no host"
    );
    let all = [listed[0], of("east-c1", Some("north"), "c1")];
    let found = census((Backend::Nova, "east"), "", &["c1"], &all);
    assert_eq!(found.new, []);
    assert!(found.barred[0].1.contains("is taken"), "{found:?}");
}

#[test]
fn a_prefix_is_put_before_every_name() {
    let found = census((Backend::Nova, "east"), "e.", &["c1"], &[]);
    assert_eq!(found.new, [new("e.c1", Some("c1"))]);
}

#[test]
fn a_host_without_a_cloud_that_may_be_identical_is_left_to_a_person() {
    let listed = [of("c1", None, "c1")];
    for prefix in ["", "e."] {
        let found = census((Backend::Nova, "east"), prefix, &["c1"], &listed);
        assert_eq!(found.new, []);
        assert_eq!(found.barred[0].0, "c1");
        assert!(found.barred[0].1.contains("may be this host"), "{found:?}");
    }
}

#[test]
fn an_invalid_name_is_refused_with_its_value() {
    let found = census((Backend::Nova, "east"), "", &["rack 1/c1"], &[]);
    assert_eq!(found.new, []);
    assert!(found.barred[0].1.contains("\"rack 1/c1\""), "{found:?}");
}

#[test]
fn hosts_that_the_cloud_does_not_have_are_reported() {
    let listed = [
        of("a", Some("east"), "c1"),
        of("c", Some("east"), "gone"),
        of("d", Some("west"), "gone"),
    ];
    assert_eq!(
        census((Backend::Nova, "east"), "", &["c1"], &listed).missing,
        ["c"]
    );
}
