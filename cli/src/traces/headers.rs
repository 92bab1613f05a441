//! The headers for the collector, from a file of their own, since they are secrets.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::error::CliError;

/// The longest file of headers.
const MAX_BYTES: u64 = 64 * 1024;

/// Reads the headers. A file with permissions for group or others is refused.
pub(super) fn headers(path: &Path) -> Result<HeaderMap, CliError> {
    let fault = |source| CliError::file("read the headers", path, source);
    let content = |why: String| CliError::content(path, why);
    let file = std::fs::File::open(path).map_err(fault)?;
    let mode = file.metadata().map_err(fault)?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(content(format!(
            "has mode {mode:04o}; only its owner may read it (chmod 600)"
        )));
    }
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).map_err(fault)?;
    parse(&text).map_err(content)
}

/// The errors show no part of a value.
fn parse(text: &str) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let (name, value) = line
            .split_once(':')
            .ok_or_else(|| format!("line {number}: write name: value"))?;
        let name: HeaderName = name
            .trim()
            .parse()
            .map_err(|_| format!("line {number}: this is no name of a header"))?;
        let mut value: HeaderValue = value.trim().parse().map_err(|_| {
            format!("line {number}: the value of {name} has characters that no header may have")
        })?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn headers_are_read_and_never_shown() {
        let headers = parse("# of the collector\n\nAuthorization: Bearer hush\nx-tenant:a\n").unwrap();
        assert_eq!(headers["authorization"], "Bearer hush");
        assert_eq!(headers["x-tenant"], "a");
        assert!(!format!("{headers:?}").contains("hush"));
    }

    #[test]
    fn a_bad_line_is_named_and_not_shown() {
        for text in ["x: y\nhush", "x: y\nhush hush: y", "x: y\nz: hush\u{7f}"] {
            let why = parse(text).unwrap_err();
            assert!(why.starts_with("line 2: ") && !why.contains("hush"), "{why}");
        }
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "authorization: Bearer hush\n").unwrap();
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o644)).unwrap();
        let error = headers(file.path()).unwrap_err().to_string();
        assert!(error.contains("chmod 600") && !error.contains("hush"), "{error}");
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(headers(file.path()).unwrap().len(), 1);
    }
}
