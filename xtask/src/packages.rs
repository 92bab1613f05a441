//! The Debian packages that the tests need.

use std::path::Path;

use ringfence_lab::{Fencer, find_postgresql, find_program, rabbitmq_folder};

use crate::apt;
use crate::error::XtaskError;
use crate::workspace::Workspace;

/// A package, and how to see that its content is there (which may have been installed in another way).
struct Package {
    name: &'static str,
    is_there: fn() -> bool,
}

const PACKAGES: &[Package] = &[
    Package {
        name: "postgresql",
        is_there: || find_postgresql().is_some(),
    },
    Package {
        name: "rabbitmq-server",
        is_there: || rabbitmq_folder().is_some() && find_program("epmd").is_some(),
    },
    Package {
        name: "fence-agents",
        is_there: || find_program("fence_dummy").is_some() && find_program("fence_ipmilan").is_some(),
    },
    Package {
        name: "openipmi",
        is_there: || find_program("ipmi_sim").is_some(),
    },
    Package {
        name: "ipmitool",
        is_there: || find_program("ipmitool").is_some(),
    },
    Package {
        name: "openssl",
        is_there: || find_program("openssl").is_some(),
    },
    Package {
        // The documentation's readers have curl and jq.
        name: "curl",
        is_there: || find_program("curl").is_some(),
    },
    Package {
        name: "jq",
        is_there: || find_program("jq").is_some(),
    },
    Package {
        // For promtool, which checks the alert rules.
        name: "prometheus",
        is_there: || find_program("promtool").is_some(),
    },
    Package {
        // For systemd-analyze, which checks the units.
        name: "systemd",
        is_there: || find_program("systemd-analyze").is_some(),
    },
    Package {
        // Checks the compose file; no daemon of Docker's is needed.
        name: "docker-compose",
        is_there: || find_program("docker-compose").is_some(),
    },
    Package {
        // Pacemaker's fencer calls Ringfence's agent. Only root can run it; other users' runs leave its tests out.
        name: "pacemaker",
        is_there: || Fencer::is_installed() || !Fencer::is_allowed(),
    },
    Package {
        name: "pacemaker-cli-utils",
        is_there: || Fencer::is_installed() || !Fencer::is_allowed(),
    },
    Package {
        // Gives a process another clock.
        name: "libfaketime",
        is_there: || has_shared_library("faketime/libfaketime.so.1"),
    },
    Package {
        name: "python3-venv",
        is_there: has_venv,
    },
];

/// The packages of an OpenStack. Unlike the packages of the services, these Python packages bring no daemons and no users, and ask no
/// questions.
const OPENSTACK_PACKAGES: &[Package] = &[
    Package {
        name: "mariadb-server-core",
        is_there: || find_program("mariadbd").is_some() && find_program("mariadb-install-db").is_some(),
    },
    Package {
        name: "mariadb-client-core",
        is_there: || find_program("mariadb").is_some(),
    },
    Package {
        name: "uwsgi-core",
        is_there: || find_program("uwsgi-core").is_some(),
    },
    Package {
        name: "uwsgi-plugin-python3",
        is_there: || Path::new("/usr/lib/uwsgi/plugins/python3_plugin.so").is_file(),
    },
    Package {
        name: "python3-pymysql",
        is_there: || has_library("pymysql"),
    },
    Package {
        name: "python3-keystone",
        is_there: || has_library("keystone"),
    },
    Package {
        name: "python3-placement",
        is_there: || has_library("placement"),
    },
    Package {
        name: "python3-nova",
        is_there: || has_library("nova"),
    },
    Package {
        name: "python3-cinder",
        is_there: || has_library("cinder"),
    },
    Package {
        name: "python3-neutron",
        is_there: || has_library("neutron"),
    },
    Package {
        name: "python3-ironic",
        is_there: || has_library("ironic"),
    },
    Package {
        name: "python3-masakari",
        is_there: || has_library("masakari"),
    },
    Package {
        name: "python3-masakari-monitors",
        is_there: || has_library("masakarimonitors"),
    },
];

/// The packages of virtual hosts, except their kernel.
const VM_PACKAGES: &[Package] = &[
    Package {
        // For the storage daemon.
        name: "qemu-utils",
        is_there: || find_program("qemu-storage-daemon").is_some(),
    },
    Package {
        name: "busybox-static",
        is_there: || find_program("busybox").is_some_and(|path| is_static(&path)),
    },
    Package {
        name: "cpio",
        is_there: || find_program("cpio").is_some(),
    },
    Package {
        name: "xz-utils",
        is_there: || find_program("xz").is_some(),
    },
    Package {
        // For a program that needs no library of the host on which it runs.
        name: "libc6-dev",
        is_there: || Path::new("/usr/lib/x86_64-linux-gnu/libc.a").is_file(),
    },
];

/// Whether a program needs no loader and no library: it names no loader.
fn is_static(path: &Path) -> bool {
    let loader = b"/ld-linux";
    std::fs::read(path).is_ok_and(|bytes| !bytes.windows(loader.len()).any(|word| word == loader))
}

/// Whether a library is in Debian's folder for the machine's architecture.
fn has_shared_library(path: &str) -> bool {
    ["x86_64-linux-gnu", "aarch64-linux-gnu"]
        .iter()
        .any(|kind| Path::new("/usr/lib").join(kind).join(path).is_file())
}

/// The folder of the modules of Debian's own Python.
fn has_library(name: &str) -> bool {
    Path::new("/usr/lib/python3/dist-packages").join(name).is_dir()
}

/// Debian's Python comes without `ensurepip` until the package is there.
fn has_venv() -> bool {
    std::process::Command::new("/usr/bin/python3")
        .args(["-c", "import venv, ensurepip"])
        .stderr(std::process::Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The packages that a campaign needs.
const OF_A_CAMPAIGN: &[&str] = &["postgresql", "rabbitmq-server", "libfaketime"];

/// Installs missing packages, or names them in the error where this process may not install them.
pub fn provide(workspace: &Workspace) -> Result<(), XtaskError> {
    provide_of(PACKAGES, workspace)
}

/// Installs the packages of a campaign.
pub fn provide_for_campaign(workspace: &Workspace) -> Result<(), XtaskError> {
    let needed = |package: &&Package| OF_A_CAMPAIGN.contains(&package.name);
    provide_of(PACKAGES.iter().filter(needed), workspace)
}

/// Installs the packages of an OpenStack.
pub fn provide_openstack(workspace: &Workspace) -> Result<(), XtaskError> {
    provide_of(OPENSTACK_PACKAGES, workspace)
}

/// Installs the packages of virtual hosts.
pub fn provide_vm(workspace: &Workspace) -> Result<(), XtaskError> {
    provide_of(VM_PACKAGES, workspace)
}

fn provide_of<'a>(
    packages: impl IntoIterator<Item = &'a Package> + Clone,
    workspace: &Workspace,
) -> Result<(), XtaskError> {
    let missing = missing(packages.clone());
    if missing.is_empty() {
        return Ok(());
    }
    if !apt::may_install() {
        return Err(absent(&missing));
    }
    apt::install(&missing, &workspace.cache("apt")?)?;
    match self::missing(packages) {
        still if still.is_empty() => Ok(()),
        still => Err(absent(&still)),
    }
}

fn absent(names: &[&str]) -> XtaskError {
    XtaskError::Packages {
        packages: names.join(" "),
    }
}

fn missing<'a>(packages: impl IntoIterator<Item = &'a Package>) -> Vec<&'static str> {
    let absent = packages.into_iter().filter(|package| !(package.is_there)());
    absent.map(|package| package.name).collect()
}

/// Debian's own Python; another Python in `PATH` may lack the package's modules.
pub fn python() -> &'static Path {
    Path::new("/usr/bin/python3")
}
