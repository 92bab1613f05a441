//! What the tests need from Debian.

use std::path::Path;

use ringfence_lab::{Fencer, find_postgresql, find_program, rabbitmq_folder};

use crate::apt;
use crate::error::XtaskError;
use crate::workspace::Workspace;

/// A package, and how to see that what it brings is there (it may have come another way).
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
        // With jq, what readers of the documentation have.
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
        // Its fencer calls our agent. Nobody but root can run it, and others do without.
        name: "pacemaker",
        is_there: || Fencer::is_installed() || !Fencer::is_allowed(),
    },
    Package {
        name: "pacemaker-cli-utils",
        is_there: || Fencer::is_installed() || !Fencer::is_allowed(),
    },
    Package {
        // Gives a process another time.
        name: "libfaketime",
        is_there: || has_shared_library("faketime/libfaketime.so.1"),
    },
    Package {
        name: "python3-venv",
        is_there: has_venv,
    },
];

/// What an OpenStack consists of. The Python packages bring no daemons, no users and no questions, unlike those of the services.
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

/// What virtual hosts are made of, their kernel apart.
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
        // For a program that needs no library of the machine that runs it.
        name: "libc6-dev",
        is_there: || Path::new("/usr/lib/x86_64-linux-gnu/libc.a").is_file(),
    },
];

/// Whether a program needs no other file to run: it names no loader.
fn is_static(path: &Path) -> bool {
    let loader = b"/ld-linux";
    std::fs::read(path).is_ok_and(|bytes| !bytes.windows(loader.len()).any(|word| word == loader))
}

/// Whether a library is there that Debian keeps in a folder for the kind of machine.
fn has_shared_library(path: &str) -> bool {
    ["x86_64-linux-gnu", "aarch64-linux-gnu"]
        .iter()
        .any(|kind| Path::new("/usr/lib").join(kind).join(path).is_file())
}

/// Where Debian keeps what its own Python imports.
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

/// What a campaign needs of them.
const OF_A_CAMPAIGN: &[&str] = &["postgresql", "rabbitmq-server", "libfaketime"];

/// Installs what is missing, or says precisely what that is where this process may not install it.
pub fn provide(workspace: &Workspace) -> Result<(), XtaskError> {
    provide_of(PACKAGES, workspace)
}

/// The same for what a campaign needs.
pub fn provide_for_campaign(workspace: &Workspace) -> Result<(), XtaskError> {
    let needed = |package: &&Package| OF_A_CAMPAIGN.contains(&package.name);
    provide_of(PACKAGES.iter().filter(needed), workspace)
}

/// The same for what an OpenStack needs.
pub fn provide_openstack(workspace: &Workspace) -> Result<(), XtaskError> {
    provide_of(OPENSTACK_PACKAGES, workspace)
}

/// The same for what virtual hosts need.
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

/// Debian's own Python; another one in `PATH` may lack what the package brings.
pub fn python() -> &'static Path {
    Path::new("/usr/bin/python3")
}
