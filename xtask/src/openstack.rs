//! OpenStack as Debian packages it.

use std::path::{Path, PathBuf};

use crate::deb;
use crate::error::{XtaskError, at};
use crate::packages;
use crate::python::take_turn;
use crate::say::say;
use crate::workspace::Workspace;

/// Packages that are not installed, because they bring daemons and ask questions, and the files that are taken out of them.
const PARTS: &[(&str, &[(&str, &str)])] = &[
    (
        "nova-common",
        &[("usr/share/nova-common/api-paste.ini", "nova-api-paste.ini")],
    ),
    (
        "cinder-common",
        &[
            ("usr/share/cinder-common/api-paste.ini", "cinder-api-paste.ini"),
            ("etc/cinder/resource_filters.json", "resource_filters.json"),
        ],
    ),
    (
        "neutron-common",
        &[("usr/share/neutron-common/api-paste.ini", "neutron-api-paste.ini")],
    ),
    (
        "masakari-api",
        &[("etc/masakari/api-paste.ini", "masakari-api-paste.ini")],
    ),
];

/// Installs missing packages, and returns the folder of the parts for `ringfence_lab::OpenStackOptions`.
pub fn provide(workspace: &Workspace) -> Result<PathBuf, XtaskError> {
    packages::provide_openstack(workspace)?;
    let folder = workspace.cache("openstack")?;
    let _turn = take_turn(&folder)?;
    let paste = folder.join("paste");
    if !is_complete(&paste) {
        say(&format!("taking OpenStack's pipelines into {}", paste.display()));
        take_out(&folder, &paste)?;
    }
    Ok(folder)
}

fn is_complete(paste: &Path) -> bool {
    PARTS
        .iter()
        .flat_map(|(_, files)| *files)
        .all(|(_, name)| paste.join(name).is_file())
}

fn take_out(folder: &Path, paste: &Path) -> Result<(), XtaskError> {
    let downloads = folder.join("downloads");
    std::fs::create_dir_all(paste).map_err(at(paste))?;
    let names: Vec<_> = PARTS.iter().map(|(package, _)| *package).collect();
    let root = deb::unpacked(&names, &downloads)?;
    for (from, to) in PARTS.iter().flat_map(|(_, files)| *files) {
        let from = root.join(from);
        std::fs::copy(&from, paste.join(to)).map_err(at(&from))?;
    }
    std::fs::remove_dir_all(&downloads).map_err(at(&downloads))
}
