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
/// A package that every Debian has from its own archive.
const OWN: &str = "base-files";
/// The keys of Debian's archives.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
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

/// Downloads the source of a package, given as `name=version`, into a folder. The package lists that this needs are in the folder, too: those
/// of the machine seldom have sources.
pub fn download_source(package: &str, folder: &Path) -> Result<(), XtaskError> {
    let (sources, lists) = (folder.join("sources.list"), folder.join("lists"));
    std::fs::create_dir_all(lists.join("partial")).map_err(at(&lists))?;
    std::fs::write(&sources, own_archives(folder)?).map_err(at(&sources))?;
    let options = [
        format!("-oDir::Etc::sourcelist={}", sources.display()),
        "-oDir::Etc::sourceparts=/dev/null".to_owned(),
        format!("-oDir::State::lists={}", lists.display()),
        format!("-oDir::Cache={}", folder.display()),
        // The folder may be closed to the user as which apt downloads.
        "-oAPT::Sandbox::User=root".to_owned(),
    ];
    let words = |words: &[&'static str]| -> Vec<String> {
        let own = words.iter().map(|&word| word.to_owned());
        options.iter().cloned().chain(own).collect()
    };
    let run = |words: Vec<String>, packages: &[&str]| {
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        apt(&words, packages, folder, folder)
    };
    run(words(&["update"]), &[])?;
    run(words(&["source", "--download-only"]), &[package])
}

/// The lines for the sources of the archives that have Debian's own packages. Missing lists are fetched first, where this process may do
/// that.
fn own_archives(folder: &Path) -> Result<String, XtaskError> {
    let lines = archives_of(OWN)?;
    if !lines.is_empty() || !may_install() {
        return Ok(lines);
    }
    apt(&["update"], &[], folder, folder)?;
    archives_of(OWN)
}

fn archives_of(package: &str) -> Result<String, XtaskError> {
    let program = format!("apt-cache policy {package}");
    let done = Command::new("apt-cache")
        .args(["policy", package])
        .stdin(Stdio::null())
        .output();
    let done = done.map_err(not_started(&program))?;
    Ok(source_lines(&String::from_utf8_lossy(&done.stdout)))
}

/// From lines such as `500 ADDRESS bookworm/main amd64 Packages`.
fn source_lines(policy: &str) -> String {
    let mut lines = String::new();
    for line in policy.lines().filter(|line| line.ends_with(" Packages")) {
        let mut words = line.split_whitespace().skip(1);
        if let (Some(address), Some((suite, part))) = (
            words.next(),
            words.next().and_then(|suite| suite.rsplit_once('/')),
        ) {
            lines.push_str(&format!("deb-src [signed-by={KEYS}] {address} {suite} {part}\n"));
        }
    }
    lines
}

/// The names of the packages that would be installed with a package, with the package itself. Missing lists are fetched first, where this
/// process may do that.
pub fn would_install(packages: &[&str], folder: &Path) -> Result<Vec<String>, XtaskError> {
    let names = simulate(packages)?;
    if !names.is_empty() || !may_install() {
        return Ok(names);
    }
    apt(&["update"], &[], folder, folder)?;
    simulate(packages)
}

fn simulate(packages: &[&str]) -> Result<Vec<String>, XtaskError> {
    let program = format!("apt-get --simulate install {}", packages.join(" "));
    let done = Command::new("apt-get")
        .args(["--simulate", "install", "--no-install-recommends"])
        .args(packages)
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
    let shown: Vec<_> = words
        .iter()
        .filter(|word| !word.starts_with("-o"))
        .copied()
        .collect();
    let program = format!("apt-get {}", shown.join(" "));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_come_from_the_archives_of_debians_own_packages() {
        let policy = "base-files:\n  Installed: 12\n  Version table:\n     12 500\n        500 http://mirror.test/debian bookworm/main amd64 Packages\n *** 11 100\n        100 /var/lib/dpkg/status\n";
        assert_eq!(
            source_lines(policy),
            "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://mirror.test/debian bookworm main\n"
        );
    }
}
