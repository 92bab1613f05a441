use ringfence_core::*;

use super::drivers::{drivers, method};
use super::plans::{methods, plan, spec};
use ringfence_world::plans::host;

#[test]
fn a_plan_is_frozen_with_its_levels_in_order() {
    let plan = plan(vec![vec![spec(
        FencingKind::PowerOff,
        &[(9, &["pdu"]), (2, &["bmc"])],
    )]]);
    let frozen = resolve(&drivers(), &plan, &methods(), &host()).unwrap();
    let levels: Vec<Vec<&str>> = frozen.stages[0].tasks[0]
        .levels
        .iter()
        .map(|level| level.iter().map(|m| m.name.as_str()).collect())
        .collect();
    assert_eq!(levels, [["bmc"], ["pdu"]]);
    assert_eq!(frozen.sufficient_sets, plan.sufficient_sets);
}

#[test]
fn the_hosts_own_name_id_zone_and_values_are_filled_in() {
    let parameters = [
        ("agent", "fence_dummy"),
        ("status_file", "/run/${host.zone}/${host.name}"),
        ("plug", "1"),
        ("random", "${host.id}"),
    ];
    let agent = method("dummy", "agent", Resource::Power, &parameters);
    let mut host = host();
    let own = Parameters::from([("plug".to_owned(), "7".to_owned())]);
    host.parameters.insert("dummy".to_owned(), own);
    let frozen = FrozenMethod::new(&drivers(), &agent, &host).unwrap();
    assert_eq!(frozen.parameters["status_file"], "/run/here/compute1");
    assert_eq!(frozen.parameters["plug"], "7");
    assert_eq!(frozen.parameters["random"], host.id.to_string());
    assert_eq!(frozen.zone, "here");
}

#[test]
fn a_method_with_a_zone_of_its_own_keeps_it() {
    let mut bmc = methods()["bmc"].clone();
    bmc.zone = Some("management".to_owned());
    assert_eq!(
        FrozenMethod::new(&drivers(), &bmc, &host()).unwrap().zone,
        "management"
    );
}

#[test]
fn an_unknown_placeholder_is_refused_with_the_known_ones() {
    for (value, words) in [("${host.nme}", "${host.name}"), ("${host.name", "without a")] {
        let bad = method("sim", "outlet", Resource::Power, &[("device", value)]);
        let problems = FrozenMethod::new(&drivers(), &bad, &host()).unwrap_err();
        assert!(problems.to_string().contains(words), "{problems}");
    }
}

#[test]
fn a_method_that_was_deleted_is_a_problem_of_the_plan() {
    let plan = plan(vec![vec![spec(FencingKind::PowerOff, &[(1, &["gone"])])]]);
    let problems = resolve(&drivers(), &plan, &methods(), &host()).unwrap_err();
    assert!(problems.to_string().contains("\"gone\""), "{problems}");
}

#[test]
fn a_host_cannot_set_the_action_of_an_agent() {
    let agent = method("dummy", "agent", Resource::Power, &[("agent", "fence_dummy")]);
    for (key, value) in [("action", "on"), ("action", "off")] {
        let mut host = host();
        let own = Parameters::from([(key.to_owned(), value.to_owned())]);
        host.parameters.insert("dummy".to_owned(), own);
        assert!(
            FrozenMethod::new(&drivers(), &agent, &host).is_err(),
            "{key}={value}"
        );
    }
}

#[test]
fn a_cloud_is_the_hosts_own_unless_the_method_names_another() {
    let ports = method("ports", "ports", Resource::Network, &[]);
    let problems = FrozenMethod::new(&drivers(), &ports, &host()).unwrap_err();
    assert!(
        problems.to_string().contains("compute1 names no cloud"),
        "{problems}"
    );

    let mut host = host();
    host.cloud = Some("east".to_owned());
    host.known_as = Some("node-7".to_owned());
    let place = |method: &Method, name: &str| {
        let frozen = FrozenMethod::new(&drivers(), method, &host).unwrap();
        (
            frozen.parameters["cloud"].clone(),
            frozen.parameters[name].clone(),
        )
    };
    assert_eq!(place(&ports, "host"), ("east".to_owned(), "node-7".to_owned()));
    let own = [("cloud", "metal"), ("host", "${host.name}")];
    let other = method("other", "ports", Resource::Network, &own);
    assert_eq!(place(&other, "host"), ("metal".to_owned(), "compute1".to_owned()));
}
