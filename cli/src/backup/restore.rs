//! Restoring a backup: it is checked as a whole beside the data directory, and replaces the directory in one step.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use ringfence_core::Timestamp;
use ringfence_db::{Database, newest_schema};

use super::manifest::{FILES, MANIFEST};
use super::manifest::{FORMAT, MAX_BYTES, Manifest, copy};
use super::take::{Scratch, private, sync_parent};
use crate::error::CliError;
use crate::services::home;

/// The longest reason that is shown, in characters.
const MAX_WHY_CHARS: usize = 200;

/// What a restore has done.
pub struct Restored {
    /// The manifest of the backup.
    pub manifest: Manifest,
    /// The new path of the old data directory, if there was one.
    pub before: Option<PathBuf>,
}

/// Replaces the data directory, which no service may hold, by a backup.
pub async fn restore(file: &Path, data_dir: &Path, now: Timestamp) -> Result<Restored, CliError> {
    let content = File::open(file).map_err(|e| CliError::file("read", file, e))?;
    let data_dir = &absolute(data_dir)?;
    let was_there = data_dir.exists();
    let held = was_there.then(|| home::hold(data_dir)).transpose()?;
    if let Some(parent) = data_dir.parent() {
        std::fs::create_dir_all(parent).map_err(|e| CliError::file("make", parent, e))?;
    }
    let scratch = Scratch::beside(data_dir, now)?;
    let manifest = unpack(file, content, &scratch.0)?;
    check_database(&scratch.0, &manifest, file).await?;
    let before = put(&scratch.0, data_dir, was_there, now)?;
    drop(held);
    Ok(Restored { manifest, before })
}

fn absolute(path: &Path) -> Result<PathBuf, CliError> {
    std::path::absolute(path).map_err(|e| CliError::file("find", path, e))
}

fn damaged(file: &Path, why: impl Into<String>) -> CliError {
    CliError::content(file, format!("cannot be restored: {}", why.into()))
}

fn unpack(file: &Path, content: File, into: &Path) -> Result<Manifest, CliError> {
    // The error of a damaged archive quotes its bytes.
    let unreadable = |e: std::io::Error| {
        let why: String = e.to_string().chars().take(MAX_WHY_CHARS).collect();
        damaged(file, format!("it is damaged: {}", why.escape_debug()))
    };
    let mut tar = tar::Archive::new(content);
    let mut entries = tar.entries().map_err(unreadable)?;
    let first = entries
        .next()
        .ok_or_else(|| damaged(file, "is empty"))?
        .map_err(|_| no_backup(file))?;
    let manifest = read_manifest(file, first)?;
    let mut missing: BTreeSet<&str> = manifest.files.iter().map(|part| part.name.as_str()).collect();
    for entry in entries {
        let mut entry = entry.map_err(unreadable)?;
        let name = name_of(&entry).map_err(unreadable)?;
        let part = manifest.files.iter().find(|part| part.name == name);
        let Some(part) = part.filter(|_| missing.remove(name.as_str())) else {
            return Err(damaged(
                file,
                format!("{name:?} is not in its list, or is there twice"),
            ));
        };
        let path = into.join(&part.name);
        let fault = |e| CliError::file("write", &path, e);
        let mut to = private(&path).map_err(fault)?;
        let copied =
            copy(&mut (&mut entry).take(part.bytes.saturating_add(1)), &mut to).map_err(unreadable)?;
        to.sync_all().map_err(fault)?;
        if copied != (part.bytes, part.sha256.clone()) {
            return Err(damaged(
                file,
                format!("{name} is not what was backed up: its checksum differs"),
            ));
        }
    }
    match missing.first() {
        None => Ok(manifest),
        Some(name) => Err(damaged(
            file,
            format!("{name} is missing: the file is incomplete"),
        )),
    }
}

fn name_of(entry: &tar::Entry<'_, File>) -> std::io::Result<String> {
    let is_file = entry.header().entry_type().is_file();
    let path = entry.path()?;
    let name = path.to_str().filter(|_| is_file);
    name.map(ToOwned::to_owned)
        .ok_or_else(|| std::io::Error::other("it holds something that is no file"))
}

fn no_backup(file: &Path) -> CliError {
    damaged(
        file,
        format!("it is no backup of Ringfence: it does not begin with {MANIFEST}"),
    )
}

fn read_manifest(file: &Path, entry: tar::Entry<'_, File>) -> Result<Manifest, CliError> {
    if name_of(&entry).ok().as_deref() != Some(MANIFEST) {
        return Err(no_backup(file));
    }
    let mut text = Vec::new();
    entry
        .take(MAX_BYTES)
        .read_to_end(&mut text)
        .map_err(|e| damaged(file, e.to_string()))?;
    let manifest: Manifest = serde_json::from_slice(&text)
        .map_err(|e| damaged(file, format!("{MANIFEST} cannot be read: {e}")))?;
    let (schema, newest) = (manifest.schema, newest_schema());
    if manifest.format > FORMAT || schema > newest {
        return Err(damaged(
            file,
            format!(
                "it was made by ringfence {} and has schema {schema}, which is newer than this build's {newest}; restore it \
                 with that build",
                manifest.ringfence
            ),
        ));
    }
    let unknown = manifest
        .files
        .iter()
        .find(|part| !FILES.contains(&part.name.as_str()));
    if let Some(part) = unknown {
        return Err(damaged(
            file,
            format!("{:?} does not belong in a backup", part.name),
        ));
    }
    if !manifest.files.iter().any(|part| part.name == home::DATABASE) {
        return Err(damaged(file, format!("it holds no {}", home::DATABASE)));
    }
    Ok(manifest)
}

/// The checksums show that the file is the one that was backed up; this check shows that the database can be used.
async fn check_database(dir: &Path, manifest: &Manifest, file: &Path) -> Result<(), CliError> {
    let fault = |e| CliError::service("restore", "cannot use the database of the backup", e);
    let url = format!("sqlite://{}", dir.join(home::DATABASE).display());
    let db = Database::open(&url, 1).await.map_err(fault)?;
    let checked = ringfence_db::check_sqlite(&db).await;
    let version = ringfence_db::schema_version(&db).await;
    db.close().await;
    checked.map_err(fault)?;
    if version.map_err(fault)? != Some(manifest.schema) {
        return Err(damaged(file, "its database has another schema than it says"));
    }
    Ok(())
}

/// Replaces the old directory by the new one; returns the old one's new path.
fn put(new: &Path, data_dir: &Path, was_there: bool, now: Timestamp) -> Result<Option<PathBuf>, CliError> {
    let fault = |e: std::io::Error| CliError::file("put the backup into", data_dir, e);
    sync_dir(new).map_err(fault)?;
    if !was_there {
        std::fs::rename(new, data_dir).map_err(fault)?;
        sync_parent(data_dir).map_err(fault)?;
        return Ok(None);
    }
    let mut name = data_dir.file_name().unwrap_or_default().to_owned();
    name.push(format!(".before-restore-{}", now.format("%Y%m%dT%H%M%SZ")));
    let before = data_dir.with_file_name(name);
    if before.exists() {
        return Err(CliError::Usage(format!(
            "{} is there already; try again",
            before.display()
        )));
    }
    replace(new, data_dir, &before).map_err(|error| refused(data_dir, error))?;
    sync_parent(data_dir).map_err(fault)?;
    Ok(Some(before))
}

/// Moves the old directory to `before`. `new` gets its name first, so that the exchange is the last step and no step has to be undone that
/// could fail as well.
fn replace(new: &Path, data_dir: &Path, before: &Path) -> std::io::Result<()> {
    std::fs::rename(new, before)?;
    let Err(error) = renameat2(AT_FDCWD, before, AT_FDCWD, data_dir, RenameFlags::RENAME_EXCHANGE) else {
        return Ok(());
    };
    std::fs::rename(before, new)?;
    match error {
        Errno::EINVAL | Errno::ENOSYS => swap_in_two_steps(new, data_dir, before),
        other => Err(other.into()),
    }
}

/// For file systems that cannot exchange two directories: if the second step fails, the first one is undone.
fn swap_in_two_steps(new: &Path, data_dir: &Path, before: &Path) -> std::io::Result<()> {
    std::fs::rename(data_dir, before)?;
    std::fs::rename(new, data_dir).or_else(|error| {
        std::fs::rename(before, data_dir)?;
        Err(error)
    })
}

fn refused(data_dir: &Path, error: std::io::Error) -> CliError {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EBUSY | Errno::EXDEV) => CliError::Usage(format!(
            "{} is a mount point, which cannot be replaced; keep the data in a directory below it, or restore into another \
             with --data-dir",
            data_dir.display()
        )),
        Some(_) | None => CliError::file("put the backup into", data_dir, error),
    }
}

fn sync_dir(dir: &Path) -> std::io::Result<()> {
    File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(at: &Path, says: &str) {
        std::fs::create_dir(at).unwrap();
        std::fs::write(at.join("which"), says).unwrap();
    }

    fn says(at: &Path) -> String {
        std::fs::read_to_string(at.join("which")).unwrap()
    }

    #[test]
    fn what_was_there_is_kept_beside_what_is_there_now() {
        let parent = tempfile::tempdir().unwrap();
        let at = |name: &str| parent.path().join(name);
        folder(&at("data"), "old");
        folder(&at("new"), "new");
        let before = put(&at("new"), &at("data"), true, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(
            (says(&at("data")), says(&before.unwrap())),
            ("new".to_owned(), "old".to_owned())
        );
        assert!(!at("new").exists());
    }

    /// What was there cannot be given the name that it would get: with that one it is too long.
    #[test]
    fn where_a_step_fails_the_old_directory_is_there_whole() {
        let parent = tempfile::tempdir().unwrap();
        let at = |name: &str| parent.path().join(name);
        let data = at(&"d".repeat(240));
        folder(&data, "old");
        folder(&at("new"), "new");
        let error = put(&at("new"), &data, true, Timestamp::UNIX_EPOCH).unwrap_err();
        assert!(error.to_string().contains("put the backup into"), "{error}");
        assert_eq!(
            (says(&data), says(&at("new"))),
            ("old".to_owned(), "new".to_owned())
        );
    }

    #[test]
    fn where_the_second_of_two_steps_fails_the_first_one_is_taken_back() {
        let parent = tempfile::tempdir().unwrap();
        let at = |name: &str| parent.path().join(name);
        folder(&at("data"), "old");
        swap_in_two_steps(&at("nothing"), &at("data"), &at("before")).unwrap_err();
        assert_eq!(says(&at("data")), "old");
    }
}
