//! The known environment variables.

use super::Environment;
use super::field::{FIELDS, Field};
use super::nearest::nearest;
use crate::error::Complaints;

/// Variables that name a service for the operator's commands, and configure none.
const CLIENT_VARIABLES: &[&str] = &[
    "RINGFENCE_CONFIG",
    "RINGFENCE_CONTEXT",
    "RINGFENCE_URL",
    "RINGFENCE_TOKEN",
    "RINGFENCE_TOKEN_FILE",
    "RINGFENCE_CA_FILE",
];

/// Variables with these prefixes belong to the site: secrets that methods refer to (`env:RINGFENCE_SECRET_...`), and tests.
const FREE_PREFIXES: &[&str] = &["RINGFENCE_SECRET_", "RINGFENCE_TEST_"];

/// Complains about every `RINGFENCE_*` variable that is not known.
pub fn check_names(environment: &Environment) -> Complaints {
    let variables: Vec<String> = FIELDS.iter().map(Field::variable).collect();
    let known = || {
        CLIENT_VARIABLES
            .iter()
            .copied()
            .chain(variables.iter().map(String::as_str))
    };
    let mut complaints = Complaints::default();
    for name in environment.names().filter(|name| name.starts_with("RINGFENCE_")) {
        let is_free = FREE_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        if !is_free && !known().any(|other| other == name) {
            let nearest = nearest(name, known());
            complaints.add(format!(
                "environment variable {name} is not known; did you mean {nearest}?"
            ));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_variable_is_refused_with_the_nearest_known_one() {
        let environment = Environment::from([
            ("RINGFENCE_DATABSE_URL", "x"),
            ("RINGFENCE_LOG_LEVEL", "info"),
            ("PATH", "/"),
        ]);
        let complaints = check_names(&environment).to_string();
        assert_eq!(
            complaints,
            "environment variable RINGFENCE_DATABSE_URL is not known; did you mean RINGFENCE_DATABASE_URL?"
        );
    }

    #[test]
    fn secrets_of_methods_may_have_any_name_behind_their_prefix() {
        let environment = Environment::from([("RINGFENCE_SECRET_BMC_7", "x"), ("RINGFENCE_TOKEN", "y")]);
        assert_eq!(check_names(&environment), Complaints::default());
    }
}
