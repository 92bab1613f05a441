//! What a cluster declares is held against what Ringfence has, and brought there.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ringfence_core::{
    Backend, Host, KDUMP, PlanScope, Problems, SegmentPolicy, error_chain, kdump_parameters,
};
use ringfence_db::CloudHost;
use ringfence_engine::{Configured, Context, Declaration, EngineError, HostChange, PlanDraft};

use super::cloud::SECRET;
use super::names::{PREFIX, Scope};
use super::reading::{
    Declared, Given, NodeFacts, Object, PlanOf, Reading, Verdict, prefix, read, secrets_named,
};
use super::segments;
use super::sources::Sources;
use super::telling::Telling;
use crate::OperatorError;
use crate::door::Door;
use crate::refusal;

/// The next look without a change: Secrets are not watched. A look lists all nodes, so that large clusters are looked at less often.
const WITH_FAULTS: Duration = Duration::from_secs(10);
const OTHERWISE: Duration = Duration::from_secs(60);
/// With so many nodes it is twice as long until the next look.
const MANY_NODES: usize = 1_000;

/// What is known from one pass to the next.
#[derive(Default)]
pub(crate) struct Known {
    pub telling: Telling,
    /// What was found of each node.
    nodes: BTreeMap<String, NodeFacts>,
    segments: BTreeMap<String, SegmentPolicy>,
}

/// What happens to the parts that are declared.
struct Pass<'a> {
    door: &'a Door,
    /// The names of hosts by the names of their nodes.
    hosts: BTreeMap<String, String>,
    configured: Configured,
}

/// Brings the configuration to what the cluster declares now, and tells what is new. Returns when it is looked at again without a change.
pub(crate) async fn serve(door: &Door, known: &mut Known) -> Result<Option<Duration>, OperatorError> {
    let (sources, outcomes) = apply(door, known).await?;
    let is_wrong = |outcome: &Outcome| outcome.found.is_err() || !outcome.warnings.is_empty();
    let next = next_look(outcomes.iter().any(is_wrong), known.nodes.len());
    known.telling.tell(door, &sources, outcomes).await;
    Ok(Some(next))
}

fn next_look(has_faults: bool, nodes: usize) -> Duration {
    let few = if has_faults { WITH_FAULTS } else { OTHERWISE };
    let more = u32::try_from(nodes / MANY_NODES).unwrap_or(u32::MAX);
    few.saturating_mul(more.saturating_add(1))
}

/// Brings the configuration to what the cluster declares now.
pub(crate) async fn apply(door: &Door, known: &mut Known) -> Result<(Sources, Vec<Outcome>), OperatorError> {
    let (sources, reading) = look(door).await?;
    let mut pass = Pass {
        hosts: hosts(door).await?,
        door,
        configured: door.engine.configured().await?,
    };
    pass.apply_nodes(&reading, known).await?;
    let mut outcomes = Vec::new();
    let present = present(&sources, &reading);
    for verdict in in_order(reading.verdicts) {
        outcomes.push(pass.apply(verdict, known).await?);
    }
    pass.remove_others(&present, known).await?;
    Ok((sources, outcomes))
}

/// Brings the policies of segments alone to what the cluster declares.
pub(crate) async fn serve_segments(door: &Door) -> Result<(), OperatorError> {
    let mut known = Known::default();
    let (_, reading) = look(door).await?;
    let mut pass = Pass {
        hosts: BTreeMap::new(),
        door,
        configured: door.engine.configured().await?,
    };
    for verdict in reading.verdicts {
        if matches!(verdict.found, Ok(Declared::Segment { .. })) {
            pass.apply(verdict, &mut known).await?;
        }
    }
    Ok(())
}

async fn look(door: &Door) -> Result<(Sources, Reading), OperatorError> {
    let asking = door.asking();
    let sources = asking.sources().await?;
    let nodes = asking.nodes().await?;
    let mut given = Given {
        cluster: &door.cluster,
        namespace: &door.namespace,
        drivers: door.engine.drivers(),
        sources: &sources,
        nodes: &nodes,
        secrets: &BTreeMap::new(),
    };
    let secrets = asking.secret_keys(&secrets_named(&given)).await?;
    given.secrets = &secrets;
    let reading = read(&given);
    Ok((sources, reading))
}

async fn hosts(door: &Door) -> Result<BTreeMap<String, String>, OperatorError> {
    let mut reader = door.engine.db().reader();
    let source = Backend::Kubernetes.label(&door.cluster);
    let hosts = ringfence_db::hosts_of_cloud(&mut reader, &door.cluster, &source).await?;
    let names = hosts
        .into_iter()
        .map(|CloudHost { name, known_as, .. }| (known_as, name));
    Ok(names.collect())
}

/// The more specific plans first, so that no node is fenced by a plan that is not its own while the others are yet to come.
fn in_order(mut verdicts: Vec<Verdict>) -> Vec<Verdict> {
    let rank = |verdict: &Verdict| match &verdict.found {
        Ok(Declared::Segment { .. }) => 0,
        Ok(Declared::Cloud { .. }) => 1,
        Ok(Declared::Plan(plan)) => match plan.scope {
            Scope::Node(_) => 2,
            Scope::Type(_) => 3,
            Scope::Default => 4,
        },
        Ok(Declared::Part) | Err(_) => 5,
    };
    verdicts.sort_by_key(rank);
    verdicts
}

/// The names of everything that is there, with a fault or without one: nothing of it is removed.
fn present(sources: &Sources, reading: &Reading) -> BTreeSet<String> {
    let objects = reading.verdicts.iter().map(|verdict| verdict.object.name.clone());
    sources.0.keys().cloned().chain(objects).collect()
}

impl Pass<'_> {
    async fn apply(&mut self, verdict: Verdict, known: &mut Known) -> Result<Outcome, OperatorError> {
        let Verdict {
            object,
            found,
            mut warnings,
        } = verdict;
        let declared = match found {
            Ok(declared) => declared,
            Err(problems) => return Ok(Outcome::fault(object, told(&problems))),
        };
        let by = self.asker(&object);
        let done = match declared {
            Declared::Part => return Ok(Outcome::unchanged(object, String::new(), warnings)),
            Declared::Segment { name, policy } => {
                segments::declare(self.door, &name, *policy, &mut known.segments, &by)
                    .await
                    .map(|changed| (changed, format!("the policy of segment {name} is in force")))
            }
            Declared::Cloud { place, method } => {
                let told = format!("method {} is in force", method.name);
                let declaration = Declaration {
                    place,
                    methods: vec![method],
                    plan: None,
                };
                let done = self
                    .door
                    .engine
                    .declare(&mut self.configured, declaration, &by)
                    .await;
                done.map(|changed| (changed, told))
            }
            Declared::Plan(plan) => match self.declaration(*plan) {
                Ok(declaration) => {
                    let told = format!("plan {} is in force", declaration.place);
                    let done = self
                        .door
                        .engine
                        .declare(&mut self.configured, declaration, &by)
                        .await;
                    done.map(|changed| (changed, told))
                }
                Err(why) => {
                    warnings.push(why);
                    return Ok(Outcome::unchanged(object, String::new(), warnings));
                }
            },
        };
        match done {
            Ok((is_changed, told)) => Ok(Outcome {
                object,
                found: Ok((is_changed, told)),
                warnings,
            }),
            Err(error) => Ok(Outcome::fault(object, refused(error)?)),
        }
    }

    fn declaration(&self, plan: PlanOf) -> Result<Declaration, String> {
        let scope = match plan.scope {
            Scope::Default => PlanScope::Default,
            Scope::Type(word) => PlanScope::HostType(word),
            Scope::Node(node) => match self.hosts.get(&node) {
                Some(host) => PlanScope::Host(host.clone()),
                None => {
                    return Err(format!(
                        "node {node} is no host of Ringfence; its plan begins with it"
                    ));
                }
            },
        };
        Ok(Declaration {
            plan: Some(PlanDraft {
                name: plan.place.clone(),
                scope,
                stages: plan.stages,
                sufficient_sets: plan.sufficient_sets,
            }),
            place: plan.place,
            methods: plan.methods,
        })
    }

    /// What is not there any more declares nothing. The method of a cloud stays as long as a plan names it.
    async fn remove_others(
        &mut self,
        present: &BTreeSet<String>,
        known: &mut Known,
    ) -> Result<(), OperatorError> {
        let engine = &self.door.engine;
        let prefix = prefix(&self.door.cluster);
        let declared = self.configured.places(&prefix).into_iter();
        let is_own = |place: &String| {
            place
                .strip_prefix(&prefix)
                .is_some_and(|name| name.starts_with(PREFIX))
        };
        let mut gone: Vec<String> = declared
            .filter(is_own)
            .filter(|place| {
                place
                    .strip_prefix(&prefix)
                    .is_some_and(|name| !present.contains(name))
            })
            .collect();
        gone.sort_by_key(|place| place.contains(SECRET));
        for place in gone {
            let name = place.strip_prefix(&prefix).unwrap_or(&place).to_owned();
            let by = self.asker(&Object {
                kind: "ConfigMap",
                name,
            });
            match engine
                .declare(&mut self.configured, Declaration::nothing(&place), &by)
                .await
            {
                Ok(_) => {
                    let cluster = &self.door.cluster;
                    tracing::info!(
                        cluster,
                        place,
                        "what a ConfigMap had declared was removed with it"
                    );
                }
                Err(EngineError::InUse(why)) => {
                    tracing::debug!(place, why, "what a ConfigMap had declared stays");
                }
                Err(error) => return Err(error.into()),
            }
        }
        segments::remove_others(self.door, present, &mut known.segments).await
    }

    /// The types of hosts, and what their machines are called. A host in an operation or FENCED keeps what it is found by.
    async fn apply_nodes(&self, reading: &Reading, known: &mut Known) -> Result<(), OperatorError> {
        known.nodes.retain(|node, _| reading.nodes.contains_key(node));
        for (node, facts) in &reading.nodes {
            if known.nodes.get(node) == Some(facts) || !self.hosts.contains_key(node) {
                continue;
            }
            if self.apply_node(node, facts, reading).await? {
                known.nodes.insert(node.clone(), facts.clone());
            }
        }
        Ok(())
    }

    /// `false` if it is to be tried again.
    async fn apply_node(
        &self,
        node: &str,
        facts: &NodeFacts,
        reading: &Reading,
    ) -> Result<bool, OperatorError> {
        let Some(standing) = self.door.standing(node).await? else {
            return Ok(false);
        };
        let host = standing.state.host;
        let by = self.door.asker("Node");
        let mut is_done = true;
        for change in [
            kind_change(&host, facts, reading),
            parameters_change(&host, facts),
        ]
        .into_iter()
        .flatten()
        {
            let id = host.id.to_string();
            match self.door.engine.update_host(&id, change, None, &by).await {
                Ok(_) => {}
                Err(error @ (EngineError::Refused(_) | EngineError::Invalid(_))) => {
                    let error = error_chain(&error);
                    tracing::debug!(node, error, "what a node says of itself is not taken yet");
                    is_done = false;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(is_done)
    }

    fn asker(&self, object: &Object) -> Context {
        let kind = object.kind.to_ascii_lowercase();
        Context {
            is_admin: true,
            ..Context::own(&format!("{kind} {}/{}", self.door.namespace, object.name))
        }
    }
}

/// A node without the label loses a type for which there is a ConfigMap; another one was given through the API.
fn kind_change(host: &Host, facts: &NodeFacts, reading: &Reading) -> Option<HostChange> {
    let is_declared = |kind: &String| reading.types.contains(kind);
    let wanted = match &facts.kind {
        Some(kind) => Some(kind.clone()),
        None => host.host_type.clone().filter(|kind| !is_declared(kind)),
    };
    (host.host_type != wanted).then(|| HostChange {
        host_type: Some(wanted),
        ..HostChange::default()
    })
}

fn parameters_change(host: &Host, facts: &NodeFacts) -> Option<HostChange> {
    let mut parameters = host.parameters.clone();
    if let Some((method, machine)) = &facts.machine {
        parameters.insert(method.clone(), machine.clone());
    }
    match facts.dumps_from.as_deref() {
        None => {}
        Some([]) => drop(parameters.remove(KDUMP)),
        Some(addresses) => drop(parameters.insert(KDUMP.to_owned(), kdump_parameters(addresses))),
    }
    (host.parameters != parameters).then(|| HostChange {
        parameters: Some(parameters),
        ..HostChange::default()
    })
}

/// What became of what one object declares.
pub(crate) struct Outcome {
    pub object: Object,
    /// Whether something was changed, and what is in force; or what is wrong.
    pub found: Result<(bool, String), String>,
    pub warnings: Vec<String>,
}

impl Outcome {
    fn fault(object: Object, why: String) -> Self {
        Self {
            object,
            found: Err(why),
            warnings: Vec::new(),
        }
    }

    fn unchanged(object: Object, told: String, warnings: Vec<String>) -> Self {
        Self {
            object,
            found: Ok((false, told)),
            warnings,
        }
    }
}

pub(super) fn told(problems: &Problems) -> String {
    let all = problems.0.iter().map(ToString::to_string);
    all.collect::<Vec<_>>().join("; ")
}

/// What the engine says against it; a fault of the engine itself is none of the object.
fn refused(error: EngineError) -> Result<String, EngineError> {
    match error {
        EngineError::Invalid(problems) => Ok(told(&problems)),
        error @ (EngineError::Duplicate(_)
        | EngineError::InUse(_)
        | EngineError::DeviceFailed { .. }
        | EngineError::NoWorker { .. }) => Ok(error_chain(&error)),
        error => refusal::told(error).map(|why| why.message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_clusters_are_looked_at_less_often() {
        let next = |has_faults, nodes| next_look(has_faults, nodes).as_secs();
        assert_eq!((next(true, 0), next(true, 999), next(true, 5_000)), (10, 10, 60));
        assert_eq!((next(false, 999), next(false, 5_000)), (60, 360));
    }
}
