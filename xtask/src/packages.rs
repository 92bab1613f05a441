//! What the tests need from Debian.

use std::path::Path;

use ringfence_lab::{find_postgresql, find_program, rabbitmq_folder};

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
        name: "python3-venv",
        is_there: has_venv,
    },
];

/// Debian's Python comes without `ensurepip` until the package is there.
fn has_venv() -> bool {
    std::process::Command::new("/usr/bin/python3")
        .args(["-c", "import venv, ensurepip"])
        .stderr(std::process::Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Installs what is missing, or says precisely what that is where this process may not install it.
pub fn provide(workspace: &Workspace) -> Result<(), XtaskError> {
    let missing = missing();
    if missing.is_empty() {
        return Ok(());
    }
    if !apt::may_install() {
        let packages = missing.join(" ");
        return Err(XtaskError::Packages { packages });
    }
    apt::install(&missing, &workspace.cache("apt")?)?;
    match self::missing() {
        still if still.is_empty() => Ok(()),
        still => Err(XtaskError::Packages {
            packages: still.join(" "),
        }),
    }
}

fn missing() -> Vec<&'static str> {
    let absent = PACKAGES.iter().filter(|package| !(package.is_there)());
    absent.map(|package| package.name).collect()
}

/// Debian's own Python; another one in `PATH` may lack what the package brings.
pub fn python() -> &'static Path {
    Path::new("/usr/bin/python3")
}
