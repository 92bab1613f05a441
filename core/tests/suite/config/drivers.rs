//! Drivers for these tests: the rules know a driver only by its declaration.

use std::collections::BTreeMap;

use ringfence_core::*;
use uuid::Uuid;

use super::expect_fault;
use ringfence_world::plans::start;

const EVERYTHING: &[Resource] = &[Resource::Power, Resource::Storage, Resource::Network];

static OUTLET: Declaration = Declaration {
    name: "outlet",
    about: "an outlet",
    resources: EVERYTHING,
    parameters: &[Parameter::required("device", "its name").tells_apart()],
    secrets: &[],
    others: None,
    place: None,
    lingers_s: 7,
    device: |parameters| value_of(parameters, "device").map(|device| format!("outlet/{device}")),
    can_prove: |_| true,
};

static AGENT: Declaration = Declaration {
    name: "agent",
    parameters: &[Parameter::required("agent", "its name").says_where()],
    others: Some(Others {
        about: "the agent's option",
        refusal: |name, _| (name == "action").then_some("must not be given"),
        tells_apart: |name| name != "login",
        telling: "a parameter that says which",
        newest_name: |name| name,
    }),
    device: |_| None,
    ..OUTLET
};

static PORTS: Declaration = Declaration {
    name: "ports",
    about: "the ports of a cloud",
    resources: &[Resource::Network],
    parameters: &[
        Parameter::optional("cloud", "the cloud").says_where(),
        Parameter::optional("host", "the host in the cloud").tells_apart(),
        Parameter::optional("trusted", "whether the ports are trusted").flag(),
    ],
    place: Some(Place {
        platform: "cloud",
        host: "host",
        answers_for_all: true,
    }),
    device: |_| None,
    can_prove: |parameters| value_of(parameters, "trusted") == Some("true"),
    ..OUTLET
};

pub fn drivers() -> Catalogue {
    Catalogue::from_iter([&OUTLET, &AGENT, &PORTS])
}

pub fn method(name: &str, driver: &str, resource: Resource, parameters: &[(&str, &str)]) -> Method {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    Method {
        id: MethodId(Uuid::new_v5(&Uuid::nil(), name.as_bytes())),
        name: name.to_owned(),
        resource,
        driver: driver.to_owned(),
        parameters: parameters.iter().map(owned).collect(),
        secrets: BTreeMap::new(),
        zone: None,
        times: MethodTimes::default(),
        revision: 1,
        created_at: start(),
        updated_at: start(),
    }
}

#[test]
fn a_driver_that_does_not_exist_is_named_with_those_that_do() {
    let unknown = method("m", "telnet", Resource::Power, &[]);
    let words = ["\"telnet\"", "allowed: agent, outlet, ports"];
    expect_fault(validate_method(&drivers(), &unknown), "driver", &words);
    let error = FrozenMethod::new(&drivers(), &unknown, &ringfence_world::plans::host()).unwrap_err();
    assert!(error.to_string().contains("\"telnet\""), "{error}");
}

#[test]
fn an_undeclared_parameter_is_refused_with_the_declared_ones() {
    let odd = method(
        "m",
        "ports",
        Resource::Storage,
        &[("colour", "red"), ("trusted", "yes")],
    );
    let found = || validate_method(&drivers(), &odd);
    expect_fault(found(), "resource", &["storage", "allowed: network"]);
    expect_fault(found(), "parameters.colour", &["allowed: cloud, host, trusted"]);
    expect_fault(
        found(),
        "parameters.trusted",
        &["\"yes\"", "true or false is allowed"],
    );
    let bare = method("m", "outlet", Resource::Power, &[]);
    expect_fault(
        validate_method(&drivers(), &bare),
        "parameters.device",
        &["missing", "outlet"],
    );
}

#[test]
fn a_frozen_method_has_what_its_driver_declares() {
    let mut host = ringfence_world::plans::host();
    host.cloud = Some("east".to_owned());
    let freeze = |method| FrozenMethod::new(&drivers(), &method, &host).unwrap();
    let outlet = freeze(method("m", "outlet", Resource::Power, &[("device", "a")]));
    assert_eq!(outlet.lingers_s(), 7);
    assert!(outlet.can_prove);
    assert_eq!(outlet.device.as_deref(), Some("outlet/a"));
    let ports = freeze(method("m", "ports", Resource::Network, &[]));
    assert_eq!(ports.service_of.as_deref(), Some("east"));
    assert!(!ports.can_prove);
}
