//! Labels: what an operator tells hosts apart by, such as the rack they stand in.

use std::collections::BTreeMap;

use crate::{Problem, Problems};

/// The labels of a host: values by name.
pub type Labels = BTreeMap<String, String>;

/// Labels that one host may have.
pub const MAX_LABELS: usize = 32;
/// The longest name of a label, in characters: a prefix, a slash and a name in Kubernetes have at most 317.
const MAX_NAME_CHARS: usize = 317;
/// The longest value, in characters, as in Kubernetes.
const MAX_VALUE_CHARS: usize = 63;

/// A label's name is what Kubernetes takes for one: letters, digits, `.`, `_`, `-` and `/`, a letter or digit first.
pub fn check_label_name(field: &str, name: &str) -> Result<(), Problem> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
    let is_name = name.chars().all(allowed) && name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if !is_name || name.len() > MAX_NAME_CHARS {
        return Err(Problem::new(
            field,
            format!(
                "is {name:?}; the name of a label has 1 to {MAX_NAME_CHARS} letters, digits, '.', '_', '-' and '/', a letter or digit first"
            ),
        ));
    }
    Ok(())
}

/// The label of a cluster's nodes that run its control plane; its value is the cluster's name, where the cluster gives it none.
pub const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";

/// Whether a backend gives hosts the label, where it gives them any: those of failure domains, and of a control plane.
#[must_use]
pub fn is_of_backend(name: &str) -> bool {
    name == CONTROL_PLANE || name.starts_with("topology.")
}

/// Refuses labels that are none.
pub(crate) fn check_labels(labels: &Labels, problems: &mut Problems) {
    if labels.len() > MAX_LABELS {
        let count = labels.len();
        problems.add(
            "labels",
            format!("has {count} labels; at most {MAX_LABELS} are allowed"),
        );
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    for (name, value) in labels {
        if let Err(problem) = check_label_name("labels", name) {
            problems.0.push(problem);
        } else if value.len() > MAX_VALUE_CHARS || !value.chars().all(allowed) {
            problems.add(
                format!("labels.{name}"),
                format!(
                    "is {value:?}; at most {MAX_VALUE_CHARS} letters, digits, '.', '_' and '-' are allowed"
                ),
            );
        }
    }
}
