//! `ringfence version`.

use serde_json::{Value, json};

use crate::args::RemoteArgs;
use crate::client::{Client, Place, Request};
use crate::config::Environment;
use crate::error::CliError;
use crate::output::Screen;

const OWN: &str = env!("CARGO_PKG_VERSION");

/// Prints the version of this program, and the API versions of the service that is named or runs on this machine.
pub async fn run(remote: &RemoteArgs, environment: &Environment) -> Result<(), CliError> {
    let mut screen = Screen::new(remote.output.format);
    let place = match Place::find(remote, environment) {
        Ok(place) => Some(place),
        Err(CliError::Nowhere { .. }) => None,
        Err(error) => return Err(error),
    };
    let (service, failed) = match place {
        Some(place) => match ask(place).await {
            Ok(service) => (service, None),
            Err(error) => (Value::Null, Some(error)),
        },
        None => (Value::Null, None),
    };
    if screen.is_for_programs() {
        screen.data(&json!({ "client": OWN, "service": service }))?;
    } else {
        screen.line(format!("ringfence {OWN}"))?;
        if !service.is_null() {
            let text = |key: &str| service[key].as_str().unwrap_or_default().to_owned();
            let (url, least, most) = (text("url"), text("min_version"), text("max_version"));
            screen.line(format!("service {url} with API fencing {least} to {most}"))?;
        }
    }
    failed.map_or(Ok(()), Err)
}

async fn ask(place: Place) -> Result<Value, CliError> {
    let url = place.url.to_string();
    let answer = Client::new(place)?.send(Request::get(&[])).await?;
    let version = &answer.body["versions"][0];
    Ok(json!({ "url": url, "min_version": version["min_version"], "max_version": version["max_version"] }))
}
