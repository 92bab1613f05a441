//! What a shell can complete beside commands and flags: names of the service's objects.
//!
//! A shell asks while the user types: an error completes nothing, and no call takes long.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use clap_complete::ArgValueCompleter;

use crate::args::RemoteArgs;
use crate::client::{Client, Place, Request};
use crate::completion::beginning_with;
use crate::config::Environment;
use crate::error::CliError;

/// The longest wait for a completion.
const PATIENCE: Duration = Duration::from_secs(2);
/// The longest page of the API.
const MOST: u32 = 1000;

/// Names of hosts.
pub fn hosts() -> ArgValueCompleter {
    of_service("hosts")
}

/// Names of methods.
pub fn methods() -> ArgValueCompleter {
    of_service("methods")
}

/// Names of plans.
pub fn plans() -> ArgValueCompleter {
    of_service("plans")
}

/// Names of segments.
pub fn segments() -> ArgValueCompleter {
    of_service("segments")
}

/// Names of subscriptions.
pub fn subscriptions() -> ArgValueCompleter {
    of_service("subscriptions")
}

fn of_service(noun: &'static str) -> ArgValueCompleter {
    ArgValueCompleter::new(move |begun: &OsStr| {
        beginning_with(begun, names(noun).unwrap_or_default().into_iter())
    })
}

fn names(noun: &'static str) -> Result<Vec<String>, CliError> {
    let environment = Environment::of_this_process();
    let client = Client::new(Place::find(&remote(&environment)?, &environment)?)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let limit = (noun == "hosts").then_some(MOST);
    let request = Request::get(&[noun]).with("limit", limit);
    let asked = runtime.block_on(async { tokio::time::timeout(PATIENCE, client.send(request)).await });
    let Ok(answer) = asked else { return Ok(Vec::new()) };
    let body = answer?.body;
    let named = body[noun].as_array().into_iter().flatten();
    Ok(named
        .filter_map(|one| one["name"].as_str().map(ToOwned::to_owned))
        .collect())
}

/// The connection's options in the line so far, and the environment. (The line is incomplete, and cannot be parsed as a whole.)
fn remote(environment: &Environment) -> Result<RemoteArgs, CliError> {
    let words: Vec<String> = std::env::args().collect();
    let given = |flag: &str| {
        let at = words.iter().position(|word| word == flag)?;
        words.get(at + 1).cloned()
    };
    let either = |flag: &str, variable: &str| -> Result<Option<String>, CliError> {
        Ok(match given(flag) {
            Some(given) => Some(given),
            None => environment.get(variable)?.map(ToOwned::to_owned),
        })
    };
    Ok(RemoteArgs {
        context: either("--context", "RINGFENCE_CONTEXT")?,
        url: either("--url", "RINGFENCE_URL")?,
        token_file: either("--token-file", "RINGFENCE_TOKEN_FILE")?.map(PathBuf::from),
        ca_file: either("--ca-file", "RINGFENCE_CA_FILE")?.map(PathBuf::from),
        data_dir: given("--data-dir").map(PathBuf::from),
        ..RemoteArgs::default()
    })
}
