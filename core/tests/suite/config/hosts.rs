use std::collections::BTreeMap;

use ringfence_core::*;

use super::expect_fault;

fn given(method: &str, key: &str, value: &str) -> BTreeMap<String, Parameters> {
    let values = Parameters::from([(key.to_owned(), value.to_owned())]);
    BTreeMap::from([(method.to_owned(), values)])
}

#[test]
fn a_host_that_is_right_is_taken() {
    let parameters = given("bmc", "address", "10.0.0.1");
    assert_eq!(
        validate_host("compute1", "here", Some("blade"), &parameters),
        Ok(())
    );
    assert_eq!(validate_host("compute1", "here", None, &BTreeMap::new()), Ok(()));
}

#[test]
fn each_name_is_checked_and_said_to_be_wrong_by_its_own_name() {
    let check = |name, zone, host_type| validate_host(name, zone, host_type, &BTreeMap::new());
    expect_fault(check("", "here", None), "name", &["1 to 255"]);
    expect_fault(check("a", "over there", None), "zone", &["over there"]);
    expect_fault(check("a", "here", Some("")), "type", &["1 to 255"]);
}

#[test]
fn what_a_host_gives_to_methods_keeps_the_rules_of_parameters() {
    let check = |parameters| validate_host("a", "here", None, &parameters);
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
