//! The address of the service, and the token.

use std::fs::{File, TryLockError};
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use url::Url;

use super::context::Contexts;
use crate::args::RemoteArgs;
use crate::config::{Environment, data_dir};
use crate::error::CliError;

/// The longest token file and `api.json`.
const MAX_BYTES: u64 = 64 * 1024;

/// Holds the address of a standalone service, in its data directory.
pub const API_FILE: &str = "api.json";
/// The database in the data directory.
pub const DATABASE: &str = "ringfence.db";
/// The service holds a lock on this file in its data directory as long as it runs.
pub const LOCK_FILE: &str = "lock";

/// A service's address and the token for it.
pub struct Place {
    /// The base URL.
    pub url: Url,
    /// The token, if there is one.
    pub token: Option<String>,
    /// PEM certificates that may have signed the service's, beside the system's.
    pub ca_file: Option<PathBuf>,
    /// What to do if the service does not answer.
    pub hint: String,
}

#[derive(Deserialize)]
struct ApiFile {
    url: String,
}

impl Place {
    /// The URL from `--url` or `RINGFENCE_URL`, the token from `--token-file` or `RINGFENCE_TOKEN`; what is missing is read from the data
    /// directory of a standalone service. The token in a data directory is sent only to the service of that directory.
    pub fn find(remote: &RemoteArgs, environment: &Environment) -> Result<Self, CliError> {
        let remote = &in_context(remote, environment)?;
        let directory = remote.data_dir.clone().or_else(|| data_dir(environment));
        let local = directory.as_deref().map(Local::find).transpose()?.flatten();
        let token = given_token(remote, environment)?;
        let ca_file = remote.ca_file.clone();
        if let Some(url) = remote.url.as_ref().filter(|url| !url.is_empty()) {
            let url = parse(url)?;
            let token = match (token, &directory) {
                (None, Some(directory)) if local.is_some_and(|local| local.runs_at(&url)) => {
                    local_token(directory)?
                }
                (token, _) => token,
            };
            let hint = "is the service running there? `ringfence api` serves it".to_owned();
            return Ok(Self {
                url,
                token,
                ca_file,
                hint,
            });
        }
        let (Some(local), Some(directory)) = (local, directory.clone()) else {
            return Err(nowhere(directory.as_deref(), remote));
        };
        let hint = format!("start it with: ringfence standalone{}", data_dir_flag(remote));
        if local.is_stale {
            return Err(gone(&local.url, &directory, &hint));
        }
        let token = token.map_or_else(|| local_token(&directory), |token| Ok(Some(token)))?;
        Ok(Self {
            url: local.url,
            token,
            ca_file,
            hint,
        })
    }
}

/// Fills in the values of a context: the named one, or the current one unless another option names the service.
fn in_context(remote: &RemoteArgs, environment: &Environment) -> Result<RemoteArgs, CliError> {
    let known = Contexts::read(environment)?;
    // A flag overrides a context that is named, and a variable does not.
    let flag = |given: Option<&str>, variable: &str| -> Result<bool, CliError> {
        Ok(given.is_some() && given != environment.get(variable)?)
    };
    let (context, is_named) = match &remote.context {
        Some(name) => (known.named(name)?, true),
        None => {
            let is_elsewhere = remote.url.as_ref().is_some_and(|url| !url.is_empty())
                || remote.data_dir.is_some()
                || environment.get("RINGFENCE_DATA_DIR")?.is_some();
            match known.current()? {
                Some((_, context)) if !is_elsewhere => (context, false),
                Some(_) | None => return Ok(remote.clone()),
            }
        }
    };
    if remote.data_dir.is_some() || flag(remote.url.as_deref(), "RINGFENCE_URL")? {
        return Err(CliError::Usage(
            "a context says where the service is; name it with --context, or with --url or --data-dir"
                .to_owned(),
        ));
    }
    let chosen = |given: &Option<PathBuf>,
                  variable: &str,
                  own: &Option<PathBuf>|
     -> Result<Option<PathBuf>, CliError> {
        let text = given.as_ref().and_then(|path| path.to_str());
        let is_first = !is_named || flag(text, variable)?;
        let (first, second) = if is_first { (given, own) } else { (own, given) };
        Ok(first.clone().or_else(|| second.clone()))
    };
    let has_token = environment.get("RINGFENCE_TOKEN")?.is_some() && !is_named;
    Ok(RemoteArgs {
        url: context.url.clone(),
        data_dir: context.data_dir.clone(),
        token_file: if has_token {
            remote.token_file.clone()
        } else {
            chosen(&remote.token_file, "RINGFENCE_TOKEN_FILE", &context.token_file)?
        },
        ca_file: chosen(&remote.ca_file, "RINGFENCE_CA_FILE", &context.ca_file)?,
        ..remote.clone()
    })
}

/// Whether a service can have this URL.
pub fn check_url(text: &str) -> Result<(), CliError> {
    parse(text).map(|_| ())
}

/// The error where no service runs on the data directory, if one is known.
fn nowhere(directory: Option<&Path>, remote: &RemoteArgs) -> CliError {
    let named = "name one with --url or RINGFENCE_URL, name the data directory of one that runs here with --data-dir or RINGFENCE_DATA_DIR";
    let (why, start) = match directory {
        Some(path) if path.join(DATABASE).exists() => (
            format!("the standalone service of {} does not run", path.display()),
            format!("ringfence standalone{}", data_dir_flag(remote)),
        ),
        Some(path) => (
            format!("none has been started on the data directory {}", path.display()),
            "ringfence standalone --demo".to_owned(),
        ),
        None => (
            "none has been started here".to_owned(),
            "ringfence standalone --demo".to_owned(),
        ),
    };
    let hint = format!("{named}, or start one with: {start}");
    CliError::Nowhere { why, hint }
}

/// Another program may listen at the address by now, so that no request and no token may be sent there.
fn gone(url: &Url, directory: &Path, hint: &str) -> CliError {
    CliError::Unreachable {
        url: url.to_string(),
        hint: format!(
            "the standalone service of {} does not run: it was killed, and its {API_FILE} is left over; {hint}",
            directory.display()
        ),
        source: None,
    }
}

fn data_dir_flag(remote: &RemoteArgs) -> String {
    remote
        .data_dir
        .as_ref()
        .map(|path| format!(" --data-dir {}", path.display()))
        .unwrap_or_default()
}

fn parse(text: &str) -> Result<Url, CliError> {
    let usage = |why: String| CliError::Usage(format!("the URL of the service {why}"));
    let allowed = "http://HOST:PORT or https://HOST:PORT is allowed";
    // The text before an @ may be a password.
    let given = if text.contains('@') { "(not shown)" } else { text };
    let mut url = Url::parse(text)
        .map_err(|error| usage(format!("is {given:?}, which cannot be read ({error}); {allowed}")))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(usage(format!("is {given:?}; {allowed}")));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(usage(
            "holds credentials; put the token into a file and name it with --token-file".to_owned(),
        ));
    }
    url.set_query(None);
    url.set_fragment(None);
    Ok(url)
}

/// The standalone service of a data directory.
struct Local {
    url: Url,
    /// Whether the service's process is gone.
    is_stale: bool,
}

impl Local {
    fn find(directory: &Path) -> Result<Option<Self>, CliError> {
        let path = directory.join(API_FILE);
        let Some(text) = read(&path)? else { return Ok(None) };
        let file: ApiFile = serde_json::from_str(&text)
            .map_err(|error| CliError::content(path, format!("cannot be read: {error}")))?;
        Ok(Some(Self {
            url: parse(&file.url)?,
            is_stale: is_unlocked(&directory.join(LOCK_FILE)),
        }))
    }

    fn runs_at(&self, url: &Url) -> bool {
        self.url == *url && !self.is_stale
    }
}

/// Whether no process holds the lock; `false` where that cannot be found out.
fn is_unlocked(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    match file.try_lock_shared() {
        Ok(()) => true,
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
    }
}

fn local_token(directory: &Path) -> Result<Option<String>, CliError> {
    let path = directory.join("admin.token");
    read(&path)?.map(|text| token(&text, &path)).transpose()
}

fn given_token(remote: &RemoteArgs, environment: &Environment) -> Result<Option<String>, CliError> {
    if let Some(path) = &remote.token_file {
        let text = read(path)?.ok_or_else(|| {
            CliError::file(
                "read the token from",
                path.as_path(),
                std::io::ErrorKind::NotFound.into(),
            )
        })?;
        return token(&text, path).map(Some);
    }
    let Some(text) = environment.get("RINGFENCE_TOKEN")? else {
        return Ok(None);
    };
    let is_usable = |text: &&str| text.bytes().all(|byte| byte.is_ascii_graphic());
    let token = Some(text.trim()).filter(is_usable);
    let bad = || CliError::config("RINGFENCE_TOKEN holds something else than a token");
    token.map(|token| Some(token.to_owned())).ok_or_else(bad)
}

/// One line of printable characters; other content of the file is not shown.
fn token(text: &str, path: &Path) -> Result<String, CliError> {
    let text = text.trim();
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(CliError::content(path, "holds something else than one token"));
    }
    Ok(text.to_owned())
}

fn read(path: &Path) -> Result<Option<String>, CliError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(CliError::file("read", path, error)),
    };
    let mut text = String::new();
    file.take(MAX_BYTES)
        .read_to_string(&mut text)
        .map_err(|error| CliError::file("read", path, error))?;
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn standalone() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        fs::write(
            directory.path().join("api.json"),
            r#"{"url":"http://127.0.0.1:4711"}"#,
        )
        .unwrap();
        fs::write(directory.path().join("admin.token"), "rf_local\n").unwrap();
        directory
    }

    fn environment(directory: &tempfile::TempDir) -> Environment {
        Environment::from([("RINGFENCE_DATA_DIR", directory.path().to_str().unwrap())])
    }

    #[test]
    fn a_standalone_service_is_found_with_its_token() {
        let directory = standalone();
        let place = Place::find(&RemoteArgs::default(), &environment(&directory)).unwrap();
        assert_eq!(
            (place.url.as_str(), place.token.as_deref()),
            ("http://127.0.0.1:4711/", Some("rf_local"))
        );
    }

    #[test]
    fn the_local_token_is_not_sent_to_another_service() {
        let directory = standalone();
        let url = Some("https://fencing.example".to_owned());
        let remote = RemoteArgs {
            url,
            ..RemoteArgs::default()
        };
        assert_eq!(
            Place::find(&remote, &environment(&directory)).unwrap().token,
            None
        );
    }

    #[test]
    fn what_a_killed_service_left_behind_is_told_and_not_believed() {
        let directory = standalone();
        let lock = File::create(directory.path().join(LOCK_FILE)).unwrap();
        lock.try_lock().unwrap();
        let remote = RemoteArgs::default();
        assert!(Place::find(&remote, &environment(&directory)).is_ok());
        lock.unlock().unwrap();
        let error = Place::find(&remote, &environment(&directory)).err().unwrap();
        let text = error.to_string();
        assert!(
            text.contains("does not run") && text.contains("ringfence standalone"),
            "{text}"
        );
        let named = RemoteArgs {
            url: Some("http://127.0.0.1:4711".to_owned()),
            ..RemoteArgs::default()
        };
        assert_eq!(Place::find(&named, &environment(&directory)).unwrap().token, None);
    }

    #[test]
    fn without_any_service_the_way_to_start_one_is_told() {
        let empty = tempfile::tempdir().unwrap();
        let error = Place::find(&RemoteArgs::default(), &environment(&empty))
            .err()
            .unwrap();
        assert!(
            error.to_string().contains("ringfence standalone --demo"),
            "{error}"
        );
    }

    #[test]
    fn a_service_that_was_stopped_is_not_taken_for_one_that_never_was() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(DATABASE), "").unwrap();
        let remote = RemoteArgs {
            data_dir: Some(directory.path().to_owned()),
            ..RemoteArgs::default()
        };
        let error = Place::find(&remote, &Environment::default()).err().unwrap();
        let text = error.to_string();
        let start = format!("ringfence standalone --data-dir {}", directory.path().display());
        assert!(text.contains("does not run") && text.ends_with(&start), "{text}");
    }

    #[test]
    fn a_token_file_with_something_else_in_it_is_refused_and_not_shown() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "user hush\nmore").unwrap();
        let remote = RemoteArgs {
            url: Some("http://h".to_owned()),
            token_file: Some(file.path().to_owned()),
            ..RemoteArgs::default()
        };
        let error = Place::find(&remote, &Environment::default())
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains("one token") && !error.contains("hush"), "{error}");
    }
}
