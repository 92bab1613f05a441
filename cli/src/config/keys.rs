//! Files of keys: the keys that sign messages on the bus, and the keys from which the secrets of subscriptions are derived.
//!
//! One key per line, `id:value`. The first key signs or derives, all keys are accepted. The value is at least 32 bytes in hexadecimal (if
//! it has hex digits only) or base64. Empty lines and lines that begin with `#` are skipped.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use ringfence_bus::{Key, Keys, MIN_KEY_BYTES};
use ringfence_engine::{WebhookKey, WebhookKeys};

use crate::error::CliError;

/// The most keys; a change of keys needs fewer.
const MAX_KEYS: usize = 16;

/// The longest file of keys.
const MAX_BYTES: u64 = 64 * 1024;

/// Reads the keys that sign messages on the bus.
pub fn read_keys(path: &Path) -> Result<Keys, CliError> {
    let keys = read(path)?.into_iter().map(|(id, bytes)| Key::new(id, &bytes));
    let keys = keys.collect::<Result<_, _>>().and_then(Keys::new);
    keys.map_err(|error| CliError::content(path, error.to_string()))
}

/// Reads the keys from which the secrets of subscriptions are derived.
pub fn read_webhook_keys(path: &Path) -> Result<WebhookKeys, CliError> {
    let keys = read(path)?
        .into_iter()
        .map(|(id, bytes)| WebhookKey::new(id, bytes));
    let keys = keys.collect::<Result<_, _>>().and_then(WebhookKeys::new);
    keys.map_err(|error| CliError::content(path, error.to_string()))
}

/// Reads a file of keys. A file with permissions for group or others is refused.
fn read(path: &Path) -> Result<Vec<(String, Vec<u8>)>, CliError> {
    let fault = |source| CliError::file("read the keys", path, source);
    let content = |why: String| CliError::content(path, why);
    let metadata = std::fs::metadata(path).map_err(fault)?;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(content(format!(
            "has mode {mode:04o}; only its owner may read it (chmod 600)"
        )));
    }
    if metadata.len() > MAX_BYTES {
        return Err(content(format!(
            "is longer than {MAX_BYTES} bytes; this is no file of keys"
        )));
    }
    let text = std::fs::read_to_string(path).map_err(fault)?;
    parse(&text).map_err(content)
}

/// The errors show no part of a value.
fn parse(text: &str) -> Result<Vec<(String, Vec<u8>)>, String> {
    let mut keys = Vec::new();
    let mut ids = Vec::new();
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let (id, key) = key(line).map_err(|why| format!("line {number}: {why}"))?;
        if ids.contains(&id) {
            return Err(format!("line {number}: there is a key {id:?} already"));
        }
        ids.push(id.clone());
        keys.push((id, key));
    }
    if keys.len() > MAX_KEYS {
        return Err(format!("has {} keys; at most {MAX_KEYS} are allowed", keys.len()));
    }
    if keys.is_empty() {
        return Err("holds no key; write at least one line id:value".to_owned());
    }
    Ok(keys)
}

fn key(line: &str) -> Result<(String, Vec<u8>), String> {
    let (id, value) = line.split_once(':').ok_or("write id:value")?;
    let id = id.trim();
    ringfence_core::validate_name("the id", id).map_err(|problem| problem.to_string())?;
    let bytes = decode(value.trim()).ok_or("the value is neither hexadecimal nor base64")?;
    if bytes.len() < MIN_KEY_BYTES {
        return Err(format!(
            "key {id:?} has {} bytes; at least {MIN_KEY_BYTES} are needed",
            bytes.len()
        ));
    }
    Ok((id.to_owned(), bytes))
}

fn decode(value: &str) -> Option<Vec<u8>> {
    let bare = value.trim_end_matches('=');
    hex::decode(value)
        .or_else(|_| STANDARD_NO_PAD.decode(bare))
        .or_else(|_| URL_SAFE_NO_PAD.decode(bare))
        .ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const HEX: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

    #[test]
    fn hexadecimal_and_base64_are_read() {
        let base64 = STANDARD_NO_PAD.encode([7; 32]);
        let text = format!("# keys\nnew:{HEX}\n\nold:{base64}=\n");
        assert!(parse(&text).is_ok());
    }

    #[test]
    fn a_bad_line_is_named_and_not_shown() {
        let bad = [
            format!("a:{HEX}\na:{HEX}"),
            "a:hush!hush".to_owned(),
            "a:c0ffee".to_owned(),
            "hush".to_owned(),
        ];
        for text in bad {
            let why = parse(&text).unwrap_err();
            assert!(
                why.starts_with("line ") && !why.contains("hush") && !why.contains("c0ffee"),
                "{why}"
            );
        }
        assert!(parse("# nothing\n").unwrap_err().contains("no key"));
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), format!("k1:{HEX}\n")).unwrap();
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o640)).unwrap();
        assert!(
            read_keys(file.path())
                .unwrap_err()
                .to_string()
                .contains("chmod 600")
        );
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o600)).unwrap();
        assert!(read_keys(file.path()).is_ok());
    }
}
