//! Keystone, in a Python environment that is kept between runs.

use std::path::PathBuf;

use crate::error::XtaskError;
use crate::python::{Environment, provide_in};
use crate::workspace::Workspace;

/// Keystone with all that it needs, each in one version: its own requirements name lowest versions only.
const REQUIREMENTS: &str = include_str!("keystone-requirements.txt");

/// Installs it unless it is there already, and says where `keystone-manage` is.
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
