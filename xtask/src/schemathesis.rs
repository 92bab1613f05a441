//! Schemathesis, which holds the API against its description, in a Python environment that is kept between runs.

use std::path::PathBuf;

use crate::error::XtaskError;
use crate::python::{Environment, provide_in};
use crate::workspace::Workspace;

/// It with all that it needs, each in one version, so that a seed means the same everywhere.
const REQUIREMENTS: &str = include_str!("schemathesis-requirements.txt");

/// Installs it unless it is there already, and says where it is.
pub fn provide(workspace: &Workspace) -> Result<PathBuf, XtaskError> {
    let requirements = REQUIREMENTS.lines().filter(|line| !line.starts_with('#'));
    provide_in(
        workspace,
        &Environment {
            folder: "schemathesis",
            what: "Schemathesis",
            requirements: &requirements.collect::<Vec<_>>(),
            program: "schemathesis",
        },
    )
}
