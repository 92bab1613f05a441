//! Events on the objects of the configuration, and lines of the log: each fault once, and once that it is gone.

use std::collections::BTreeMap;

use ringfence_core::error_chain;
use serde_json::{Value, json};

use super::reading::Object;
use super::serving::Outcome;
use super::sources::Sources;
use crate::door::Door;
use crate::events::{Told, of_node, publish_in};

/// What was told last of each object.
#[derive(Default)]
pub(crate) struct Telling(BTreeMap<Object, Said>);

#[derive(Clone, PartialEq, Eq)]
enum Said {
    Fault(String),
    Warnings(Vec<String>),
    Good,
}

impl Telling {
    /// Tells what is new.
    pub(super) async fn tell(&mut self, door: &Door, sources: &Sources, outcomes: Vec<Outcome>) {
        let mut said = BTreeMap::new();
        for outcome in outcomes {
            let before = self.0.get(&outcome.object);
            let (now, told) = news(&outcome, before);
            if let Some(told) = told {
                self.log(door, &outcome.object, &told);
                publish(door, sources, &outcome.object, told).await;
            }
            said.insert(outcome.object, now);
        }
        // A node that can be fenced again has no outcome any more.
        for (object, before) in &self.0 {
            if object.kind == "Node" && !said.contains_key(object) && *before != Said::Good {
                let told = good("the node can be fenced by its cloud".to_owned());
                self.log(door, object, &told);
                publish(door, sources, object, told).await;
            }
        }
        self.0 = said;
    }

    fn log(&self, door: &Door, object: &Object, told: &Told) {
        let (cluster, namespace, note) = (&door.cluster, &door.namespace, &told.note);
        let (kind, name) = (object.kind, &object.name);
        match told.is_warning {
            true => tracing::warn!(cluster, namespace, kind, name, "fence configuration: {note}"),
            false => tracing::info!(cluster, namespace, kind, name, "fence configuration: {note}"),
        }
    }
}

fn news(outcome: &Outcome, before: Option<&Said>) -> (Said, Option<Told>) {
    let now = match (&outcome.found, outcome.warnings.is_empty()) {
        (Err(why), _) => Said::Fault(why.clone()),
        (Ok(_), false) => Said::Warnings(outcome.warnings.clone()),
        (Ok(_), true) => Said::Good,
    };
    if before == Some(&now) && !matches!(outcome.found, Ok((true, _))) {
        return (now, None);
    }
    let told = match (&outcome.found, &now) {
        (Err(why), _) => Some(Told {
            is_warning: true,
            reason: "FenceConfigurationInvalid".to_owned(),
            note: format!("nothing was changed: {why}"),
        }),
        (Ok(_), Said::Warnings(warnings)) => Some(Told {
            is_warning: true,
            reason: "FenceConfigurationUnused".to_owned(),
            note: warnings.join("; "),
        }),
        (Ok((is_changed, told)), _) => {
            let was_wrong = before.is_some_and(|before| *before != Said::Good);
            let told = match told.is_empty() {
                true => "it is right".to_owned(),
                false => told.clone(),
            };
            (*is_changed || was_wrong).then(|| good(told))
        }
    };
    (now, told)
}

fn good(note: String) -> Told {
    Told {
        is_warning: false,
        reason: "FenceConfigurationApplied".to_owned(),
        note,
    }
}

async fn publish(door: &Door, sources: &Sources, object: &Object, told: Told) {
    let Some(regarding) = regarding(door, sources, object) else {
        return;
    };
    let namespace = match object.kind {
        "Node" => None,
        _ => Some(door.namespace.as_str()),
    };
    if let Err(error) = publish_in(door, namespace, &told, &regarding).await {
        let (cluster, error) = (&door.cluster, error_chain(&error));
        tracing::warn!(cluster, error, "an Event of the cluster could not be written");
    }
}

fn regarding(door: &Door, sources: &Sources, object: &Object) -> Option<Value> {
    match object.kind {
        "Node" => Some(of_node(&object.name)),
        "ConfigMap" => {
            let uid = &sources.0.get(&object.name)?.uid;
            Some(json!({
                "apiVersion": "v1", "kind": "ConfigMap", "namespace": door.namespace, "name": object.name, "uid": uid,
            }))
        }
        kind => (!object.name.is_empty()).then(
            || json!({ "apiVersion": "v1", "kind": kind, "namespace": door.namespace, "name": object.name }),
        ),
    }
}
