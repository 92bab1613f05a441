//! What all ConfigMaps of a cluster declare together. Nothing is asked here, and nothing is written.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ringfence_core::{Catalogue, Parameters, PlanStage, Problems, SegmentPolicy, SufficientSet};
use ringfence_engine::MethodDraft;

use super::checking::secrets_of;
use super::cloud::{Cloud, machine};
use super::clouds::Clouds;
use super::configurations::{Configs, Used};
use super::names::Scope;
use super::sources::Sources;

/// One node, as far as it matters how it is fenced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Node {
    pub name: String,
    /// Its label `type`.
    pub kind: Option<String>,
    pub provider_id: String,
    /// Its internal addresses.
    pub addresses: Vec<IpAddr>,
}

/// The keys of Secrets, by the names of the Secrets.
pub(crate) type SecretKeys = BTreeMap<String, BTreeSet<String>>;

/// What is read.
pub(crate) struct Given<'a> {
    pub cluster: &'a str,
    pub namespace: &'a str,
    pub drivers: &'a Catalogue,
    pub sources: &'a Sources,
    pub nodes: &'a [Node],
    pub secrets: &'a SecretKeys,
}

/// An object that declares something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Object {
    /// `ConfigMap`, `Secret` or `Node`.
    pub kind: &'static str,
    pub name: String,
}

/// What one object declares.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    pub object: Object,
    /// What it declares, or what is wrong with it.
    pub found: Result<Declared, Problems>,
    /// What an admin should know of it.
    pub warnings: Vec<String>,
}

/// What is declared, and where.
#[derive(Clone, Debug)]
pub(crate) enum Declared {
    /// Nothing by itself: others use it.
    Part,
    /// The method of a cloud.
    Cloud { place: String, method: MethodDraft },
    /// A plan with its methods.
    Plan(Box<PlanOf>),
    /// The policy of a segment.
    Segment {
        name: String,
        policy: Box<SegmentPolicy>,
    },
}

/// A plan with its methods.
#[derive(Clone, Debug)]
pub(crate) struct PlanOf {
    pub place: String,
    pub scope: Scope,
    pub methods: Vec<MethodDraft>,
    pub stages: Vec<PlanStage>,
    pub sufficient_sets: Vec<SufficientSet>,
}

/// What is known of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeFacts {
    /// The type of its host; `None` if the node does not say one.
    pub kind: Option<String>,
    /// What its machine is called by the method of its cloud.
    pub machine: Option<(String, Parameters)>,
    /// From where the messages of its crash kernel come; `None` if nothing says so.
    pub dumps_from: Option<Vec<IpAddr>>,
}

/// All that is declared.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    pub verdicts: Vec<Verdict>,
    /// What is known of each node.
    pub nodes: BTreeMap<String, NodeFacts>,
    /// Types of nodes for which there is a ConfigMap.
    pub types: BTreeSet<String>,
}

/// How the names of all that is declared in a cluster begin. No name of a Kubernetes object has `_`.
pub(crate) fn prefix(cluster: &str) -> String {
    format!("configmap_{cluster}_")
}

/// The Secrets that may be asked for: those that ConfigMaps name, and those of the nodes' clouds.
pub(crate) fn secrets_named(given: &Given<'_>) -> BTreeSet<String> {
    let clouds = given
        .nodes
        .iter()
        .filter_map(|node| machine(&node.provider_id).ok());
    let clouds = clouds.filter_map(|id| Cloud::of(&id).secret());
    let mut names: BTreeSet<String> = clouds.collect();
    let (configs, _) = Configs::read(given);
    for steps in configs.0.values().filter_map(|config| config.found.as_ref().ok()) {
        names.extend(
            steps
                .drafts("")
                .iter()
                .flat_map(secrets_of)
                .map(|(secret, _)| secret.to_owned()),
        );
    }
    names
}

/// Reads everything.
pub(crate) fn read(given: &Given<'_>) -> Reading {
    let (configs, mut verdicts) = Configs::read(given);
    let clouds = Clouds::of(given);
    let used = configs.used(given.nodes);
    verdicts.extend(clouds.verdicts.iter().cloned());
    for (name, config) in &configs.0 {
        verdicts.push(config.verdict(name, given, &clouds, &used));
    }
    if let Some(verdict) = configs.by_default(given, &clouds, &used) {
        verdicts.push(verdict);
    }
    verdicts.extend(configs.nodes_without(&clouds, &used));
    let scopes = configs.0.values().filter_map(|config| config.scope());
    let types = scopes.filter_map(|scope| match scope {
        Scope::Type(word) => Some(word.clone()),
        Scope::Default | Scope::Node(_) => None,
    });
    Reading {
        types: types.collect(),
        nodes: facts(&configs, &clouds, &used),
        verdicts,
    }
}

fn facts(configs: &Configs, clouds: &Clouds, used: &Used<'_>) -> BTreeMap<String, NodeFacts> {
    let mut facts = BTreeMap::new();
    for (name, nodes) in used {
        let steps = configs.0.get(name).and_then(|config| config.found.as_ref().ok());
        for node in nodes {
            let dumps_from = steps.and_then(|steps| steps.dumps.of(node));
            let known = NodeFacts {
                dumps_from,
                ..clouds.facts(node)
            };
            facts.insert(node.name.clone(), known);
        }
    }
    facts
}

pub(super) fn config_map(name: &str) -> Object {
    Object {
        kind: "ConfigMap",
        name: name.to_owned(),
    }
}
