//! How nodes are fenced, as the objects of their clusters say it.

use ringfence_operator::{ConfigFault, examine_fence_config};

use super::Report;
use crate::config::Settings;
use crate::error::error_chain;
use crate::platforms;

const PART: &str = "fence configuration";
const REMEDY: &str = "mend it; docs/kubernetes-configuration.md has the keys, the values and the messages";

/// Reads and checks the objects of each cluster in `kubernetes.operator`. That a cluster does not answer is told by other checks.
pub(super) async fn look(settings: &Settings, report: &mut Report) {
    // A configuration that cannot be used is told with the platforms.
    let Ok(clusters) = platforms::operated(settings) else {
        return;
    };
    for cluster in clusters {
        let name = &cluster.name;
        match examine_fence_config(&cluster, &ringfence_workers::catalogue()).await {
            Ok(findings) => {
                for finding in findings {
                    let found = format!("{name}: {}", finding.found);
                    match finding.weight {
                        None => report.good(PART, found),
                        Some(ConfigFault::Unused) => report.warning(PART, found, REMEDY),
                        Some(ConfigFault::Invalid) => report.failure(PART, found, REMEDY),
                    }
                }
            }
            Err(error) => report.failure(
                PART,
                format!("{name}: it cannot be read: {}", error_chain(&error)),
                format!(
                    "bind the roles ringfence-operator and, in namespace {}, ringfence-configuration: ringfence kubernetes crds",
                    cluster.namespace
                ),
            ),
        }
    }
}
