//! Parameters: names and values, wherever they are given.

use std::collections::BTreeMap;

use crate::Problems;
use crate::template::check_template;

/// Parameters of a driver, by name.
pub type Parameters = BTreeMap<String, String>;

/// The most parameters that a method may have.
pub(super) const MAX_PARAMETERS: usize = 64;
/// The longest value of a parameter, in characters.
pub(super) const MAX_VALUE_CHARS: usize = 1024;

/// Checks names and values of parameters, wherever they are given: no secret in plain text, nothing that could end a line
/// of an agent's input.
pub(crate) fn check_parameters(field: &str, parameters: &Parameters, problems: &mut Problems) {
    if parameters.len() > MAX_PARAMETERS {
        problems.add(
            field,
            format!(
                "has {} entries; at most {MAX_PARAMETERS} are allowed",
                parameters.len()
            ),
        );
    }
    for (name, value) in parameters {
        let at = format!("{field}.{name}");
        if !is_parameter_name(name) {
            problems.add(
                field,
                format!("has the name {name:?}; 1 to 64 letters, digits, '_' and '-' are allowed"),
            );
        } else if is_secret_name(name) {
            problems.add(
                at,
                format!(
                    "is a secret and must not be given as plain text; put \"{name}\" under \"secrets\" as a reference: \
                     env:NAME, file:/absolute/path or secret:CLUSTER/SECRET/KEY, which the worker resolves"
                ),
            );
        } else if let Some(bad) = value.chars().find(|c| c.is_control()) {
            problems.add(
                at,
                format!("holds the control character {bad:?}; one line of plain text is allowed"),
            );
        } else if value.chars().count() > MAX_VALUE_CHARS {
            problems.add(
                at,
                format!(
                    "has {} characters; at most {MAX_VALUE_CHARS} are allowed",
                    value.chars().count()
                ),
            );
        } else if let Err(why) = check_template(value) {
            problems.add(at, why);
        }
    }
}

pub(super) fn is_parameter_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    !name.is_empty() && name.len() <= 64 && name.chars().all(allowed)
}

/// Whether a parameter of this name would hold a secret. A script or a file that yields one is not a secret itself.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let indirect = ["_script", "_file", "_path"]
        .iter()
        .any(|end| name.ends_with(end));
    let secret = [
        "passw",
        "passphrase",
        "secret",
        "token",
        "community",
        "api_key",
        "apikey",
        "private_key",
    ];
    !indirect && secret.iter().any(|part| name.contains(part))
}
