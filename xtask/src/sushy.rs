//! The Redfish emulator, in a Python environment that is kept between runs.

use std::path::PathBuf;

use crate::error::XtaskError;
use crate::python::{Environment, provide_in};
use crate::workspace::Workspace;

/// Installs the emulator unless it is installed, and returns its path.
pub fn provide(workspace: &Workspace) -> Result<PathBuf, XtaskError> {
    provide_in(
        workspace,
        &Environment {
            folder: "python",
            what: "sushy-tools",
            requirements: &["sushy-tools==2.2.0", "bcrypt"],
            program: "sushy-emulator",
        },
    )
}
