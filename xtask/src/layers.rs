//! `cargo xtask layers`: no crate depends upwards.

use std::fmt;
use std::process::ExitCode;

use serde_json::Value;

use crate::error::XtaskError;
use crate::rooms::{CORE_LIBRARIES, KEPT_TO, Room, by_crate};
use crate::say::say;
use crate::workspace::Workspace;

/// A dependency that the table of rooms forbids.
#[derive(Debug, PartialEq, Eq)]
enum Breach {
    /// The workspace has a crate that is not in the table.
    UnknownRoom { crate_name: String },
    /// A crate depends on one that it may not use.
    Forbidden {
        from: String,
        to: String,
        allowed: String,
    },
    /// A crate's tests depend on a crate above it.
    TestsReachUp { from: String, to: String },
    /// A crate uses a library that is kept to other crates.
    Library {
        from: String,
        library: String,
        why: String,
    },
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownRoom { crate_name } => {
                write!(
                    f,
                    "{crate_name} is not in the table of rooms (xtask/src/rooms.rs)"
                )
            }
            Self::Forbidden { from, to, allowed } => {
                write!(f, "{from} depends on {to}; it may depend on: {allowed}")
            }
            Self::TestsReachUp { from, to } => {
                write!(f, "the tests of {from} depend on {to}, which stands above it")
            }
            Self::Library { from, library, why } => write!(f, "{from} depends on {library}; {why}"),
        }
    }
}

/// Runs the check; fails if there is a breach.
pub fn run() -> Result<ExitCode, XtaskError> {
    let breaches = check(&Workspace::find()?.metadata);
    for breach in &breaches {
        say(&format!("layers: {breach}"));
    }
    if breaches.is_empty() {
        say("layers: every dependency points downwards");
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::FAILURE)
}

fn check(metadata: &Value) -> Vec<Breach> {
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    packages.iter().flat_map(check_package).collect()
}

fn check_package(package: &Value) -> Vec<Breach> {
    let crate_name = package["name"].as_str().unwrap_or_default();
    let Some(room) = by_crate(crate_name) else {
        let crate_name = crate_name.to_owned();
        return vec![Breach::UnknownRoom { crate_name }];
    };
    let dependencies = package["dependencies"].as_array().map_or(&[][..], Vec::as_slice);
    dependencies
        .iter()
        .filter_map(|dependency| {
            let name = dependency["name"].as_str().unwrap_or_default();
            let for_tests = dependency["kind"] == "dev";
            match by_crate(name) {
                Some(other) => check_room(crate_name, room, name, other, for_tests),
                None if for_tests => None,
                None => check_library(crate_name, room, name),
            }
        })
        .collect()
}

fn check_room(from: &str, room: &Room, to: &str, other: &Room, for_tests: bool) -> Option<Breach> {
    let (from, to) = (from.to_owned(), to.to_owned());
    if room.may_use.concat().contains(&other.name) || from == to {
        return None;
    }
    if for_tests {
        return (other.height > room.height).then_some(Breach::TestsReachUp { from, to });
    }
    let allowed = if room.may_use.is_empty() {
        "no other crate".to_owned()
    } else {
        room.may_use.concat().join(", ")
    };
    Some(Breach::Forbidden { from, to, allowed })
}

fn check_library(from: &str, room: &Room, library: &str) -> Option<Breach> {
    let breach = |why: String| Breach::Library {
        from: from.to_owned(),
        library: library.to_owned(),
        why,
    };
    if room.name == "core" && !CORE_LIBRARIES.contains(&library) {
        return Some(breach(format!(
            "the rules are pure and may use: {}",
            CORE_LIBRARIES.join(", ")
        )));
    }
    let (_, keepers) = KEPT_TO.iter().find(|(kept, _)| *kept == library)?;
    (!keepers.contains(&room.name)).then(|| breach(format!("only these may: {}", keepers.join(", "))))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn breaches(crate_name: &str, dependency: Value) -> Vec<String> {
        let metadata = json!({"packages": [{"name": crate_name, "dependencies": [dependency]}]});
        check(&metadata).iter().map(Breach::to_string).collect()
    }

    #[test]
    fn a_dependency_downwards_is_fine() {
        let bus = json!({"name": "ringfence-bus", "kind": null});
        assert!(breaches("ringfence-engine", bus).is_empty());
    }

    #[test]
    fn a_dependency_upwards_is_named_with_what_is_allowed() {
        let engine = json!({"name": "ringfence-engine", "kind": null});
        assert_eq!(
            breaches("ringfence-db", engine),
            ["ringfence-db depends on ringfence-engine; it may depend on: core"]
        );
    }

    #[test]
    fn a_worker_never_sees_the_database() {
        let db = json!({"name": "ringfence-db", "kind": null});
        assert_eq!(
            breaches("ringfence-workers", db),
            ["ringfence-workers depends on ringfence-db; it may depend on: core, bus, backends"]
        );
    }

    #[test]
    fn tests_may_use_neighbours_but_nothing_above() {
        let workers = json!({"name": "ringfence-workers", "kind": "dev"});
        assert!(breaches("ringfence-engine", workers).is_empty());
        let api = json!({"name": "ringfence-api", "kind": "dev"});
        assert_eq!(
            breaches("ringfence-engine", api),
            ["the tests of ringfence-engine depend on ringfence-api, which stands above it"]
        );
    }

    #[test]
    fn a_build_script_obeys_the_same_table_as_the_code() {
        let cli = json!({"name": "ringfence-cli", "kind": "build"});
        assert_eq!(breaches("ringfence-api", cli).len(), 1);
    }

    #[test]
    fn the_rules_use_nothing_with_io() {
        let tokio = json!({"name": "tokio", "kind": null});
        assert_eq!(
            breaches("ringfence-core", tokio),
            [
                "ringfence-core depends on tokio; the rules are pure and may use: chrono, serde, serde_json, strum, thiserror, uuid"
            ]
        );
        let proptest = json!({"name": "proptest", "kind": "dev"});
        assert!(breaches("ringfence-core", proptest).is_empty());
    }

    #[test]
    fn sql_stays_in_its_room() {
        let sqlx = json!({"name": "sqlx", "kind": null});
        assert!(breaches("ringfence-db", sqlx.clone()).is_empty());
        assert_eq!(
            breaches("ringfence-api", sqlx),
            ["ringfence-api depends on sqlx; only these may: db, tests, bench, campaign"]
        );
    }

    #[test]
    fn a_new_crate_has_to_enter_the_table() {
        let serde = json!({"name": "serde", "kind": null});
        assert_eq!(
            breaches("ringfence-attic", serde),
            ["ringfence-attic is not in the table of rooms (xtask/src/rooms.rs)"]
        );
    }

    #[test]
    fn the_workspace_itself_obeys() {
        let workspace = Workspace::find().unwrap();
        assert_eq!(check(&workspace.metadata), []);
    }
}
