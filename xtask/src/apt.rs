//! Installing Debian packages without starting the daemons that they bring.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use ringfence_lab::find_program;

use crate::error::{XtaskError, at, not_started};
use crate::say::say;

const POLICY: &str = "/usr/sbin/policy-rc.d";
/// How much of apt's output an error quotes, in bytes.
const TAIL_BYTES: usize = 4000;

/// Whether this process is root on a Debian.
pub fn may_install() -> bool {
    let is_root =
        std::fs::metadata("/proc/self").is_ok_and(|this| std::os::unix::fs::MetadataExt::uid(&this) == 0);
    is_root && find_program("apt-get").is_some()
}

/// Installs packages. `folder` holds the downloads meanwhile (two `apt-get` that share a folder can lose archives) and the log afterwards.
pub fn install(packages: &[&str], folder: &Path) -> Result<(), XtaskError> {
    say(&format!("installing {}", packages.join(" ")));
    let _no_daemons = NoDaemons::enforce();
    let archives = folder.join("archives");
    std::fs::create_dir_all(archives.join("partial")).map_err(at(&archives))?;
    let install = || {
        apt(
            // Installed packages are the user's. A package that conflicts with one of them is not installed.
            &["install", "--no-install-recommends", "--no-remove"],
            packages,
            &archives,
            folder,
        )
    };
    let done = install().or_else(|_| {
        apt(&["update"], &[], &archives, folder)?;
        install()
    });
    std::fs::remove_dir_all(&archives).map_err(at(&archives))?;
    done
}

/// Downloads packages into a folder, without installing them. The log is in the folder, too.
pub fn download(packages: &[&str], folder: &Path) -> Result<(), XtaskError> {
    let download = || apt(&["download"], packages, folder, folder);
    download().or_else(|error| {
        if !may_install() {
            return Err(error);
        }
        apt(&["update"], &[], folder, folder)?;
        download()
    })
}

/// The names of the packages that would be installed with a package, with the package itself. Missing lists are fetched first, where this
/// process may do that.
pub fn would_install(package: &str, folder: &Path) -> Result<Vec<String>, XtaskError> {
    let names = simulate(package)?;
    if !names.is_empty() || !may_install() {
        return Ok(names);
    }
    apt(&["update"], &[], folder, folder)?;
    simulate(package)
}

fn simulate(package: &str) -> Result<Vec<String>, XtaskError> {
    let program = format!("apt-get --simulate install {package}");
    let done = Command::new("apt-get")
        .args(["--simulate", "install", "--no-install-recommends", package])
        .stdin(Stdio::null())
        .output();
    let done = done.map_err(not_started(&program))?;
    let text = String::from_utf8_lossy(&done.stdout);
    let names = text
        .lines()
        .filter_map(|line| line.strip_prefix("Inst ")?.split_whitespace().next());
    Ok(names.map(str::to_owned).collect())
}

/// The names of the packages that a package depends on. Missing lists are fetched first, where this process may do that.
pub fn needs_of(package: &str, folder: &Path) -> Result<Vec<String>, XtaskError> {
    let needs = needs(package)?;
    if !needs.is_empty() || !may_install() {
        return Ok(needs);
    }
    apt(&["update"], &[], folder, folder)?;
    self::needs(package)
}

fn needs(package: &str) -> Result<Vec<String>, XtaskError> {
    let program = format!("apt-cache depends {package}");
    let done = Command::new("apt-cache")
        .args(["depends", package])
        .stdin(Stdio::null())
        .output();
    let done = done.map_err(not_started(&program))?;
    let text = String::from_utf8_lossy(&done.stdout);
    let names = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Depends: "));
    Ok(names.map(str::to_owned).collect())
}

fn apt(words: &[&str], packages: &[&str], archives: &Path, folder: &Path) -> Result<(), XtaskError> {
    let path = folder.join("apt.log");
    let log = File::create(&path);
    let (out, err) = log
        .and_then(|log| Ok((log.try_clone()?, log)))
        .map_err(at(&path))?;
    let program = format!("apt-get {}", words.join(" "));
    let status = Command::new("apt-get")
        .args(["-q", "-y", "-o", "DPkg::Lock::Timeout=300", "-o"])
        .arg(format!("Dir::Cache::archives={}/", archives.display()))
        .args(words)
        .args(packages)
        // `apt-get download` writes into the working directory.
        .current_dir(folder)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .status()
        .map_err(not_started(&program))?;
    if status.success() {
        return Ok(());
    }
    let output = std::fs::read(&path).unwrap_or_default();
    let output = String::from_utf8_lossy(&output[output.len().saturating_sub(TAIL_BYTES)..]).into_owned();
    Err(XtaskError::Failed {
        program,
        status: status.to_string(),
        output,
    })
}

/// While this value lives, packages do not start their daemons. A policy that the machine already has is kept.
struct NoDaemons {
    is_ours: bool,
}

impl NoDaemons {
    fn enforce() -> Self {
        let made = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o755)
            .open(POLICY)
            .and_then(|mut file| file.write_all(b"#!/bin/sh\nexit 101\n"));
        Self {
            is_ours: made.is_ok(),
        }
    }
}

impl Drop for NoDaemons {
    fn drop(&mut self) {
        if self.is_ours && std::fs::remove_file(POLICY).is_err() {
            say(&format!("could not remove {POLICY}; remove it by hand"));
        }
    }
}
