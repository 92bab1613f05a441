//! The plan that a configuration is.

use super::*;

#[test]
fn the_proposals_example_for_bare_metal_is_a_plan_with_a_switch_and_a_power_strip() {
    let cluster = Cluster::of(&format!("{EXAMPLES}{TEMPLATES}"));
    let plan = cluster.plan("fence-config-n2");
    assert_eq!(plan.scope, Scope::Node("n2".to_owned()));
    assert_eq!(
        told(&plan.stages),
        [
            vec![(FencingKind::StorageFence, own("fence-config-n2_fc-off"))],
            vec![(FencingKind::PowerOff, own("fence-config-n2_eaton-off"))],
            vec![(FencingKind::PowerOn, Vec::new())],
        ]
    );
    let [pdu, switch] = &plan.methods[..] else {
        panic!("{:?}", plan.methods);
    };
    assert_eq!(
        (pdu.resource, switch.resource),
        (Resource::Power, Resource::Storage)
    );
    assert_eq!(pdu.parameters["plug"], "1", "a method's own value wins");
    assert_eq!(pdu.parameters["agent"], "fence_eaton_snmp");
    assert!(!pdu.parameters.contains_key("action"), "{pdu:?}");
    assert_eq!(pdu.times.attempt_timeout_s, 30);
    assert_eq!(
        switch.secrets["password"].to_string(),
        "secret:lab/fabric/password"
    );
    assert_eq!(
        cluster.secrets_named(),
        set(&["fabric", "fence-cloud-aws", "pdu"])
    );
}

#[test]
fn the_more_specific_configuration_wins_and_one_that_is_for_no_node_is_told() {
    let text = r"
- metadata: { name: fence-config }
  data: { config.properties: 'power_management=bmc' }
- metadata: { name: fence-config-type-compute }
  data: { config.properties: 'power_management=bmc' }
- metadata: { name: fence-config-type-gpu }
  data: { config.properties: 'power_management=bmc' }
- metadata: { name: fence-config-node-n9 }
  data: { config.properties: 'power_management=bmc' }
- metadata: { name: fence-method-bmc }
  data:
    method.properties: |
      driver=redfish
      address=https://${host.name}.bmc
      system=/redfish/v1/Systems/1
      username=ringfence
      password=file:/etc/ringfence/bmc
";
    let cluster = Cluster::of(text);
    assert_eq!(cluster.plan("fence-config").scope, Scope::Default);
    assert_eq!(
        cluster.plan("fence-config-type-compute").scope,
        Scope::Type("compute".to_owned())
    );
    assert_eq!(cluster.read().types, set(&["compute", "gpu"]));
    let warnings = |name: &str| cluster.verdict(name).warnings;
    assert!(warnings("fence-config-type-compute").is_empty());
    assert_eq!(
        warnings("fence-config-type-gpu"),
        ["no node has the label type=gpu"]
    );
    assert_eq!(warnings("fence-config-node-n9"), ["there is no node n9"]);
    assert_eq!(cluster.read().nodes["n2"].kind.as_deref(), Some("compute"));
}

#[test]
fn methods_of_one_level_are_used_together_and_the_next_level_comes_after_them() {
    let text = r"
- metadata: { name: fence-config-node-n1 }
  data:
    config.properties: |
      power-management=a b c
    fence-method-a: |
      agent_name=fence_apc_snmp
      ip=a
      plug=1
      action=off
    fence-method-b: |
      agent_name=fence_apc_snmp
      ip=b
      plug=1
      action=off
    fence-method-c: |
      driver=ipmi
      level=2
      action=off
      address=10.0.0.1
      username=ringfence
      password=secret:bmc/password
";
    let levels = |names: &[&str]| {
        let named = |name: &&str| format!("configmap_lab_fence-config-node-n1_{name}");
        names.iter().map(named).collect::<Vec<_>>()
    };
    let plan = Cluster::of(text).plan("fence-config-node-n1");
    assert_eq!(
        told(&plan.stages),
        [[(FencingKind::PowerOff, vec![levels(&["a", "b"]), levels(&["c"])])]]
    );
}

#[test]
fn power_is_taken_so_long_after_the_isolation_as_the_configuration_says() {
    let delays = |text: &str| {
        let plan = Cluster::of(text).plan("fence-config-node-n1");
        plan.stages.iter().map(|stage| stage.delay_s).collect::<Vec<_>>()
    };
    assert_eq!(delays(ONE), [0, 0]);
    let later = ONE.replace(
        "power_management=",
        "power_management_delay_s=300\n      power_management=",
    );
    assert_eq!(delays(&later), [300, 0]);
}

#[test]
fn the_policy_of_a_segment_is_read_whole_and_its_faults_are_told() {
    let segment = |policy: &str| {
        Cluster::of(&format!(
            "- metadata: {{ name: fence-segment-rack }}\n  data:\n    policy.yaml: |\n      {policy}\n"
        ))
        .verdict("fence-segment-rack")
        .found
    };
    let Ok(Declared::Segment { name, policy }) = segment("fencing: { automatic: true, after_s: 30 }") else {
        panic!("the policy is refused");
    };
    assert_eq!(
        (name.as_str(), policy.fencing.automatic, policy.fencing.after_s),
        ("rack", true, 30)
    );
    for (text, told) in [
        ("fencing: { automatik: true }", "unknown field `automatik`"),
        (
            "fencing: { automatic: true, after_s: 3601 }",
            "policy.yaml: fencing.after_s: is 3601",
        ),
        ("fencing: [", "policy.yaml: cannot be read"),
    ] {
        let faults = segment(text).unwrap_err().to_string();
        assert!(faults.contains(told), "{faults}");
    }
}
