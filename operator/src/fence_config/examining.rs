//! The configuration of a cluster, as `ringfence doctor` tells it. Nothing is changed.

use ringfence_backends::kubernetes::ClusterSettings;
use ringfence_core::Catalogue;

use super::asking::Asking;
use super::reading::{Declared, Given, Reading, SecretKeys, Verdict, read, secrets_named};
use super::serving::told;
use crate::OperatorError;

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigFinding {
    /// `None` if all is well.
    pub weight: Option<ConfigFault>,
    /// What was found.
    pub found: String,
}

/// How much a finding weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigFault {
    /// It is in force, or not needed, and something of it is for nothing.
    Unused,
    /// It is not in force.
    Invalid,
}

/// Reads and checks what the objects of a cluster declare, by what the operator itself reads it with. What only a worker's machine knows,
/// such as the metadata of fence agents, is not asked.
///
/// # Errors
/// The cluster does not answer, or refuses.
pub async fn examine(
    cluster: &ClusterSettings,
    drivers: &Catalogue,
) -> Result<Vec<ConfigFinding>, OperatorError> {
    let asking = Asking {
        cluster: cluster.name.clone(),
        namespace: cluster.namespace.clone(),
        client: cluster.client().await?,
        limit: cluster.timeout,
    };
    let sources = asking.sources().await?;
    let nodes = asking.nodes().await?;
    let mut given = Given {
        cluster: &cluster.name,
        namespace: &cluster.namespace,
        drivers,
        sources: &sources,
        nodes: &nodes,
        secrets: &SecretKeys::new(),
    };
    let secrets = asking.secret_keys(&secrets_named(&given)).await?;
    given.secrets = &secrets;
    Ok(findings(&read(&given)))
}

/// What is told of a reading.
pub(super) fn findings(reading: &Reading) -> Vec<ConfigFinding> {
    let mut findings: Vec<ConfigFinding> = reading.verdicts.iter().flat_map(of_verdict).collect();
    let plans = count(reading, |declared| matches!(declared, Declared::Plan(_)));
    let segments = count(reading, |declared| matches!(declared, Declared::Segment { .. }));
    let found = match reading.verdicts.is_empty() {
        true => {
            "its objects declare no plan: there is no ConfigMap fence-config-default, and no Secret with the credentials of its nodes' cloud".to_owned()
        }
        false => format!("its objects declare plans ({plans}) and policies of segments ({segments})"),
    };
    findings.insert(0, ConfigFinding { weight: None, found });
    findings
}

fn count(reading: &Reading, is_it: impl Fn(&Declared) -> bool) -> usize {
    let declared = reading
        .verdicts
        .iter()
        .filter_map(|verdict| verdict.found.as_ref().ok());
    declared.filter(|declared| is_it(declared)).count()
}

fn of_verdict(verdict: &Verdict) -> Vec<ConfigFinding> {
    let (kind, name) = (verdict.object.kind, &verdict.object.name);
    let finding = |weight, what: &str| ConfigFinding {
        weight: Some(weight),
        found: format!("{kind} {name}: {what}"),
    };
    match &verdict.found {
        Err(problems) => vec![finding(ConfigFault::Invalid, &told(problems))],
        Ok(_) => {
            let warnings = verdict.warnings.iter();
            warnings
                .map(|warning| finding(ConfigFault::Unused, warning))
                .collect()
        }
    }
}
