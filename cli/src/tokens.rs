//! The file of static tokens: written here, read by the API.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::TryRng;
use rand::rngs::SysRng;
use ringfence_api::{Role, TOKEN_PREFIX, TokenEntry, TokenFile, hash_token};
use ringfence_core::Timestamp;

use crate::error::CliError;

const HEADER: &str = "# Tokens of Ringfence's API: hashes only. Written by `ringfence token`.\n\n";

/// 256 random bits: a plain hash does not reveal them.
fn new_token() -> Result<String, CliError> {
    let mut bytes = [0; 32];
    SysRng
        .try_fill_bytes(&mut bytes)
        .map_err(|error| CliError::service("token", "the system has no random numbers", error))?;
    Ok(format!("{TOKEN_PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes)))
}

/// Makes a token and keeps its hash. A token of this name must not exist.
pub fn create(
    path: &Path,
    name: &str,
    role: Role,
    expires_at: Option<Timestamp>,
) -> Result<String, CliError> {
    let token = new_token()?;
    let entry = entry(name, role, expires_at, &token);
    change(path, |file| {
        if file.tokens.iter().any(|other| other.name == name) {
            return Err(CliError::Usage(format!(
                "there is a token of {name:?} already; revoke it first"
            )));
        }
        file.tokens.push(entry);
        Ok(())
    })?;
    Ok(token)
}

/// Makes a token that replaces one of this name, whose value may never have reached its owner.
pub fn add(path: &Path, name: &str, role: Role, expires_at: Option<Timestamp>) -> Result<String, CliError> {
    let token = new_token()?;
    let entry = entry(name, role, expires_at, &token);
    change(path, |file| {
        file.tokens.retain(|other| other.name != name);
        file.tokens.push(entry);
        Ok(())
    })?;
    Ok(token)
}

fn entry(name: &str, role: Role, expires_at: Option<Timestamp>, token: &str) -> TokenEntry {
    TokenEntry {
        name: name.to_owned(),
        role,
        sha256: hash_token(token),
        expires_at,
    }
}

/// The tokens of the file; none if there is no file yet.
pub fn read(path: &Path) -> Result<TokenFile, CliError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(TokenFile::default()),
        Err(error) => return Err(CliError::file("read the tokens", path, error)),
    };
    toml::from_str(&text)
        .map_err(|error| CliError::content(path, format!("is no token file: {}", error.message())))
}

/// Changes the file in one step: a reader sees all of the old or all of the new file, and of two changes at once neither is lost.
pub fn change(
    path: &Path,
    change: impl FnOnce(&mut TokenFile) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let _lock = lock(path)?;
    let mut file = read(path)?;
    change(&mut file)?;
    let text = toml::to_string(&file)
        .map_err(|error| CliError::service("token", "the token file cannot be put into words", error))?;
    write_private(path, &format!("{HEADER}{text}"))
}

/// Writes a file that only its owner may read (mode 0600), in one step.
pub fn write_private(path: &Path, text: &str) -> Result<(), CliError> {
    write(path, text).map_err(|error| CliError::file("write", path, error))
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

/// A lock on a separate file, since the token file is replaced. The lock is held until it is dropped.
fn lock(path: &Path) -> Result<File, CliError> {
    let path = beside(path, ".lock");
    let fault = |error| CliError::file("lock", path.as_path(), error);
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&path)
        .map_err(fault)?;
    file.lock().map_err(fault)?;
    Ok(file)
}

/// The file keeps its owner: an administrator may change a file that the service reads as another user.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let temporary = beside(path, ".new");
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(&temporary)?;
    let (made, kept) = (file.metadata()?, fs::metadata(path).ok());
    if let Some(kept) = kept.filter(|kept| (kept.uid(), kept.gid()) != (made.uid(), made.gid())) {
        fchown(&file, Some(kept.uid()), Some(kept.gid()))?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    let directory = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_token_is_kept_as_its_hash_and_only_for_its_owner() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tokens.toml");
        let token = create(&path, "alice", Role::Operator, None).unwrap();
        assert_eq!((token.len(), &token[..3]), (46, "rf_"));
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            !text.contains(&token[3..]) && text.contains(&hash_token(&token)),
            "{text}"
        );
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn changes_at_once_all_hold() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tokens.toml");
        std::thread::scope(|scope| {
            for number in 0..8 {
                let path = &path;
                scope.spawn(move || create(path, &format!("t{number}"), Role::Reader, None).unwrap());
            }
        });
        assert_eq!(read(&path).unwrap().tokens.len(), 8);
    }

    #[test]
    fn a_name_has_one_token() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tokens.toml");
        create(&path, "alice", Role::Operator, None).unwrap();
        assert!(create(&path, "alice", Role::Admin, None).is_err());
        let token = add(&path, "alice", Role::Admin, None).unwrap();
        let file = read(&path).unwrap();
        assert_eq!(file.tokens.len(), 1);
        assert_eq!(file.tokens[0].sha256, hash_token(&token));
    }

    #[test]
    fn a_damaged_file_is_refused_and_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tokens.toml");
        fs::write(&path, "[[token]]\nname = \"a\"\nrole = \"king\"\n").unwrap();
        let error = change(&path, |_| Ok(())).unwrap_err();
        assert!(error.to_string().contains("is no token file"), "{error}");
        assert!(fs::read_to_string(&path).unwrap().contains("king"));
    }
}
