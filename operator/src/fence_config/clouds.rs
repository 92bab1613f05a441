//! The clouds of the nodes, as far as their credentials are there.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_core::{ProviderId, validate_method, validate_name};

use super::checking::draft;
use super::cloud::{Cloud, machine};
use super::reading::{Declared, Given, Node, NodeFacts, Object, Verdict, prefix};

/// The clouds of the nodes.
pub(super) struct Clouds {
    prefix: String,
    /// Those whose credentials are there.
    pub ready: BTreeSet<Cloud>,
    pub verdicts: Vec<Verdict>,
}

impl Clouds {
    pub fn of(given: &Given<'_>) -> Self {
        let mut machines: BTreeMap<Cloud, ProviderId> = BTreeMap::new();
        for id in given
            .nodes
            .iter()
            .filter_map(|node| machine(&node.provider_id).ok())
        {
            machines.entry(Cloud::of(&id)).or_insert(id);
        }
        let mut clouds = Self {
            prefix: prefix(given.cluster),
            ready: BTreeSet::new(),
            verdicts: Vec::new(),
        };
        for (cloud, machine) in machines {
            clouds.add(cloud, &machine, given);
        }
        clouds
    }

    fn add(&mut self, cloud: Cloud, machine: &ProviderId, given: &Given<'_>) {
        let none = BTreeSet::new();
        let secret = cloud.secret();
        let keys = match &secret {
            None => &none,
            Some(secret) => match given.secrets.get(secret) {
                Some(keys) => keys,
                None => return,
            },
        };
        let found = cloud
            .method(&self.prefix, given.cluster, machine, keys)
            .and_then(|method| {
                validate_method(given.drivers, &draft(method.clone()))?;
                Ok(method)
            });
        if found.is_ok() {
            self.ready.insert(cloud);
        }
        let place = cloud.place(&self.prefix);
        self.verdicts.push(Verdict {
            object: Object {
                kind: "Secret",
                name: secret.unwrap_or_default(),
            },
            found: found.map(|method| Declared::Cloud { place, method }),
            warnings: Vec::new(),
        });
    }

    /// The cloud of a node, if its method can be used, or why not.
    pub fn of_node(&self, node: &Node) -> Result<Cloud, String> {
        let cloud = Cloud::of(&machine(&node.provider_id)?);
        match (self.ready.contains(&cloud), cloud.secret()) {
            (true, _) => Ok(cloud),
            (false, Some(secret)) => Err(format!(
                "there is no usable Secret {secret} with the credentials of {}",
                cloud.word()
            )),
            (false, None) => Err(format!("its cloud {} cannot be used", cloud.word())),
        }
    }

    /// The cloud of the most of these nodes.
    pub fn most_of(&self, nodes: &[&Node]) -> Option<Cloud> {
        let mut counts: BTreeMap<Cloud, usize> = BTreeMap::new();
        for cloud in nodes.iter().filter_map(|node| self.of_node(node).ok()) {
            *counts.entry(cloud).or_default() += 1;
        }
        let most = counts
            .into_iter()
            .max_by_key(|(cloud, count)| (*count, std::cmp::Reverse(*cloud)));
        most.map(|(cloud, _)| cloud)
    }

    pub fn facts(&self, node: &Node) -> NodeFacts {
        let machine = machine(&node.provider_id)
            .ok()
            .filter(|id| self.ready.contains(&Cloud::of(id)));
        NodeFacts {
            kind: node
                .kind
                .clone()
                .filter(|kind| validate_name("type", kind).is_ok()),
            machine: machine.map(|id| (Cloud::of(&id).method_name(&self.prefix), id.parameters())),
            dumps_from: None,
        }
    }
}
