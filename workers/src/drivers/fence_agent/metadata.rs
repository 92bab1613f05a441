//! What an agent says of itself.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use ringfence_core::error_chain;
use serde::Deserialize;
use tokio::time::Instant;

use super::call::Call;
use crate::WorkerError;
use crate::process::ProcessError;

/// More agents than any machine has installed.
const MAX_CACHED: usize = 512;

/// The parameters and actions of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Metadata {
    #[serde(default)]
    parameters: ParameterList,
    #[serde(default)]
    actions: ActionList,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
struct ParameterList {
    #[serde(default, rename = "parameter")]
    list: Vec<Parameter>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
struct ActionList {
    #[serde(default, rename = "action")]
    list: Vec<Action>,
}

/// One parameter.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Parameter {
    #[serde(rename = "@name")]
    pub name: String,
    #[serde(default, rename = "@required")]
    required: String,
    /// The older name of the parameter.
    #[serde(default, rename = "@obsoletes")]
    pub obsoletes: Option<String>,
    #[serde(default)]
    pub content: Content,
}

impl Parameter {
    pub(super) fn is_required(&self) -> bool {
        self.required == "1"
    }
}

/// What a parameter takes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Content {
    /// `string`, `boolean`, `integer`, `second` or `select`.
    #[serde(default, rename = "@type")]
    pub kind: String,
    #[serde(default, rename = "@default")]
    pub default: Option<String>,
    /// For `select`.
    #[serde(default, rename = "option")]
    pub options: Vec<Choice>,
}

/// One value of a `select`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Choice {
    #[serde(rename = "@value")]
    pub value: String,
}

/// One action.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Action {
    #[serde(rename = "@name")]
    name: String,
    #[serde(default, rename = "@on_target")]
    on_target: String,
    #[serde(default, rename = "@automatic")]
    automatic: String,
}

impl Action {
    /// Whether it only works on the host that it is about.
    pub(super) fn must_run_on_host(&self) -> bool {
        self.on_target == "1"
    }
}

impl Metadata {
    pub(super) fn parse(xml: &str) -> Result<Self, quick_xml::DeError> {
        quick_xml::de::from_str(xml)
    }

    pub(super) fn parameters(&self) -> &[Parameter] {
        &self.parameters.list
    }

    /// Agents take `-` and `_` for one character.
    pub(super) fn parameter(&self, name: &str) -> Option<&Parameter> {
        let plain = |name: &str| name.replace('-', "_");
        self.parameters
            .list
            .iter()
            .find(|p| plain(&p.name) == plain(name))
    }

    pub(super) fn action(&self, name: &str) -> Option<&Action> {
        self.actions.list.iter().find(|action| action.name == name)
    }

    /// Whether the agent cuts hosts off from a fabric: such agents cannot reboot, and want to be unfenced by the cluster itself.
    pub(super) fn is_fabric(&self) -> bool {
        self.action("reboot").is_none() || self.action("on").is_some_and(|on| on.automatic == "1")
    }
}

/// The agents of this machine, and the metadata of those that were asked already.
pub(super) struct Catalogue {
    path: Vec<PathBuf>,
    known: Mutex<HashMap<PathBuf, (SystemTime, Arc<Metadata>)>>,
}

impl Catalogue {
    pub(super) fn new(path: Vec<PathBuf>) -> Self {
        Self {
            path,
            known: Mutex::default(),
        }
    }

    /// The agent's program and metadata. Asks the agent again once its program has changed.
    pub(super) async fn get(
        &self,
        agent: &str,
        until: Instant,
    ) -> Result<(PathBuf, Arc<Metadata>), WorkerError> {
        let (path, changed) = self.find(agent)?;
        if let Some(metadata) = self.cached(&path, changed) {
            return Ok((path, metadata));
        }
        let metadata = Arc::new(ask(agent, &path, until).await?);
        let mut known = self.known.lock();
        if known.len() >= MAX_CACHED {
            known.clear();
        }
        known.insert(path.clone(), (changed, Arc::clone(&metadata)));
        Ok((path, metadata))
    }

    fn cached(&self, path: &Path, changed: SystemTime) -> Option<Arc<Metadata>> {
        let known = self.known.lock();
        known
            .get(path)
            .filter(|(then, _)| *then == changed)
            .map(|(_, metadata)| Arc::clone(metadata))
    }

    /// The name is checked here although it was checked when the method was made: it becomes a program to run.
    fn find(&self, agent: &str) -> Result<(PathBuf, SystemTime), WorkerError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if !agent
            .strip_prefix("fence_")
            .is_some_and(|rest| !rest.is_empty() && rest.chars().all(plain))
        {
            return Err(WorkerError::refused(format!(
                "{agent:?} is not the name of a fence agent"
            )));
        }
        self.path
            .iter()
            .map(|folder| folder.join(agent))
            .find_map(|path| {
                let metadata = std::fs::metadata(&path).ok().filter(std::fs::Metadata::is_file)?;
                Some((path, metadata.modified().ok()?))
            })
            .ok_or_else(|| {
                WorkerError::refused(format!(
                    "{agent} is not installed on the worker{}",
                    self.hint(agent)
                ))
            })
    }

    /// The most similar agent that is there.
    fn hint(&self, agent: &str) -> String {
        let names = self
            .path
            .iter()
            .filter_map(|folder| std::fs::read_dir(folder).ok())
            .flatten();
        let names: Vec<String> = names
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.starts_with("fence_"))
            .collect();
        nearest(agent, names.iter().map(String::as_str))
            .map_or_else(String::new, |name| format!("; did you mean {name}?"))
    }
}

/// The most similar name, if one is similar at all.
pub(super) fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let most = (name.len() / 3).clamp(1, 4);
    candidates
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= most)
        .min()
        .map(|(_, candidate)| candidate)
}

async fn ask(agent: &str, path: &Path, until: Instant) -> Result<Metadata, WorkerError> {
    let call = Call::new("metadata", std::iter::empty()).map_err(WorkerError::refused)?;
    let ended = call.run(path, until).await.map_err(|error| match error {
        ProcessError::Missing(_) => WorkerError::refused(error.to_string()),
        _ => WorkerError::unclear(format!(
            "{agent} does not tell its parameters: {}",
            error_chain(&error)
        )),
    })?;
    let useless = || {
        WorkerError::refused(format!(
            "{agent} tells nothing of its parameters and cannot be used"
        ))
    };
    if !ended.stdout.contains("<resource-agent") {
        return Err(useless());
    }
    Metadata::parse(&ended.stdout).map_err(|_| useless())
}
