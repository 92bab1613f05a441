use std::collections::BTreeMap;

use ringfence_core::*;

use super::expect_fault;

fn given(method: &str, key: &str, value: &str) -> BTreeMap<String, Parameters> {
    let values = Parameters::from([(key.to_owned(), value.to_owned())]);
    BTreeMap::from([(method.to_owned(), values)])
}

static NONE: Labels = Labels::new();

fn host<'a>(parameters: &'a BTreeMap<String, Parameters>) -> HostDescription<'a> {
    HostDescription {
        name: "compute1",
        zone: "here",
        host_type: None,
        backend: Backend::Nova,
        cloud: None,
        known_as: None,
        labels: &NONE,
        parameters,
    }
}

#[test]
fn a_valid_host_is_accepted() {
    let parameters = given("bmc", "address", "10.0.0.1");
    let full = HostDescription {
        host_type: Some("blade"),
        cloud: Some("east"),
        known_as: Some("compute1.rack"),
        ..host(&parameters)
    };
    assert_eq!(validate_host(&full), Ok(()));
    assert_eq!(validate_host(&host(&BTreeMap::new())), Ok(()));
}

#[test]
fn each_name_of_a_host_is_checked_and_a_refusal_names_its_field() {
    let check = |name, zone, host_type| {
        validate_host(&HostDescription {
            name,
            zone,
            host_type,
            ..host(&BTreeMap::new())
        })
    };
    expect_fault(check("", "here", None), "name", &["1 to 255"]);
    expect_fault(check("a", "over there", None), "zone", &["over there"]);
    let long = "z".repeat(129);
    expect_fault(check("a", &long, None), "zone", &["129", "1 to 128"]);
    expect_fault(check("a", "here", Some("")), "type", &["1 to 255"]);
}

#[test]
fn the_addresses_of_kdump_messages_are_addresses() {
    let check = |key: &str, value: &str| validate_host(&host(&given("kdump", key, value)));
    assert_eq!(check("addresses", "192.0.2.1, 2001:db8::1"), Ok(()));
    let at = "parameters.kdump.addresses";
    expect_fault(check("addresses", "compute1"), at, &["compute1", "IP addresses"]);
    expect_fault(check("addresses", ""), at, &["IP addresses"]);
    expect_fault(
        check("addresses", &["192.0.2.1"; 9].join(",")),
        at,
        &["9", "at most 8"],
    );
    expect_fault(
        check("adresses", "192.0.2.1"),
        "parameters.kdump.adresses",
        &["addresses"],
    );
}

#[test]
fn a_cloud_is_checked_and_needs_a_backend() {
    let none = BTreeMap::new();
    let cloud = |backend, cloud, known_as| {
        validate_host(&HostDescription {
            backend,
            cloud,
            known_as,
            ..host(&none)
        })
    };
    expect_fault(
        cloud(Backend::Nova, Some("the east"), None),
        "cloud",
        &["the east"],
    );
    expect_fault(cloud(Backend::Nova, None, Some("")), "known_as", &["1 to 255"]);
    expect_fault(
        cloud(Backend::None, Some("east"), None),
        "cloud",
        &["east", "nova or kubernetes"],
    );
    expect_fault(
        cloud(Backend::None, None, Some("c1")),
        "known_as",
        &["c1", "nova or kubernetes"],
    );
}

#[test]
fn parameters_of_a_host_obey_the_rules_of_parameters() {
    let check = |parameters| validate_host(&host(&parameters));
    expect_fault(
        check(given("bmc", "ip", "a\nb")),
        "parameters.bmc.ip",
        &["control character"],
    );
    let secret = check(given("bmc", "password", "hunter2"));
    assert!(!secret.clone().unwrap_err().to_string().contains("hunter2"));
    expect_fault(secret, "parameters.bmc.password", &["env:NAME"]);
    expect_fault(check(given("no name", "ip", "a")), "parameters", &["no name"]);
    let many = (0..73).map(|i| (format!("m{i}"), Parameters::new())).collect();
    expect_fault(check(many), "parameters", &["at most 72"]);
}
