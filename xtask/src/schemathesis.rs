//! Schemathesis, which tests the API against its description, in a Python environment that is kept between runs.

use std::path::PathBuf;

use crate::error::XtaskError;
use crate::python::{Environment, provide_in};
use crate::workspace::Workspace;

/// Schemathesis with its dependencies, each in one version, so that a seed means one and only one test.
const REQUIREMENTS: &str = include_str!("schemathesis-requirements.txt");

/// Installs Schemathesis unless it is installed, and returns its path.
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
