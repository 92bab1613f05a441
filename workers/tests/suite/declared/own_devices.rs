//! A plan for several hosts accepts only methods that tell one host's device from another's.

use ringfence_core::*;

use super::{expect_fault, frozen, method};
use ringfence_world::plans::host;

fn scopes_of_many() -> [PlanScope; 2] {
    [PlanScope::Default, PlanScope::HostType("blade".to_owned())]
}

fn own_plan() -> PlanScope {
    PlanScope::Host("compute1".to_owned())
}

fn giving(method: &str, values: &[(&str, &str)]) -> Host {
    let mut host = host();
    let own = values.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
    host.parameters.insert(method.to_owned(), own.collect());
    host.cloud = Some("east".to_owned());
    host
}

/// Methods that mean one device for every host, by driver.
fn fixed() -> Vec<Method> {
    let power = Resource::Power;
    let bmc = [("address", "10.0.0.1"), ("username", "root-${host.name}")];
    let redfish = [
        ("address", "https://bmc.example"),
        ("system", "/redfish/v1/Systems/1"),
        ("username", "root"),
    ];
    let outlet = [
        ("agent", "fence_apc"),
        ("ip", "10.0.0.2"),
        ("plug", "3"),
        ("power_timeout", "${host.name}"),
    ];
    vec![
        method("m", "ipmi", power, &bmc),
        method("m", "redfish", power, &redfish),
        method("m", "fence-agent", power, &outlet),
        method("m", "simulated", power, &[("device", "${host.zone}")]),
        method("m", "ironic", power, &[("node", "metal-7")]),
        method("m", "cinder", Resource::Storage, &[("host", "node-7")]),
        method("m", "neutron", Resource::Network, &[("host", "node-7")]),
        method("m", "ceph", Resource::Storage, &[("addresses", "192.0.2.7")]),
        method(
            "m",
            "metal3",
            power,
            &[("cluster", "east"), ("namespace", "metal"), ("host", "node-7")],
        ),
        method(
            "m",
            "csi-network-fence",
            Resource::Storage,
            &[("cluster", "east"), ("class", "rbd"), ("node", "node-7")],
        ),
    ]
}

#[test]
fn a_device_of_all_hosts_is_refused_in_a_plan_for_many() {
    for method in fixed() {
        for scope in scopes_of_many() {
            let problems = frozen(Some(&scope), &method, &giving("other", &[])).unwrap_err();
            let text = problems.to_string();
            assert!(
                text.contains("would count for each") && text.contains("${host.name}"),
                "{}: {text}",
                method.driver
            );
        }
        // A plan for one host is about one device only.
        frozen(Some(&own_plan()), &method, &giving("other", &[])).unwrap();
        // Reading the state proves nothing.
        frozen(None, &method, &giving("other", &[])).unwrap();
    }
}

#[test]
fn the_refusal_names_the_parameters_that_tell_devices_apart() {
    let telling = [
        "address or port",
        "address or system",
        "(ip, plug, nodename, ...)",
        "device",
        "node",
        "host",
        "host",
        "addresses",
        "host",
        "node or cidrs",
    ];
    for (method, telling) in fixed().iter().zip(telling) {
        let problems = frozen(Some(&PlanScope::Default), method, &giving("other", &[])).unwrap_err();
        let text = problems.to_string();
        for words in [telling, "m.KEY=VALUE", "a plan for that host alone"] {
            assert!(text.contains(words), "{words:?} is not in {text}");
        }
    }
}

#[test]
fn the_hosts_name_or_its_own_value_tells_its_device_apart() {
    let power = Resource::Power;
    let agent = |name: &str, value: &str| {
        method(
            "m",
            "fence-agent",
            power,
            &[("agent", "fence_apc"), (name, value)],
        )
    };
    let bmc = |address: &str| method("m", "ipmi", power, &[("address", address), ("username", "root")]);
    let place = |driver, resource| method("m", driver, resource, &[]);
    let good = [
        (agent("plug", "${host.name}"), giving("m", &[])),
        (agent("nodename", "${host.id}.example"), giving("m", &[])),
        (agent("ip", "10.0.0.2"), giving("m", &[("plug", "3")])),
        (bmc("${host.name}-bmc.example"), giving("m", &[])),
        (bmc("10.0.0.1"), giving("m", &[("address", "10.0.0.9")])),
        (bmc("10.0.0.1"), giving("m", &[("port", "6230")])),
        (
            method("m", "ceph", Resource::Storage, &[]),
            giving("m", &[("addresses", "192.0.2.7,fd00::7")]),
        ),
        (
            method("m", "metal3", power, &[("cluster", "east")]),
            giving("m", &[("namespace", "metal"), ("host", "node-7")]),
        ),
        (place("ironic", power), giving("m", &[])),
        (place("cinder", Resource::Storage), giving("m", &[])),
        (place("neutron", Resource::Network), giving("m", &[])),
    ];
    for (method, host) in good {
        for scope in scopes_of_many() {
            let frozen = frozen(Some(&scope), &method, &host);
            assert!(frozen.is_ok(), "{method:?}: {frozen:?}");
        }
    }
}

#[test]
fn other_values_of_a_host_do_not_tell_its_device_apart() {
    let outlet = [
        ("agent", "fence_apc"),
        ("ip", "10.0.0.2"),
        ("plug", "${host.name}"),
    ];
    let outlet = method("m", "fence-agent", Resource::Power, &outlet);
    let bmc = [("address", "10.0.0.1"), ("username", "root")];
    let bmc = method("m", "ipmi", Resource::Power, &bmc);
    let bad: [&[(&str, &str)]; 4] = [
        &[("username", "me")],
        &[("address", "10.0.0.1")],
        &[("cipher", "17")],
        &[("privilege", "OPERATOR-${host.name}")],
    ];
    for values in bad {
        let host = giving("m", values);
        let found = frozen(Some(&PlanScope::Default), &bmc, &host);
        assert!(found.is_err(), "{values:?}: {found:?}");
    }
    // Together with a parameter that tells devices apart, it is allowed.
    let host = giving("m", &[("power_timeout", "30")]);
    assert!(frozen(Some(&PlanScope::Default), &outlet, &host).is_ok());
}

#[test]
fn a_devices_key_has_only_the_parameters_that_tell_devices_apart() {
    let key = |method: &Method, values: &[(&str, &str)]| {
        target_key(
            &ringfence_workers::catalogue(),
            &frozen(None, method, &giving("m", values)).unwrap(),
        )
    };
    let power = Resource::Power;
    let pdu = method("m", "fence-agent", power, &[("agent", "fence_apc"), ("ip", "a")]);
    let same: [&[(&str, &str)]; 4] = [
        &[("plug", "3")],
        &[("port", "3")],
        &[("plug", "3"), ("power_timeout", "9"), ("login", "me")],
        &[("plug", "3"), ("verbose", "")],
    ];
    for values in same {
        assert_eq!(key(&pdu, values), key(&pdu, same[0]), "{values:?}");
    }
    assert_ne!(key(&pdu, &[("plug", "4")]), key(&pdu, same[0]));
    let other = method("n", "fence-agent", power, &[("agent", "fence_apc"), ("ip", "b")]);
    assert_ne!(key(&other, same[0]), key(&pdu, same[0]));

    let bmc = method("m", "ipmi", power, &[("address", "a"), ("username", "root")]);
    assert_eq!(key(&bmc, &[("port", "623")]), key(&bmc, &[("username", "me")]));
    assert_ne!(key(&bmc, &[("port", "6230")]), key(&bmc, &[]));

    let redfish = [
        ("address", "https://bmc.example"),
        ("system", "/redfish/v1/Systems/1"),
        ("username", "root"),
    ];
    let redfish = method("m", "redfish", power, &redfish);
    assert_eq!(
        key(&redfish, &[("address", "https://bmc.example/")]),
        key(&redfish, &[])
    );
    assert_ne!(
        key(&redfish, &[("system", "/redfish/v1/Systems/2")]),
        key(&redfish, &[])
    );

    // A host's name in one cloud may be another host's in the next.
    let node = method("m", "ironic", power, &[]);
    assert_ne!(key(&node, &[("cloud", "west")]), key(&node, &[]));
}

/// What a method leaves to its hosts is missing where a host does not give it.
#[test]
fn a_bare_metal_host_is_given_by_the_method_or_by_its_host() {
    let of_hosts = method("m", "metal3", Resource::Power, &[("cluster", "east")]);
    validate_method(&ringfence_workers::catalogue(), &of_hosts).unwrap();
    let halfway = frozen(None, &of_hosts, &giving("m", &[("namespace", "metal")]));
    expect_fault(halfway.map(drop), "parameters.host", &["is missing", "metal3"]);
    let whole = frozen(
        None,
        &of_hosts,
        &giving("m", &[("namespace", "metal"), ("host", "node-7")]),
    );
    assert_eq!(whole.unwrap().device.as_deref(), Some("metal3/east/metal/node-7"));
    let alone = FrozenMethod::without_host(&ringfence_workers::catalogue(), &of_hosts);
    expect_fault(
        alone.map(drop),
        "host",
        &["leaves parameter \"namespace\" to its hosts"],
    );
}
