//! What ConfigMaps declare together.

mod clouds;
mod dumps;
mod examples;
mod faults;
mod plans;

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

fn own(name: &str) -> Vec<Vec<String>> {
    vec![vec![format!("configmap_lab_{name}")]]
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
