//! Each fault with its place, and what is allowed there.

use super::*;

/// A change of [`ONE`], and the faults that are told.
fn one_with(from: &str, to: &str) -> Vec<String> {
    assert!(ONE.contains(from), "{from}");
    Cluster::of(&ONE.replace(from, to)).faults("fence-config-node-n1")
}

#[test]
fn the_configuration_that_is_changed_below_has_no_fault() {
    assert_eq!(one_with("bmc/password", "bmc/password"), Vec::<String>::new());
}

#[test]
fn each_fault_is_told_with_its_place_and_what_is_allowed() {
    for (from, to, fault) in [
        (
            "power_management=bmc",
            "power_managment=bmc",
            "config.properties: power_managment: is unknown; node_name, isolation, power_management, power_management_delay_s, recovery, kdump and kdump_suffices are allowed",
        ),
        (
            "power_management=bmc",
            "power_management=bmc\n      power_management_delay_s=5m",
            "config.properties: power_management_delay_s: is \"5m\"; 0 to 3600 seconds are allowed",
        ),
        (
            "power_management=bmc",
            "power_management=bmc\n      kdump=10.0.0.300",
            "config.properties: kdump: names \"10.0.0.300\"; IP addresses with commas between them are allowed; so are node and none",
        ),
        (
            "power_management=bmc",
            "power_management=bmc\n      kdump_suffices=yes",
            "config.properties: kdump_suffices: is \"yes\"; true and false are allowed",
        ),
        (
            "power_management=bmc",
            "power_management=bmc\n      kdump=none\n      kdump_suffices=true",
            "config.properties: kdump_suffices: is true, and kdump is none; false is allowed",
        ),
        (
            "power_management=bmc",
            "power_management=bmc\n      power-management=bmc",
            "config.properties: power-management: is given, and power_management as well; one of them is allowed",
        ),
        (
            "power_management=bmc",
            "power_management=bmc bmc",
            "config.properties: power_management: names bmc twice; each name is allowed once",
        ),
        (
            "power_management=bmc",
            "power_management=pdu",
            "config.properties: power_management: names pdu, and there is neither a key fence-method-pdu in this ConfigMap nor a ConfigMap \
             fence-method-pdu in namespace ringfence",
        ),
        (
            "power_management=bmc",
            "node_name=n2",
            "config.properties: node_name: is \"n2\", but fence-config-node-n1 is for node n1; n1 is allowed",
        ),
        (
            "power_management=bmc",
            "isolation=bmc",
            "config.properties: isolation: names bmc, which acts on power; name it in power_management",
        ),
        (
            "power_management=bmc",
            "power_management=bmc\n      recovery=bmc",
            "config.properties: recovery: names bmc, which undoes no method of isolation; Ringfence gives back what the fence has taken",
        ),
        (
            "power_management=bmc",
            "recovery=restart-instance",
            "config.properties: recovery: names restart-instance, which stands in power_management alone",
        ),
        (
            "power_management=bmc",
            "power_management=restart-instance",
            "config.properties: power_management: names restart-instance, which cannot be used: node n1: there is no usable Secret \
             fence-cloud-aws with the credentials of aws",
        ),
        (
            "driver=ipmi",
            "driver=ipmo",
            "fence-method-bmc: driver: is \"ipmo\"; allowed: ",
        ),
        (
            "driver=ipmi",
            "level=2",
            "fence-method-bmc: names neither a driver nor an agent; driver=NAME or agent_name=fence_NAME is allowed",
        ),
        (
            "driver=ipmi",
            "driver=ipmi\n      agent_name=fence_ipmilan",
            "fence-method-bmc: driver: is \"ipmi\", and agent_name is given as well; one of them is allowed",
        ),
        (
            "driver=ipmi",
            "driver=ipmi\n      action=cut",
            "fence-method-bmc: action: is \"cut\"; off, on or reboot is allowed",
        ),
        (
            "driver=ipmi",
            "driver=ipmi\n      action=on",
            "config.properties: power_management: names bmc, which switches on what no method before it switches off",
        ),
        (
            "driver=ipmi",
            "driver=ipmi\n      level=10",
            "fence-method-bmc: level: is 10; 1 to 9 is allowed",
        ),
        (
            "driver=ipmi",
            "driver=ipmi\n      resource=disk",
            "fence-method-bmc: resource: is \"disk\"; power, storage or network is allowed",
        ),
        (
            "driver=ipmi",
            "driver=ipmi\n      retries=often",
            "fence-method-bmc: retries: is \"often\"; a whole number is allowed",
        ),
        (
            "driver=ipmi",
            "driver=ipmi\n      attempt_timeout_s=301\n      timeout_s=900",
            "fence-method-bmc: attempt_timeout_s: is 301; 1 to 300 is allowed",
        ),
        (
            "address=10.0.0.1",
            "adress=10.0.0.1",
            "fence-method-bmc: adress: is unknown to driver ipmi; allowed: ",
        ),
        (
            "password=secret:bmc/password",
            "password=hunter2",
            "fence-method-bmc: password: is a secret, and its value must not stand in a ConfigMap; put it into a Secret in namespace \
             ringfence and write password=secret:SECRETNAME/SECRETKEY",
        ),
        (
            "bmc/password",
            "bmc",
            "fence-method-bmc: password: is a secret, and its value must not stand in a ConfigMap",
        ),
        (
            "bmc/password",
            "bmc/pasword",
            "fence-method-bmc: needs key pasword of Secret bmc in namespace ringfence, which has no such key; its keys are password",
        ),
        (
            "secret:bmc/",
            "secret:bmcs/",
            "fence-method-bmc: needs key password of Secret bmcs in namespace ringfence, which is not there",
        ),
        (
            "driver=ipmi",
            "driver=ipmi\n      template=pdu",
            "fence-method-bmc: template: is \"pdu\"; the name of a ConfigMap fence-method-template-NAME is allowed",
        ),
        (
            "driver=ipmi",
            "driver=ipmi\n      template=fence-method-template-pdu",
            "fence-method-bmc: template: is fence-method-template-pdu, and there is no such ConfigMap in namespace ringfence",
        ),
        (
            "fence-method-bmc: |",
            "fence-methode-bmc: |",
            "fence-methode-bmc: is unknown; config.properties and fence-method-NAME are allowed",
        ),
        (
            "config.properties",
            "config.property",
            "config.properties: is missing; lines KEY=VALUE are allowed",
        ),
    ] {
        let faults = one_with(from, to);
        assert!(
            faults.iter().any(|told| told.starts_with(fault)),
            "{to}: {faults:#?}"
        );
        let plan = Cluster::of(&ONE.replace(from, to)).read();
        assert!(!format!("{:?}", plan.verdicts).contains("hunter2"), "{to}");
    }
}

#[test]
fn a_fault_of_isolation_or_of_a_pair_is_told() {
    let text = |config: &str, methods: &str| {
        format!(
            "- metadata: {{ name: fence-config-node-n1 }}\n  data:\n    config.properties: |\n      {config}\n{methods}"
        )
    };
    let agent = |name: &str, rest: &str| {
        format!("    fence-method-{name}: |\n      agent_name=fence_apc_snmp\n      ip=a\n      {rest}\n")
    };
    let faults = |config: &str, methods: &[String]| {
        Cluster::of(&text(config, &methods.concat())).faults("fence-config-node-n1")
    };
    let told = faults("isolation=a", &[agent("a", "plug=1")]);
    assert_eq!(
        told,
        [
            "fence-method-a: resource: is missing, and its agent does not say what it cuts off; storage or network is allowed"
        ]
    );
    let told = faults("isolation=a", &[agent("a", "resource=network\n      action=on")]);
    assert!(
        told[0].contains("names a, which does not cut a node off"),
        "{told:?}"
    );
    let told = faults("power_management=a", &[agent("a", "resource=network")]);
    assert!(
        told[0].contains("names a, which does not act on power; name it in isolation"),
        "{told:?}"
    );
    let told = faults(
        "power_management=a b",
        &[
            agent("a", "plug=1\n      action=off"),
            agent("b", "plug=2\n      action=reboot"),
        ],
    );
    assert!(
        told[0].contains("names a, whose device no method switches on again"),
        "{told:?}"
    );
    let told = faults(
        "power_management=a b",
        &[
            agent("a", "plug=1\n      action=off"),
            agent("b", "plug=2\n      action=on"),
        ],
    );
    assert!(
        told[0].contains("names b, which switches on what no method before it switches off"),
        "{told:?}"
    );
}

#[test]
fn templates_that_name_each_other_are_told_where_they_are_used_and_where_they_stand() {
    let template = |name: &str, next: &str| {
        format!("- metadata: {{ name: {name} }}\n  data: {{ template.properties: 'template={next}' }}\n")
    };
    let (a, b) = ("fence-method-template-a", "fence-method-template-b");
    let one = ONE.replace(
        "driver=ipmi",
        "driver=ipmi\n      template=fence-method-template-a",
    );
    let cluster = Cluster::of(&format!("{one}{}{}", template(a, b), template(b, a)));
    let circle = format!("leads in a circle: {a}, then {b}, then {a}");
    assert_eq!(
        cluster.faults("fence-config-node-n1"),
        [format!("fence-method-bmc: template: {circle}")]
    );
    assert_eq!(
        cluster.faults(b),
        [format!(
            "{b}: template: leads in a circle: {a}, then {b}, then {a}"
        )]
    );
    let alone = Cluster::of(&template(a, a));
    assert_eq!(
        alone.faults(a),
        [format!("{a}: template: leads in a circle: {a}, then {a}")]
    );
    let mut chain = ONE.replace(
        "driver=ipmi",
        "driver=ipmi\n      template=fence-method-template-0",
    );
    for at in 0..9 {
        chain.push_str(&template(
            &format!("fence-method-template-{at}"),
            &format!("fence-method-template-{}", at + 1),
        ));
    }
    let faults = Cluster::of(&chain).faults("fence-config-node-n1");
    assert_eq!(
        faults,
        ["fence-method-bmc: template: leads through more than 8 templates, which is the most"]
    );
}

#[test]
fn a_plain_secret_in_a_template_is_told_there() {
    let text = "- metadata: { name: fence-method-template-a }\n  data: { template.properties: 'password=hunter2' }\n";
    let faults = Cluster::of(text).faults("fence-method-template-a");
    assert!(
        faults[0].starts_with("fence-method-template-a: password: is a secret"),
        "{faults:?}"
    );
    assert!(!faults[0].contains("hunter2"), "{faults:?}");
}

#[test]
fn two_configurations_for_one_node_and_one_that_is_too_large_count_for_nothing() {
    let other = ONE
        .replace("fence-config-node-n1", "fence-config-n1")
        .replace("power_management=bmc", "node_name=n1\n      power_management=bmc");
    let cluster = Cluster::of(&format!("{ONE}{other}"));
    for (name, twin) in [
        ("fence-config-node-n1", "fence-config-n1"),
        ("fence-config-n1", "fence-config-node-n1"),
    ] {
        assert_eq!(
            cluster.faults(name),
            [format!(
                "metadata.name: is {name}, and {twin} is for these nodes as well; delete one of them"
            )]
        );
    }
    let mut cluster = Cluster::of(ONE);
    let large = BTreeMap::from([("config.properties".to_owned(), "#".repeat(MAX_BYTES))]);
    cluster.sources.0.insert(
        "fence-config-node-n1".to_owned(),
        Source::new(String::new(), large),
    );
    assert_eq!(
        cluster.faults("fence-config-node-n1"),
        [format!(
            "data: it has {} bytes; at most {MAX_BYTES} are allowed",
            MAX_BYTES + "config.properties".len()
        )]
    );
}

#[test]
fn the_doctor_tells_what_is_declared_and_each_fault_with_its_object() {
    let cluster = Cluster::of(&ONE.replace("bmc/password", "bmc/pasword"));
    let told: Vec<String> = super::super::examining::findings(&cluster.read())
        .into_iter()
        .map(|finding| format!("{:?} {}", finding.weight, finding.found))
        .collect();
    assert_eq!(
        told,
        [
            "None its objects declare plans (0) and policies of segments (0)",
            "Some(Invalid) ConfigMap fence-config-node-n1: fence-method-bmc: needs key pasword of Secret bmc in namespace ringfence, which has \
             no such key; its keys are password",
        ]
    );
    let found = super::super::examining::findings(&Cluster::of(ONE).read());
    assert_eq!(found.len(), 1);
    assert!(found[0].found.contains("plans (1)"), "{found:?}");
}
