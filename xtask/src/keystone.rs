//! Keystone, in a Python environment that is kept between runs.

use std::path::PathBuf;

use crate::error::XtaskError;
use crate::python::{Environment, provide_in};
use crate::workspace::Workspace;

/// Keystone with its dependencies, each in one version: Keystone's own requirements name lowest versions only.
const REQUIREMENTS: &str = include_str!("keystone-requirements.txt");

/// Installs Keystone unless it is installed, and returns the path of `keystone-manage`.
pub fn provide(workspace: &Workspace) -> Result<PathBuf, XtaskError> {
    let requirements = REQUIREMENTS.lines().filter(|line| !line.starts_with('#'));
    provide_in(
        workspace,
        &Environment {
            folder: "keystone",
            what: "Keystone",
            requirements: &requirements.collect::<Vec<_>>(),
            program: "keystone-manage",
        },
    )
}
