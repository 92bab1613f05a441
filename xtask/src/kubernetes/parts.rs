//! Downloads: Kubernetes' source, and the packages that are needed to build and run it. None is installed.

use std::path::{Path, PathBuf};

use super::SOURCE;
use crate::error::{XtaskError, at};
use crate::{apt, deb};

/// The compiler with its library; two libraries that are newer than those in Kubernetes' source; and two programs that need no building.
const PACKAGES: &[&str] = &[
    "golang-1.19-go",
    "golang-1.19-src",
    "golang-github-modern-go-reflect2-dev",
    "golang-github-json-iterator-go-dev",
    "etcd-server",
    "kubernetes-client",
];

/// Unpacked packages and a packed source.
pub struct Parts {
    /// The content of the packages.
    pub root: PathBuf,
    /// The archive with the source.
    pub source: PathBuf,
}

impl Parts {
    /// The programs that are complete as Debian has them.
    pub fn programs(&self) -> [PathBuf; 2] {
        ["etcd", "kubectl"].map(|name| self.root.join("usr/bin").join(name))
    }
}

/// Downloads everything into a folder.
pub fn fetch(work: &Path) -> Result<Parts, XtaskError> {
    let (packages, source) = (work.join("packages"), work.join("source"));
    std::fs::create_dir_all(&source).map_err(at(&source))?;
    let root = deb::unpacked(PACKAGES, &packages)?;
    apt::download_source(SOURCE, &source)?;
    let files = std::fs::read_dir(&source).map_err(at(&source))?;
    let mut paths = files.filter_map(|entry| Some(entry.ok()?.path()));
    let source = paths.find(|path| path.to_string_lossy().ends_with(".orig.tar.gz"));
    let source = source.ok_or(XtaskError::Absent {
        program: "apt-get source kubernetes",
        what: "where the source is",
    })?;
    Ok(Parts { root, source })
}
