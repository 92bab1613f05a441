//! The Debian package, made from the tested program: its files are checked, and it is installed, used and purged.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use ringfence_lab::find_program;
use ringfence_tests::{Machine, tell};

use super::{source, text};

/// The files that the package must have, and their modes.
const INSIDE: [(&str, &str); 11] = [
    ("./usr/bin/ringfence", "-rwxr-xr-x"),
    ("./usr/sbin/fence_ringfence", "-rwxr-xr-x"),
    ("./usr/lib/systemd/system/ringfence-api.service", "-rw-r--r--"),
    ("./usr/lib/systemd/system/ringfence-worker@.service", "-rw-r--r--"),
    ("./usr/lib/sysusers.d/ringfence.conf", "-rw-r--r--"),
    ("./usr/lib/tmpfiles.d/ringfence.conf", "-rw-r--r--"),
    ("./usr/share/bash-completion/completions/ringfence", "-rw-r--r--"),
    (
        "./usr/share/ringfence/prometheus/ringfence.rules.yml",
        "-rw-r--r--",
    ),
    ("./usr/share/ringfence/grafana/ringfence.json", "-rw-r--r--"),
    ("./etc/ringfence/standalone.toml.example", "-rw-r--r--"),
    ("./etc/ringfence/ringfence.toml.example", "-rw-r--r--"),
];

/// Makes the package as the documentation says, from a copy of the program without debug symbols.
fn make(machine: &Machine) -> PathBuf {
    let program = machine.file("ringfence");
    text(
        Command::new("strip")
            .arg("-o")
            .arg(&program)
            .arg(Machine::program()),
    );
    let Some(cargo_deb) = std::env::var_os("RINGFENCE_TEST_CARGO_DEB") else {
        panic!("RINGFENCE_TEST_CARGO_DEB is not set; run the tests with `cargo xtask test`");
    };
    let mut folders = vec![Path::new(&cargo_deb).parent().unwrap().to_owned()];
    let path = std::env::var_os("PATH").unwrap_or_default();
    folders.extend(std::env::split_paths(&path));
    text(
        Command::new(source("deploy/debian/build"))
            .args(["dev", "--fast"])
            .env("RINGFENCE_BINARY", &program)
            .env("PATH", std::env::join_paths(folders).unwrap()),
    );
    let package = machine.file("ringfence.deb");
    std::fs::copy(source("target/debian/ringfence.deb"), &package).unwrap();
    package
}

fn looks_right(package: &Path) {
    let listed = text(Command::new("dpkg-deb").arg("--contents").arg(package));
    let mut files = BTreeMap::new();
    for line in listed.lines() {
        let mut words = line.split_whitespace();
        let (Some(rights), Some(owner), Some(path)) = (words.next(), words.next(), words.nth(3)) else {
            panic!("{line}")
        };
        assert!(["root/root", "0/0"].contains(&owner), "{line}");
        assert!(
            !rights[7..].contains('w'),
            "every user may write to a file of the package: {line}"
        );
        let is_ours = path.starts_with("./usr/") || path.starts_with("./etc/ringfence/");
        assert!(is_ours || ["./", "./etc/"].contains(&path), "{line}");
        files.insert(path, rights);
    }
    for (path, rights) in INSIDE {
        assert_eq!(files.get(path), Some(&rights), "{path} in\n{listed}");
    }
    for page in std::fs::read_dir(source("docs")).unwrap() {
        let name = page.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".md") {
            let path = format!("./usr/share/doc/ringfence/{name}");
            let is_there = |path: &str| files.contains_key(path);
            assert!(
                is_there(&path) || is_there(&format!("{path}.gz")),
                "{path} in\n{listed}"
            );
        }
    }
    let manual = files
        .keys()
        .filter(|path| path.starts_with("./usr/share/man/man1/ringfence"));
    assert!(manual.count() > 10, "{listed}");
    let field = |name: &str| text(Command::new("dpkg-deb").arg("--field").arg(package).arg(name));
    assert!(
        field("Version").starts_with(env!("CARGO_PKG_VERSION")),
        "{}",
        field("Version")
    );
    let needs = field("Depends");
    assert!(
        needs.contains("systemd (>= 247)") && needs.contains("libc6"),
        "{needs}"
    );
}

/// Whether the package can be installed and purged here without a loss for this machine.
fn may_be_installed() -> Result<(), &'static str> {
    let is_root = text(Command::new("id").arg("-u")).trim() == "0";
    let has = |path: &str| Path::new(path).exists();
    let is_known = || {
        let status = Command::new("dpkg-query").args(["--show", "ringfence"]).output();
        status.unwrap().status.success()
    };
    match () {
        () if !is_root => Err("only root installs packages"),
        () if find_program("systemd-sysusers").is_none() => {
            Err("systemd-sysusers is not installed (package systemd)")
        }
        () if is_known() || has("/etc/ringfence") || has("/var/lib/ringfence") => {
            Err("this machine has a Ringfence already")
        }
        () => Ok(()),
    }
}

/// The installed package. It is purged also when the test fails.
struct Installed;

impl Installed {
    fn from(package: &Path) -> Self {
        let installed = Self;
        text(Command::new("dpkg").arg("--install").arg(package));
        installed
    }

    fn purge(self) {
        text(Command::new("dpkg").args(["--purge", "ringfence"]));
        std::mem::forget(self);
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        // After most failures the package is half installed.
        let _ = Command::new("dpkg")
            .args(["--purge", "--force-all", "ringfence"])
            .output();
    }
}

fn user_id(name: &str) -> Option<u32> {
    let said = Command::new("id").args(["-u", name]).output().unwrap();
    String::from_utf8(said.stdout).unwrap().trim().parse().ok()
}

/// The installed package works as its documentation says.
fn can_be_used() {
    let said = text(Command::new("/usr/bin/ringfence").arg("--version"));
    assert!(said.contains(env!("CARGO_PKG_VERSION")), "{said}");
    let (control, worker) = (
        user_id("ringfence").unwrap(),
        user_id("ringfence-worker").unwrap(),
    );
    assert_ne!(control, worker);
    let configuration = Path::new("/etc/ringfence/standalone.toml");
    std::fs::copy("/etc/ringfence/standalone.toml.example", configuration).unwrap();
    text(Command::new("systemd-tmpfiles").args(["--create", "ringfence.conf"]));
    let found = std::fs::metadata(configuration).unwrap();
    assert_eq!((found.uid(), found.mode() & 0o7777), (control, 0o600));
    let secrets = std::fs::metadata("/etc/ringfence/secrets").unwrap();
    assert_eq!((secrets.uid(), secrets.mode() & 0o7777), (worker, 0o700));
    let checked = text(
        Command::new("setpriv")
            .args(["--reuid", "ringfence", "--regid", "ringfence", "--clear-groups"])
            .args(["/usr/bin/ringfence", "config", "check", "--config"])
            .arg(configuration),
    );
    assert!(checked.contains("127.0.0.1:8790"), "{checked}");
    for unit in ["api", "engine", "worker@one", "scheduler-hook", "standalone"] {
        let unit = format!("ringfence-{unit}.service");
        let said = Command::new("systemd-analyze")
            .args(["verify", "--man=no", &unit])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(!said.contains("ringfence"), "{unit}: {said}");
    }
    // Installation starts no service, and enables none for the next start of the machine.
    let wanted = Path::new("/etc/systemd/system/multi-user.target.wants");
    let wanted = std::fs::read_dir(wanted).into_iter().flatten();
    let ours = |name: &std::ffi::OsString| name.to_string_lossy().contains("ringfence");
    assert!(
        !wanted
            .map(|unit| unit.unwrap().file_name())
            .any(|name| ours(&name))
    );
    std::fs::remove_file(configuration).unwrap();
}

#[test]
fn the_package_is_complete_and_leaves_no_files_behind() {
    if find_program("dpkg-deb").is_none() {
        return tell("SKIPPED: this machine has no Debian; the package is not made");
    }
    let machine = Machine::new();
    let package = make(&machine);
    looks_right(&package);
    if let Err(why) = may_be_installed() {
        return tell(&format!("SKIPPED: {why}; the package is not installed"));
    }
    let installed = Installed::from(&package);
    let files = text(Command::new("dpkg").args(["--listfiles", "ringfence"]));
    can_be_used();
    installed.purge();
    for path in files.lines().filter(|path| path.contains("ringfence")) {
        assert!(!Path::new(path).exists(), "{path} is left");
    }
    for user in ["ringfence", "ringfence-worker"] {
        assert_eq!(user_id(user), None, "{user} is left");
    }
}

#[test]
fn the_package_for_nova_brings_its_modules_to_debians_own_python() {
    if find_program("dpkg-deb").is_none() {
        return tell("SKIPPED: this machine has no Debian; the package for Nova is not made");
    }
    text(&mut Command::new(source("deploy/debian/build-nova")));
    let package = source("target/debian/ringfence-nova.deb");
    let machine = Machine::new();
    let root = machine.file("root");
    text(Command::new("dpkg-deb").arg("--extract").arg(&package).arg(&root));
    let modules = root.join("usr/lib/python3/dist-packages");
    for module in std::fs::read_dir(source("scheduler-hook/nova/ringfence_nova")).unwrap() {
        let name = module.unwrap().file_name();
        let is_source = Path::new(&name).extension().is_some_and(|end| end == "py");
        assert!(
            !is_source || modules.join("ringfence_nova").join(&name).exists(),
            "{name:?}"
        );
    }
    let said = text(
        Command::new("/usr/bin/python3")
            .args([
                "-c",
                "import ringfence_nova.hook; print(ringfence_nova.hook.__file__)",
            ])
            .env("PYTHONPATH", &modules),
    );
    assert!(said.trim().starts_with(root.to_str().unwrap()), "{said}");
    let needs = text(
        Command::new("dpkg-deb")
            .arg("--field")
            .arg(&package)
            .arg("Depends"),
    );
    assert!(needs.contains("python3-oslo.config"), "{needs}");
}
