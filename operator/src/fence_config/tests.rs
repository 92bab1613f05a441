//! What ConfigMaps declare together.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_core::{FencingKind, PlanStage, ProofKind, Resource};
use serde_json::Value;

use super::names::Scope;
use super::reading::{Declared, Given, Node, PlanOf, Reading, SecretKeys, Verdict, read, secrets_named};
use super::sources::{MAX_BYTES, Source, Sources};

/// The two examples of the proposal, to the letter, but for the name of the node.
const EXAMPLES: &str = r"
- kind: ConfigMap
  apiVersion: v1
  metadata:
   name: fence-config-n1
  data:
   config.properties: |-
    node_name=n1
    isolation=mark-unschedulable
    power_management=restart-instance
    recovery=mark-unschedulable
- kind: ConfigMap
  apiVersion: v1
  metadata:
   name: fence-config-n2
  data:
   config.properties: |-
    node_name=n2
    isolation=fc-off
    power_management=eaton-off eaton-on
    recovery=fc-on
   fence-method-fc-on: |-
    template=fence-method-template-fc-switch-brocade
    plug=2
    action=on
   fence-method-fc-off: |-
    template=fence-method-template-fc-switch-brocade
    plug=2
    action=off
   fence-method-eaton-on: |-
    template=fence-method-template-eaton-pdu
    plug=1
    action=on
   fence-method-eaton-off: |-
    template=fence-method-template-eaton-pdu
    plug=1
    action=off
";
const TEMPLATES: &str = r"
- metadata: { name: fence-method-template-fc-switch-brocade }
  data:
    template.properties: |
      agent_name=fence_brocade
      ip=192.168.1.2
      username=admin
      password=secret:fabric/password
- metadata: { name: fence-method-template-eaton-pdu }
  data:
    template.properties: |
      agent_name=fence_eaton_snmp
      ip=192.168.1.4
      plug=9
      snmp_version=3
      username=admin
      password=secret:pdu/password
      attempt_timeout_s=30
";
/// One node's configuration with one method, to be changed.
const ONE: &str = r"
- metadata: { name: fence-config-node-n1 }
  data:
    config.properties: |
      power_management=bmc
    fence-method-bmc: |
      driver=ipmi
      address=10.0.0.1
      username=ringfence
      password=secret:bmc/password
";

struct Cluster {
    sources: Sources,
    nodes: Vec<Node>,
    secrets: SecretKeys,
}

impl Cluster {
    fn of(text: &str) -> Self {
        let secrets = [
            ("fabric", &["password"][..]),
            ("pdu", &["password"]),
            ("bmc", &["password"]),
        ];
        let secrets = secrets.map(|(name, keys)| (name.to_owned(), set(keys)));
        Self {
            sources: sources(text),
            nodes: vec![
                node("n1", None, "aws:///eu-central-1a/i-0123456789abcdef0"),
                node("n2", Some("compute"), "aws:///eu-central-1a/i-0123456789abcdef1"),
            ],
            secrets: secrets.into(),
        }
    }

    fn with_secret(mut self, name: &str, keys: &[&str]) -> Self {
        self.secrets.insert(name.to_owned(), set(keys));
        self
    }

    fn with_node(mut self, node: Node) -> Self {
        self.nodes.retain(|known| known.name != node.name);
        self.nodes.push(node);
        self
    }

    fn read(&self) -> Reading {
        let drivers = ringfence_workers::catalogue();
        read(&Given {
            cluster: "lab",
            namespace: "ringfence",
            drivers: &drivers,
            sources: &self.sources,
            nodes: &self.nodes,
            secrets: &self.secrets,
        })
    }

    fn secrets_named(&self) -> BTreeSet<String> {
        let drivers = ringfence_workers::catalogue();
        secrets_named(&Given {
            cluster: "lab",
            namespace: "ringfence",
            drivers: &drivers,
            sources: &self.sources,
            nodes: &self.nodes,
            secrets: &BTreeMap::new(),
        })
    }

    fn verdict(&self, name: &str) -> Verdict {
        let verdicts = self.read().verdicts;
        let found = verdicts.iter().find(|verdict| verdict.object.name == name);
        found
            .unwrap_or_else(|| panic!("nothing is said of {name}: {verdicts:?}"))
            .clone()
    }

    fn plan(&self, name: &str) -> PlanOf {
        match self.verdict(name).found {
            Ok(Declared::Plan(plan)) => *plan,
            other => panic!("{name} is no plan: {other:?}"),
        }
    }

    fn faults(&self, name: &str) -> Vec<String> {
        let problems = self.verdict(name).found.err();
        problems
            .iter()
            .flat_map(|problems| &problems.0)
            .map(ToString::to_string)
            .collect()
    }
}

fn set(keys: &[&str]) -> BTreeSet<String> {
    keys.iter().map(|key| (*key).to_owned()).collect()
}

fn node(name: &str, kind: Option<&str>, provider_id: &str) -> Node {
    Node {
        name: name.to_owned(),
        kind: kind.map(str::to_owned),
        provider_id: provider_id.to_owned(),
        addresses: vec!["192.0.2.7".parse().unwrap()],
    }
}

fn sources(text: &str) -> Sources {
    let maps: Vec<Value> = serde_saphyr::from_str(text).unwrap();
    let one = |map: &Value| {
        let data = map["data"].as_object().unwrap().iter();
        let data = data.map(|(key, value)| (key.clone(), value.as_str().unwrap().to_owned()));
        let name = map["metadata"]["name"].as_str().unwrap().to_owned();
        (name, Source::new(String::new(), data.collect()))
    };
    Sources(maps.iter().map(one).collect())
}

/// In a few words: kind, and the methods of each level.
fn told(stages: &[PlanStage]) -> Vec<Vec<(FencingKind, Vec<Vec<String>>)>> {
    let task = |task: &ringfence_core::TaskSpec| {
        let levels = task.levels.iter().map(|level| level.methods.clone());
        (task.kind, levels.collect())
    };
    stages
        .iter()
        .map(|stage| stage.tasks.iter().map(task).collect())
        .collect()
}

fn own(name: &str) -> Vec<Vec<String>> {
    vec![vec![format!("configmap_lab_{name}")]]
}

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
fn the_proposals_example_for_a_cloud_restarts_the_instance_that_the_provider_id_names() {
    let cluster = Cluster::of(EXAMPLES).with_secret("fence-cloud-aws", &["access_key", "secret_key"]);
    let plan = cluster.plan("fence-config-n1");
    let method = own("fence-cloud-aws_restart-instance");
    assert_eq!(
        told(&plan.stages),
        [
            vec![(FencingKind::PowerOff, method.clone())],
            vec![(FencingKind::PowerOn, Vec::new())]
        ]
    );
    assert!(plan.methods.is_empty());
    let Ok(Declared::Cloud { method: cloud, .. }) = cluster.verdict("fence-cloud-aws").found else {
        panic!("the cloud has no method");
    };
    assert_eq!(cloud.name, method[0][0]);
    assert_eq!(cloud.parameters["agent"], "fence_aws");
    let secrets: Vec<String> = cloud.secrets.values().map(ToString::to_string).collect();
    assert_eq!(
        secrets,
        [
            "secret:lab/fence-cloud-aws/access_key",
            "secret:lab/fence-cloud-aws/secret_key"
        ]
    );
    let (name, machine) = cluster.read().nodes["n1"].machine.clone().unwrap();
    assert_eq!(name, cloud.name);
    assert_eq!(machine["plug"], "i-0123456789abcdef0");
    assert_eq!(machine["region"], "eu-central-1");
}

#[test]
fn with_no_configuration_at_all_the_nodes_cloud_restarts_them_once_its_credentials_are_there() {
    assert!(Cluster::of("[]").read().verdicts.is_empty());
    let cluster = Cluster::of("[]").with_secret("fence-cloud-aws", &["access_key", "secret_key"]);
    let plan = cluster.plan("fence-config-default");
    assert_eq!(plan.scope, Scope::Default);
    assert_eq!(
        told(&plan.stages)[0],
        [(FencingKind::PowerOff, own("fence-cloud-aws_restart-instance"))]
    );
    assert_eq!(cluster.secrets_named(), set(&["fence-cloud-aws"]));
}

#[test]
fn each_cloud_restarts_the_machine_that_the_provider_id_names() {
    const UUID: &str = "4c4c4544-0050-4a10-8033-b4c04f4d3153";
    const AZURE: &str =
        "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/n1";
    let clouds = [
        (AZURE.to_owned(), "azure", "fence_azure_arm", "n1"),
        ("gce://p/europe-west3-a/n1".to_owned(), "gce", "fence_gce", "n1"),
        (
            format!("openstack:///{UUID}"),
            "openstack",
            "fence_openstack",
            UUID,
        ),
        (format!("vsphere://{UUID}"), "vsphere", "fence_vmware_soap", UUID),
    ];
    for (id, word, agent, plug) in clouds {
        let secret = format!("fence-cloud-{word}");
        let cluster = Cluster::of("[]")
            .with_secret(&secret, &["password"])
            .with_node(node("n1", None, &id));
        let name = format!("{secret}_restart-instance");
        let plan = cluster.plan("fence-config-default");
        assert_eq!(
            told(&plan.stages)[0],
            [(FencingKind::PowerOff, own(&name))],
            "{id}"
        );
        let Ok(Declared::Cloud { method, .. }) = cluster.verdict(&secret).found else {
            panic!("{word} has no method");
        };
        assert_eq!(method.driver, "fence-agent");
        assert_eq!(method.parameters["agent"], agent);
        let of_secret = format!("secret:lab/{secret}/password");
        assert_eq!(method.secrets["password"].to_string(), of_secret);
        let (by, machine) = cluster.read().nodes["n1"].machine.clone().unwrap();
        assert_eq!((by, machine["plug"].as_str()), (own(&name)[0][0].clone(), plug));
    }
}

#[test]
fn a_bare_metal_host_is_held_off_by_its_operator_without_a_secret() {
    let text = "[{ metadata: { name: fence-config-node-n1 }, data: { config.properties: 'power_management=restart-instance' } }]";
    let cluster = Cluster::of(text).with_node(node("n1", None, "metal3://hosts/n1-host/n1-machine"));
    assert_eq!(cluster.plan("fence-config-node-n1").stages.len(), 2);
    let (name, machine) = cluster.read().nodes["n1"].machine.clone().unwrap();
    assert!(name.ends_with("restart-instance"), "{name}");
    assert_eq!(
        (machine["namespace"].as_str(), machine["host"].as_str()),
        ("hosts", "n1-host")
    );
}

#[test]
fn a_node_of_no_known_cloud_and_one_of_another_cloud_are_told_why_they_cannot_be_fenced() {
    let cluster = Cluster::of("[]")
        .with_secret("fence-cloud-aws", &["access_key", "secret_key"])
        .with_node(node("n3", None, "kind://docker/kind/n3"))
        .with_node(node("n4", None, ""))
        .with_node(node("n5", None, "gce://p/europe-west3-a/n5"));
    for (name, why) in [
        (
            "n3",
            "provider id \"kind://docker/kind/n3\" is of an unknown cloud; allowed: aws:///ZONE/i-ID",
        ),
        ("n4", "the node has no provider id (spec.providerID)"),
        (
            "n5",
            "there is no usable Secret fence-cloud-gce with the credentials of gce",
        ),
    ] {
        let faults = cluster.faults(name);
        assert!(faults[0].contains(why), "{faults:?}");
    }
    let of_both = cluster.with_secret("fence-cloud-gce", &["serviceaccount"]);
    let faults = of_both.faults("n5");
    assert!(
        faults[0].contains("it is of gce, and fence-config-default restarts instances of aws"),
        "{faults:?}"
    );
    assert_eq!(of_both.plan("fence-config-default").stages.len(), 2);
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
fn the_messages_of_a_crash_kernel_come_from_where_the_configuration_says() {
    let addresses = |said: &str| {
        let text = ONE.replace(
            "power_management=",
            &format!("kdump={said}\n      power_management="),
        );
        let from = Cluster::of(&text).read().nodes["n1"].dumps_from.clone();
        from.map(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    assert_eq!(Cluster::of(ONE).read().nodes["n1"].dumps_from, None);
    assert_eq!(addresses("node").unwrap(), ["192.0.2.7"]);
    assert_eq!(
        addresses("192.0.2.8, 2001:db8::8").unwrap(),
        ["192.0.2.8", "2001:db8::8"]
    );
    assert_eq!(addresses("none").unwrap(), [] as [&str; 0]);
    // Those of one node are none of another's.
    let all =
        "- metadata: { name: fence-config-default }\n  data: { config.properties: \"kdump=192.0.2.8\" }\n";
    assert_eq!(
        Cluster::of(all).faults("fence-config-default"),
        [
            "config.properties: kdump: gives addresses, and is for more than one node; node and none are allowed"
        ]
    );
    let all = Cluster::of(&all.replace("192.0.2.8", "node")).read();
    assert!(
        all.nodes
            .values()
            .all(|facts| facts.dumps_from.as_ref().is_some_and(|all| all.len() == 1))
    );
}

#[test]
fn a_message_of_a_crash_kernel_suffices_where_the_configuration_says_so_alone() {
    let suffices = |said: &str| {
        let text = ONE.replace("power_management=", &format!("{said}\n      power_management="));
        let plan = Cluster::of(&text).plan("fence-config-node-n1");
        plan.sufficient_sets.contains(&[ProofKind::Kdump].into())
    };
    assert!(!suffices("kdump=node") && !suffices("kdump=node\n      kdump_suffices=false"));
    assert!(suffices("kdump=node\n      kdump_suffices=true"));
}

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
fn a_key_of_a_clouds_secret_that_each_node_gives_is_refused() {
    let cluster = Cluster::of("[]").with_secret("fence-cloud-aws", &["access_key", "secret_key", "plug"]);
    assert_eq!(
        cluster.faults("fence-cloud-aws"),
        ["plug: is given by each node's provider id; remove it from the Secret"]
    );
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

/// The documents of YAML on the page of the documentation, by their headings.
fn examples() -> Vec<(String, Vec<Value>)> {
    let page = include_str!("../../../docs/kubernetes-configuration.md");
    let mut found = Vec::new();
    for section in page.split("\n## ").skip(1) {
        let heading = section.lines().next().unwrap().to_owned();
        let mut documents = Vec::new();
        for block in section.split("```yaml\n").skip(1) {
            let block = block.split("```").next().unwrap();
            documents.extend(
                block
                    .split("---\n")
                    .map(|one| serde_saphyr::from_str(one).unwrap()),
            );
        }
        if !documents.is_empty() {
            found.push((heading, documents));
        }
    }
    found
}

#[test]
fn the_examples_of_the_page_have_no_fault_and_each_gives_a_plan_or_a_policy() {
    let examples = examples();
    assert_eq!(examples.len(), 4);
    for (heading, documents) in examples {
        let mut cluster =
            Cluster::of("[]").with_node(node("n1", None, "aws:///eu-central-1a/i-0123456789abcdef0"));
        for document in &documents {
            let name = document["metadata"]["name"].as_str().unwrap().to_owned();
            let texts = |field: &str| {
                let texts = document[field].as_object().unwrap().iter();
                texts
                    .map(|(key, value)| (key.clone(), value.as_str().unwrap().to_owned()))
                    .collect::<BTreeMap<_, _>>()
            };
            match document["kind"].as_str().unwrap() {
                "Secret" => drop(
                    cluster
                        .secrets
                        .insert(name, texts("stringData").into_keys().collect()),
                ),
                _ => drop(
                    cluster
                        .sources
                        .0
                        .insert(name, Source::new(String::new(), texts("data"))),
                ),
            }
        }
        let reading = cluster.read();
        let mut declared = 0;
        for verdict in &reading.verdicts {
            let found = verdict
                .found
                .as_ref()
                .unwrap_or_else(|faults| panic!("{heading}: {faults}"));
            assert!(verdict.warnings.is_empty(), "{heading}: {:?}", verdict.warnings);
            declared += usize::from(matches!(found, Declared::Plan(_) | Declared::Segment { .. }));
        }
        assert_eq!(declared, 1, "{heading}: {:?}", reading.verdicts);
    }
}

#[test]
fn the_doctor_tells_what_is_declared_and_each_fault_with_its_object() {
    let cluster = Cluster::of(&ONE.replace("bmc/password", "bmc/pasword"));
    let told: Vec<String> = super::examining::findings(&cluster.read())
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
    let found = super::examining::findings(&Cluster::of(ONE).read());
    assert_eq!(found.len(), 1);
    assert!(found[0].found.contains("plans (1)"), "{found:?}");
}
