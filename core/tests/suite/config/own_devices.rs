//! A plan for several hosts takes only methods that tell one host's device from another's.

use std::collections::BTreeMap;

use ringfence_core::*;

use super::methods::method;
use super::plans::{plan, spec};
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

/// Methods that are the same device for every host, by driver.
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
        method("m", Driver::Ipmi, power, &bmc),
        method("m", Driver::Redfish, power, &redfish),
        method("m", Driver::FenceAgent, power, &outlet),
        method("m", Driver::Simulated, power, &[("device", "${host.zone}")]),
        method("m", Driver::Ironic, power, &[("node", "metal-7")]),
        method("m", Driver::Cinder, Resource::Storage, &[("host", "node-7")]),
        method("m", Driver::Neutron, Resource::Network, &[("host", "node-7")]),
    ]
}

#[test]
fn a_device_that_is_the_same_for_all_is_refused_in_a_plan_for_many() {
    for method in fixed() {
        for scope in scopes_of_many() {
            let problems = FrozenMethod::in_plan(&scope, &method, &giving("other", &[])).unwrap_err();
            let text = problems.to_string();
            assert!(
                text.contains("would be taken for a proof of each") && text.contains("${host.name}"),
                "{}: {text}",
                method.driver
            );
        }
        // A plan for one host cannot mean another.
        FrozenMethod::in_plan(&own_plan(), &method, &giving("other", &[])).unwrap();
        // Nor is anything proven by asking for the state.
        FrozenMethod::new(&method, &giving("other", &[])).unwrap();
    }
}

#[test]
fn the_fault_names_the_method_and_what_is_allowed() {
    let methods = BTreeMap::from([("m".to_owned(), fixed().remove(0))]);
    let plan = plan(vec![vec![spec(FencingKind::PowerOff, &[(1, &["m"])])]]);
    let text = resolve(&plan, &methods, &host()).unwrap_err().to_string();
    for words in [
        "stages[0].tasks[0]: method m",
        "address or port",
        "m.KEY=VALUE",
        "a plan for that host alone",
    ] {
        assert!(text.contains(words), "{words:?} is not in {text}");
    }
}

#[test]
fn the_hosts_name_or_a_value_of_its_own_makes_a_device_the_hosts() {
    let power = Resource::Power;
    let agent = |name: &str, value: &str| {
        method(
            "m",
            Driver::FenceAgent,
            power,
            &[("agent", "fence_apc"), (name, value)],
        )
    };
    let bmc = |address: &str| {
        method(
            "m",
            Driver::Ipmi,
            power,
            &[("address", address), ("username", "root")],
        )
    };
    let place = |driver, resource| method("m", driver, resource, &[]);
    let good = [
        (agent("plug", "${host.name}"), giving("m", &[])),
        (agent("nodename", "${host.id}.example"), giving("m", &[])),
        (agent("ip", "10.0.0.2"), giving("m", &[("plug", "3")])),
        (bmc("${host.name}-bmc.example"), giving("m", &[])),
        (bmc("10.0.0.1"), giving("m", &[("address", "10.0.0.9")])),
        (bmc("10.0.0.1"), giving("m", &[("port", "6230")])),
        (place(Driver::Ironic, power), giving("m", &[])),
        (place(Driver::Cinder, Resource::Storage), giving("m", &[])),
        (place(Driver::Neutron, Resource::Network), giving("m", &[])),
    ];
    for (method, host) in good {
        for scope in scopes_of_many() {
            let frozen = FrozenMethod::in_plan(&scope, &method, &host);
            assert!(frozen.is_ok(), "{method:?}: {frozen:?}");
        }
    }
}

#[test]
fn a_value_that_tells_nothing_apart_does_not() {
    let outlet = [
        ("agent", "fence_apc"),
        ("ip", "10.0.0.2"),
        ("plug", "${host.name}"),
    ];
    let outlet = method("m", Driver::FenceAgent, Resource::Power, &outlet);
    let bmc = [("address", "10.0.0.1"), ("username", "root")];
    let bmc = method("m", Driver::Ipmi, Resource::Power, &bmc);
    let bad: [&[(&str, &str)]; 4] = [
        &[("username", "me")],
        &[("address", "10.0.0.1")],
        &[("cipher", "17")],
        &[("privilege", "OPERATOR-${host.name}")],
    ];
    for values in bad {
        let host = giving("m", values);
        let found = FrozenMethod::in_plan(&PlanScope::Default, &bmc, &host);
        assert!(found.is_err(), "{values:?}: {found:?}");
    }
    // Beside something that does, it is allowed.
    let host = giving("m", &[("power_timeout", "30")]);
    assert!(FrozenMethod::in_plan(&PlanScope::Default, &outlet, &host).is_ok());
}

#[test]
fn what_is_acted_on_is_told_apart_from_the_manner() {
    let key = |method: &Method, values: &[(&str, &str)]| {
        target_key(&FrozenMethod::new(method, &giving("m", values)).unwrap())
    };
    let power = Resource::Power;
    let pdu = method(
        "m",
        Driver::FenceAgent,
        power,
        &[("agent", "fence_apc"), ("ip", "a")],
    );
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
    let other = method(
        "n",
        Driver::FenceAgent,
        power,
        &[("agent", "fence_apc"), ("ip", "b")],
    );
    assert_ne!(key(&other, same[0]), key(&pdu, same[0]));

    let bmc = method(
        "m",
        Driver::Ipmi,
        power,
        &[("address", "a"), ("username", "root")],
    );
    assert_eq!(key(&bmc, &[("port", "623")]), key(&bmc, &[("username", "me")]));
    assert_ne!(key(&bmc, &[("port", "6230")]), key(&bmc, &[]));

    let redfish = [
        ("address", "https://bmc.example"),
        ("system", "/redfish/v1/Systems/1"),
        ("username", "root"),
    ];
    let redfish = method("m", Driver::Redfish, power, &redfish);
    assert_eq!(
        key(&redfish, &[("address", "https://bmc.example/")]),
        key(&redfish, &[])
    );
    assert_ne!(
        key(&redfish, &[("system", "/redfish/v1/Systems/2")]),
        key(&redfish, &[])
    );

    // The name in one cloud is another's in the next.
    let node = method("m", Driver::Ironic, power, &[]);
    assert_ne!(key(&node, &[("cloud", "west")]), key(&node, &[]));
}
