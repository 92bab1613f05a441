use ringfence_core::*;

use super::{expect_fault, method};

fn validate_method(method: &Method) -> Result<(), Problems> {
    ringfence_core::validate_method(&ringfence_workers::catalogue(), method)
}

fn ipmi() -> Method {
    method(
        "bmc",
        "ipmi",
        Resource::Power,
        &[("address", "10.0.0.1"), ("username", "root")],
    )
}

fn redfish() -> Method {
    let parameters = [
        ("address", "https://bmc.example"),
        ("system", "/redfish/v1/Systems/1"),
        ("username", "root"),
    ];
    method("bmc", "redfish", Resource::Power, &parameters)
}

fn agent() -> Method {
    method(
        "pdu",
        "fence-agent",
        Resource::Power,
        &[("agent", "fence_apc"), ("ip", "10.0.0.2")],
    )
}

fn with(mut method: Method, key: &str, value: &str) -> Method {
    method.parameters.insert(key.to_owned(), value.to_owned());
    method
}

#[test]
fn valid_methods_are_accepted() {
    let simulated = method("sim", "simulated", Resource::Network, &[("device", "a")]);
    for method in [ipmi(), redfish(), agent(), simulated] {
        assert_eq!(validate_method(&method), Ok(()), "{}", method.driver);
    }
}

#[test]
fn an_unknown_parameter_is_refused_with_the_known_ones() {
    let method = with(ipmi(), "adress", "10.0.0.1");
    expect_fault(
        validate_method(&method),
        "parameters.adress",
        &["unknown", "address", "username"],
    );
}

#[test]
fn a_missing_parameter_is_named() {
    let mut method = redfish();
    method.parameters.remove("system");
    expect_fault(validate_method(&method), "parameters.system", &["missing"]);
    let empty = with(redfish(), "system", "");
    assert!(validate_method(&empty).is_err());
}

#[test]
fn a_line_break_never_reaches_an_agent() {
    for bad in ["10.0.0.1\naction=on", "a\r", "a\0b", "a\u{85}b"] {
        let method = with(agent(), "ip", bad);
        expect_fault(validate_method(&method), "parameters.ip", &["control character"]);
    }
    let mut method = agent();
    let password = SecretReference::parse("env:PASSWORD").unwrap();
    method.secrets.insert("password\naction".to_owned(), password);
    assert!(validate_method(&method).is_err());
    let method = with(agent(), "ip\naction", "on");
    assert!(validate_method(&method).is_err());
}

#[test]
fn a_secret_in_plain_text_is_refused_and_not_shown() {
    for name in [
        "password",
        "passwd",
        "PASSWORD",
        "snmp_community",
        "api_token",
        "passphrase",
        "private_key",
    ] {
        let method = with(agent(), name, "hunter2");
        let result = validate_method(&method);
        let text = result.clone().unwrap_err().to_string();
        assert!(!text.contains("hunter2"), "{text}");
        expect_fault(
            result,
            &format!("parameters.{name}"),
            &["env:NAME", "file:/absolute/path"],
        );
    }
    let by_script = with(agent(), "password_script", "/usr/local/bin/get-password");
    assert_eq!(validate_method(&by_script), Ok(()));
}

#[test]
fn a_missing_secret_is_named() {
    let mut method = ipmi();
    method.secrets.clear();
    expect_fault(
        validate_method(&method),
        "secrets.password",
        &["missing", "env:NAME"],
    );
    let mut method = ipmi();
    let other = SecretReference::parse("env:OTHER").unwrap();
    method.secrets.insert("pin".to_owned(), other);
    expect_fault(validate_method(&method), "secrets.pin", &["unknown", "password"]);
}

#[test]
fn only_the_task_sets_the_action_of_an_agent() {
    expect_fault(
        validate_method(&with(agent(), "action", "reboot")),
        "parameters.action",
        &["task"],
    );
    expect_fault(
        validate_method(&with(agent(), "method", "cycle")),
        "parameters.method",
        &["onoff"],
    );
    assert_eq!(validate_method(&with(agent(), "method", "onoff")), Ok(()));
    let mut method = agent();
    let smuggled = SecretReference::parse("env:ACTION").unwrap();
    method.secrets.insert("action".to_owned(), smuggled);
    expect_fault(validate_method(&method), "secrets.action", &["must not"]);
}

#[test]
fn an_agent_is_a_name_and_not_a_path() {
    for bad in ["/usr/sbin/fence_apc", "fence_", "fence_a b", "../fence_apc", "sh"] {
        expect_fault(
            validate_method(&with(agent(), "agent", bad)),
            "parameters.agent",
            &["fence_ipmilan"],
        );
    }
}

#[test]
fn a_driver_acts_only_on_its_resources() {
    let mut method = ipmi();
    method.resource = Resource::Storage;
    expect_fault(validate_method(&method), "resource", &["storage", "power"]);
}

#[test]
fn impossible_values_are_refused() {
    expect_fault(
        validate_method(&with(redfish(), "address", "bmc.example")),
        "parameters.address",
        &["https://"],
    );
    expect_fault(
        validate_method(&with(redfish(), "system", "1")),
        "parameters.system",
        &["/redfish/v1"],
    );
    expect_fault(
        validate_method(&with(redfish(), "insecure", "yes")),
        "parameters.insecure",
        &["true or false"],
    );
    for port in ["0", "65536", "-1", "x"] {
        expect_fault(
            validate_method(&with(ipmi(), "port", port)),
            "parameters.port",
            &["1 to 65535"],
        );
    }
    expect_fault(
        validate_method(&with(ipmi(), "cipher", "0")),
        "parameters.cipher",
        &["3 or 17"],
    );
    expect_fault(
        validate_method(&with(ipmi(), "privilege", "USER")),
        "parameters.privilege",
        &["OPERATOR"],
    );
}

#[test]
fn every_value_has_a_limit() {
    let mut many = agent();
    for i in 0..70 {
        many.parameters.insert(format!("p{i}"), String::new());
    }
    expect_fault(validate_method(&many), "parameters", &["at most 64"]);
    expect_fault(
        validate_method(&with(agent(), "ip", &"x".repeat(1025))),
        "parameters.ip",
        &["at most 1024"],
    );
    assert!(validate_method(&with(agent(), &"p".repeat(65), "x")).is_err());
    let times = MethodTimes {
        attempt_timeout_s: 301,
        timeout_s: 901,
        retries: 11,
        pause_ms: 60_001,
        settle_s: 601,
        lingers_s: Some(3_601),
    };
    let method = Method { times, ..agent() };
    let fields = [
        "attempt_timeout_s",
        "timeout_s",
        "retries",
        "pause_ms",
        "settle_s",
        "lingers_s",
    ];
    for field in fields {
        expect_fault(
            validate_method(&method),
            &format!("times.{field}"),
            &["is allowed"],
        );
    }
    let shorter = MethodTimes {
        timeout_s: 10,
        ..MethodTimes::default()
    };
    let method = Method {
        times: shorter,
        ..agent()
    };
    expect_fault(validate_method(&method), "times.timeout_s", &["20 to 900"]);
}

#[test]
fn all_problems_are_reported_at_once() {
    let mut method = with(with(ipmi(), "port", "x"), "cipher", "1");
    method.name = "no name".to_owned();
    method.zone = Some("no zone".to_owned());
    let problems = validate_method(&method).unwrap_err();
    assert_eq!(problems.0.len(), 4, "{problems}");
}

#[test]
fn one_device_has_one_key_in_all_methods() {
    let drivers = ringfence_workers::catalogue();
    let key = |method: &Method| (drivers.get(&method.driver).unwrap().device)(&method.parameters);
    assert_eq!(key(&agent()).unwrap(), "fence_apc/10.0.0.2:");
    assert_eq!(
        key(&with(agent(), "plug", "7")),
        key(&agent()),
        "one PDU takes one command, whatever the plug"
    );
    assert_ne!(key(&with(agent(), "ipport", "161")), key(&agent()));
    assert_eq!(key(&ipmi()).unwrap(), "ipmi/10.0.0.1:623");
    assert_eq!(key(&with(ipmi(), "port", "623")), key(&ipmi()));
    assert_eq!(
        key(&with(redfish(), "address", "https://bmc.example/")),
        key(&redfish())
    );
    let cloud = method("cloud", "fence-agent", Resource::Power, &[("agent", "fence_aws")]);
    assert_eq!(key(&cloud), None);
}

fn of_a_cloud(driver: &str, resource: Resource) -> Method {
    method("cloud", driver, resource, &[])
}

#[test]
fn methods_of_a_cloud_need_no_parameters_and_accept_no_invalid_values() {
    let cinder = of_a_cloud("cinder", Resource::Storage);
    let neutron = of_a_cloud("neutron", Resource::Network);
    let ironic = of_a_cloud("ironic", Resource::Power);
    for good in [
        &cinder,
        &neutron,
        &ironic,
        &with(cinder.clone(), "trusted_backends", "lvm-1, array-2"),
        &with(neutron.clone(), "trusted", "true"),
        &with(ironic.clone(), "node", "${host.name}.rack"),
    ] {
        assert_eq!(validate_method(good), Ok(()), "{good:?}");
    }
    for odd in ["", "a,,b", "*", "host@lvm", "lvm#pool", "a b"] {
        let bad = with(cinder.clone(), "trusted_backends", odd);
        expect_fault(
            validate_method(&bad),
            "parameters.trusted_backends",
            &["names of backends"],
        );
    }
    expect_fault(
        validate_method(&with(neutron, "trusted", "yes")),
        "parameters.trusted",
        &["\"yes\"", "true or false"],
    );
    let wrong = of_a_cloud("ironic", Resource::Storage);
    expect_fault(validate_method(&wrong), "resource", &["storage", "power"]);
}

#[test]
fn a_ceph_takes_addresses_of_one_host_and_no_option_of_its_program() {
    let ceph = method("list", "ceph", Resource::Storage, &[]);
    for (key, value) in [
        ("addresses", "192.0.2.7,fd00::7,192.0.2.64/28"),
        ("monitors", "192.0.2.1,v2:192.0.2.2:3300"),
        ("conf", "/etc/ceph/east.conf"),
        ("user", "client.fence"),
    ] {
        assert_eq!(validate_method(&with(ceph.clone(), key, value)), Ok(()), "{key}");
    }
    for (key, value, words) in [
        ("addresses", "192.0.2.0/16", "24 leading bits"),
        ("monitors", "--keyring=/x", "commas between them"),
        ("conf", "ceph.conf", "absolute path"),
        ("user", "admin", "client.ringfence"),
        ("keyring", "/etc/ceph/keyring", "unknown"),
    ] {
        let bad = with(ceph.clone(), key, value);
        expect_fault(validate_method(&bad), &format!("parameters.{key}"), &[words]);
    }
}
