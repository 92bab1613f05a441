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

const fn package(name: &'static str, is_there: fn() -> bool) -> Package {
    Package { name, is_there }
}

const PACKAGES: &[Package] = &[
    package("postgresql", || find_postgresql().is_some()),
    package("rabbitmq-server", || {
        rabbitmq_folder().is_some() && find_program("epmd").is_some()
    }),
    package("fence-agents", || {
        find_program("fence_dummy").is_some() && find_program("fence_ipmilan").is_some()
    }),
    package("openipmi", || find_program("ipmi_sim").is_some()),
    package("ipmitool", || find_program("ipmitool").is_some()),
    package("openssl", || find_program("openssl").is_some()),
    // The documentation's readers have curl and jq.
    package("curl", || find_program("curl").is_some()),
    package("jq", || find_program("jq").is_some()),
    // A query asks it, and promtool checks the alert rules.
    package("prometheus", || {
        find_program("promtool").is_some() && find_program("prometheus").is_some()
    }),
    package("prometheus-alertmanager", || {
        find_program("prometheus-alertmanager").is_some()
    }),
    // A host that renews its lease on a shared storage.
    package("sanlock", || find_program("sanlock").is_some()),
    // For systemd-analyze, which checks the units.
    package("systemd", || find_program("systemd-analyze").is_some()),
    // Checks the compose file; no daemon of Docker's is needed.
    package("docker-compose", || find_program("docker-compose").is_some()),
    // Pacemaker's fencer calls Ringfence's agent. Only root can run it; other users' runs leave its tests out.
    package("pacemaker", || Fencer::is_installed() || !Fencer::is_allowed()),
    package("pacemaker-cli-utils", || {
        Fencer::is_installed() || !Fencer::is_allowed()
    }),
    // Gives a process another clock.
    package("libfaketime", || has_shared_library("faketime/libfaketime.so.1")),
    package("python3-venv", has_venv),
];

/// The packages of an OpenStack. Unlike the packages of the services, these Python packages bring no daemons and no users, and ask no
/// questions.
const OPENSTACK_PACKAGES: &[Package] = &[
    package("mariadb-server-core", || {
        find_program("mariadbd").is_some() && find_program("mariadb-install-db").is_some()
    }),
    package("mariadb-client-core", || find_program("mariadb").is_some()),
    package("uwsgi-core", || find_program("uwsgi-core").is_some()),
    package("uwsgi-plugin-python3", || {
        Path::new("/usr/lib/uwsgi/plugins/python3_plugin.so").is_file()
    }),
    package("python3-pymysql", || has_library("pymysql")),
    package("python3-keystone", || has_library("keystone")),
    package("python3-placement", || has_library("placement")),
    package("python3-nova", || has_library("nova")),
    package("python3-cinder", || has_library("cinder")),
    package("python3-neutron", || has_library("neutron")),
    package("python3-ironic", || has_library("ironic")),
    package("python3-masakari", || has_library("masakari")),
    package("python3-masakari-monitors", || has_library("masakarimonitors")),
];

/// The packages of a browser that shows the operator's page.
const PAGE_PACKAGES: &[Package] = &[
    package("chromium", || find_program("chromium").is_some()),
    package("chromium-driver", || find_program("chromedriver").is_some()),
    // The letters and signs of every page that a test looks at.
    package("fonts-liberation", || {
        has_font("liberation/LiberationSans-Regular.ttf")
    }),
    package("fonts-dejavu-core", || has_font("dejavu/DejaVuSans.ttf")),
];

/// The packages of virtual hosts, except their kernel.
const VM_PACKAGES: &[Package] = &[
    // For the storage daemon.
    package("qemu-utils", || find_program("qemu-storage-daemon").is_some()),
    package("busybox-static", || {
        find_program("busybox").is_some_and(|path| is_static(&path))
    }),
    package("cpio", || find_program("cpio").is_some()),
    package("xz-utils", || find_program("xz").is_some()),
    // For a program that needs no library of the host on which it runs.
    package("libc6-dev", || {
        Path::new("/usr/lib/x86_64-linux-gnu/libc.a").is_file()
    }),
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

/// Whether a font is in Debian's folder of fonts.
fn has_font(path: &str) -> bool {
    Path::new("/usr/share/fonts/truetype").join(path).is_file()
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

/// Installs the packages of a browser.
pub fn provide_page(workspace: &Workspace) -> Result<(), XtaskError> {
    provide_of(PAGE_PACKAGES, workspace)
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
