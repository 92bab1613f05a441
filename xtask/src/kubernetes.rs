//! Kubernetes: the programs of a control plane and of nodes without containers, built once from Debian's source and kept between runs.

mod parts;
mod tree;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use ringfence_lab::KubernetesPrograms;

use crate::error::{XtaskError, at, in_short};
use crate::python::take_turn;
use crate::say::say;
use crate::workspace::Workspace;
use tree::Tree;

/// A folder with programs that are ready; with it, nothing is built.
const READY: &str = "RINGFENCE_TEST_KUBERNETES_BIN";
/// The last release of which a Debian has the whole source. Newer packages have only the client's.
const VERSION: &str = "1.20.2";
/// Debian's name of that source.
const SOURCE: &str = "kubernetes=1.20.5+really1.20.2-1.1+deb12u1";
/// The program of a node, which is built within Kubernetes' source, and a file that replaces one of that source.
const OWN_FILES: [(&str, &str); 2] = [
    (
        "cmd/hollow-node/main.go",
        include_str!("kubernetes/hollow_node.go"),
    ),
    (
        "pkg/kubelet/oom/oom_watcher_linux.go",
        include_str!("kubernetes/no_oom_watcher.go"),
    ),
];

/// Whether there can be a Kubernetes.
pub enum Kubernetes {
    /// The folder for `ringfence_lab::KubernetesPrograms`.
    There(PathBuf),
    /// Why there is none.
    Absent(String),
}

/// Builds the programs unless they are built. Where Debian's source cannot be had there is no Kubernetes, which is no error.
pub fn provide(workspace: &Workspace) -> Result<Kubernetes, XtaskError> {
    if let Some(ready) = std::env::var_os(READY).filter(|ready| !ready.is_empty()) {
        return Ok(Kubernetes::There(PathBuf::from(ready)));
    }
    let folder = workspace.cache("kubernetes")?;
    let _turn = take_turn(&folder)?;
    let (programs, stamp) = (folder.join("bin"), folder.join("built"));
    let of_these = OWN_FILES.map(|(name, text)| format!("{name}\n{text}"));
    let of_these = format!("{SOURCE}\n{}", of_these.concat());
    let is_current = std::fs::read_to_string(&stamp).is_ok_and(|built| built == of_these);
    if is_current && is_complete(&programs) {
        return Ok(Kubernetes::There(programs));
    }
    say(&format!(
        "building Kubernetes {VERSION} into {}, which takes some minutes once",
        programs.display()
    ));
    let work = folder.join("work");
    remove(&work)?;
    let parts = match parts::fetch(&work) {
        Ok(parts) => parts,
        Err(error) => return Ok(Kubernetes::Absent(in_short(&error))),
    };
    build(&parts, &work, &programs)?;
    std::fs::write(&stamp, of_these).map_err(at(&stamp))?;
    // Removes some gigabytes that are not needed any more.
    remove(&work)?;
    Ok(Kubernetes::There(programs))
}

fn is_complete(programs: &Path) -> bool {
    let all = KubernetesPrograms::NAMES;
    all.iter().all(|name| programs.join(name).is_file())
}

fn build(parts: &parts::Parts, work: &Path, programs: &Path) -> Result<(), XtaskError> {
    let beside = work.join("bin");
    std::fs::create_dir_all(&beside).map_err(at(&beside))?;
    let tree = Tree::unpack(parts, work)?;
    for (name, text) in OWN_FILES {
        tree.write(name, text)?;
    }
    tree.describe_api()?;
    tree.build(VERSION, &beside)?;
    for program in parts.programs() {
        let name = program.file_name().unwrap_or(OsStr::new(""));
        std::fs::copy(&program, beside.join(name)).map_err(at(&program))?;
    }
    remove(programs)?;
    std::fs::rename(&beside, programs).map_err(at(programs))
}

fn remove(folder: &Path) -> Result<(), XtaskError> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(at(folder)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}
