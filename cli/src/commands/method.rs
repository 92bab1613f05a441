//! `ringfence method`.

mod checks;
mod drivers;

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};
use ringfence_core::SecretReference;
use serde_json::{Map, Value};

use super::arguments::{ListArgs, object_at, pair, put, seconds_or_none};
use super::completed::methods;
use super::document;
use super::session::Session;
use crate::client::Request;
use crate::client::view::{Check, Method};
use crate::error::CliError;
use crate::output::{Cell, Details, Screen, Table};

/// The keys of a method that can be written.
const KEYS: [&str; 7] = [
    "name",
    "resource",
    "driver",
    "parameters",
    "secrets",
    "zone",
    "times",
];

/// `ringfence method ...`
#[derive(Debug, Subcommand)]
pub enum MethodCommand {
    /// Lists methods
    List(ListArgs),
    /// Lists the drivers that a method may name, or the parameters of one driver
    Drivers {
        /// The driver
        driver: Option<String>,
    },
    /// Shows a method
    Show {
        /// Name or id
        #[arg(add = methods())]
        method: String,
    },
    /// Adds a method
    Add(AddArgs),
    /// Changes a method; options that are not given stay as they are
    Set(SetArgs),
    /// Deletes a method that no plan uses
    Delete {
        /// Name or id
        #[arg(add = methods())]
        method: String,
    },
    /// Asks the method's device for its state; changes nothing
    Check {
        /// Name or id
        #[arg(add = methods())]
        method: String,
        /// For this host; needed where the parameters depend on the host
        #[arg(long)]
        host: Option<String>,
    },
    /// Lists the last answers of the method's devices to the engines' health checks, by host
    Checks {
        /// Name or id
        #[arg(add = methods())]
        method: String,
        /// Only checks that failed
        #[arg(long)]
        failing: bool,
        /// How many to list at most
        #[arg(long, default_value_t = 10_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,
    },
}

/// The options for a method's fields.
#[derive(Debug, Args)]
pub struct MethodFields {
    /// What the method acts on; query: nothing, it asks others whether a fence may begin
    #[arg(long, value_parser = ["power", "storage", "network", "query", "heartbeat"])]
    resource: Option<String>,
    /// The driver, one of those that `ringfence method drivers` lists
    #[arg(long)]
    driver: Option<String>,
    /// A parameter of the driver; may be repeated
    #[arg(long = "parameter", short, value_name = "KEY=VALUE")]
    parameters: Vec<String>,
    /// Where the worker finds a secret: KEY=env:NAME, KEY=file:/PATH or KEY=secret:CLUSTER/SECRET/KEY; may be repeated
    #[arg(long = "secret", short, value_name = "KEY=REFERENCE")]
    secrets: Vec<String>,
    /// The zone whose workers reach the device; the host's own zone if absent
    #[arg(long)]
    zone: Option<String>,
    /// Seconds that one attempt may take
    #[arg(long, value_name = "SECONDS")]
    attempt_timeout_s: Option<u32>,
    /// Seconds that all attempts of a task may take together
    #[arg(long, value_name = "SECONDS")]
    timeout_s: Option<u32>,
    /// Retries after the first attempt
    #[arg(long, value_name = "N")]
    retries: Option<u32>,
    /// Milliseconds between two attempts
    #[arg(long, value_name = "MILLISECONDS")]
    pause_ms: Option<u32>,
    /// Seconds that a proof by this method settles before it counts
    #[arg(long, value_name = "SECONDS")]
    settle_s: Option<u32>,
    /// Seconds for which the device may still carry out a command that was given up; none: the driver's own value
    #[arg(long, value_name = "SECONDS|none", value_parser = seconds_or_none)]
    lingers_s: Option<Value>,
}

/// `ringfence method add`
#[derive(Debug, Args)]
pub struct AddArgs {
    /// Its name
    #[arg(required_unless_present = "file")]
    name: Option<String>,
    /// The method as JSON or TOML; - reads standard input; flags go before it
    #[arg(long, short, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    fields: MethodFields,
}

/// `ringfence method set`
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("change").multiple(true).required(true).args([
    "name", "file", "resource", "driver", "parameters", "secrets", "zone", "attempt_timeout_s", "timeout_s", "retries",
    "pause_ms", "settle_s", "lingers_s", "no_parameters", "no_secrets", "no_zone",
])))]
pub struct SetArgs {
    /// Name or id
    #[arg(add = methods())]
    method: String,
    /// Its new name
    #[arg(long)]
    name: Option<String>,
    /// The whole method as JSON or TOML, which replaces the present one; - reads standard input
    #[arg(long, short, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    fields: MethodFields,
    /// Removes a parameter; may be repeated
    #[arg(long = "no-parameter", value_name = "KEY")]
    no_parameters: Vec<String>,
    /// Removes a secret; may be repeated
    #[arg(long = "no-secret", value_name = "KEY")]
    no_secrets: Vec<String>,
    /// Removes the zone
    #[arg(long, conflicts_with = "zone")]
    no_zone: bool,
}

pub async fn run(command: MethodCommand, session: &mut Session) -> Result<(), CliError> {
    match command {
        MethodCommand::List(args) => session.list("methods", Vec::new(), &args, table).await,
        MethodCommand::Drivers { driver } => drivers::list(driver, session).await,
        MethodCommand::Show { method } => session.show(Request::get(&["methods", &method]), show).await,
        MethodCommand::Add(args) => add(args, session).await,
        MethodCommand::Set(args) => set(args, session).await,
        MethodCommand::Delete { method } => session.delete("methods", &method).await,
        MethodCommand::Check { method, host } => check(&method, host, session).await,
        MethodCommand::Checks {
            method,
            failing,
            limit,
        } => checks::list(&method, failing, limit, session).await,
    }
}

async fn add(args: AddArgs, session: &mut Session) -> Result<(), CliError> {
    let mut body = args
        .file
        .as_deref()
        .map_or_else(|| Ok(Map::new()), document::read)?;
    put(&mut body, "name", args.name);
    args.fields.put_into(&mut body)?;
    session.show(Request::post(&["methods"], body.into()), show).await
}

async fn set(args: SetArgs, session: &mut Session) -> Result<(), CliError> {
    let (mut body, etag) = session.draft("methods", &args.method, &KEYS).await?;
    if let Some(path) = &args.file {
        let name = body.remove("name");
        body = document::read(path)?;
        if !body.contains_key("name") {
            put(&mut body, "name", name);
        }
    }
    put(&mut body, "name", args.name);
    for (object, keys) in [("parameters", &args.no_parameters), ("secrets", &args.no_secrets)] {
        for key in keys {
            let taken = object_at(&mut body, object)?.remove(key);
            taken.ok_or_else(|| CliError::Usage(format!("the method has no {key} among its {object}")))?;
        }
    }
    if args.no_zone {
        body.remove("zone");
    }
    args.fields.put_into(&mut body)?;
    let request = Request::put(&["methods", &args.method], body.into()).if_match(etag);
    session.show(request, show).await
}

impl MethodFields {
    fn put_into(self, body: &mut Map<String, Value>) -> Result<(), CliError> {
        put(body, "resource", self.resource);
        put(body, "driver", self.driver);
        put(body, "zone", self.zone);
        for text in &self.parameters {
            let pair = pair(text)?;
            object_at(body, "parameters")?.insert(pair.key, pair.value.into());
        }
        for text in &self.secrets {
            let pair = pair(text)?;
            // A value that is no reference may be the secret itself, so it is neither sent nor shown.
            SecretReference::parse(&pair.value)
                .map_err(|why| CliError::Usage(format!("secret {:?} {why}", pair.key)))?;
            object_at(body, "secrets")?.insert(pair.key, pair.value.into());
        }
        let times = [
            ("attempt_timeout_s", self.attempt_timeout_s),
            ("timeout_s", self.timeout_s),
            ("retries", self.retries),
            ("pause_ms", self.pause_ms),
            ("settle_s", self.settle_s),
        ];
        let times = times.map(|(key, value)| (key, value.map(Value::from)));
        for (key, value) in times.into_iter().chain([("lingers_s", self.lingers_s)]) {
            if value.is_some() {
                put(object_at(body, "times")?, key, value);
            }
        }
        Ok(())
    }
}

async fn check(method: &str, host: Option<String>, session: &mut Session) -> Result<(), CliError> {
    let request = Request::check(method, host.as_deref());
    session
        .show::<Check>(request, |screen, check| {
            let seen = &check.observation;
            let detail = if seen.detail.is_empty() {
                String::new()
            } else {
                format!(" ({})", seen.detail)
            };
            screen.line(format!(
                "{method}: {}{detail}, by {} in {} ms",
                seen.state, check.worker, check.took_ms
            ))
        })
        .await
}

fn joined<'a>(pairs: impl IntoIterator<Item = (&'a String, &'a String)>) -> String {
    pairs
        .into_iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect::<Vec<_>>()
        .join(" ")
}

fn table(methods: &[Method]) -> Table {
    let mut table = Table::new(&[
        "NAME",
        "RESOURCE",
        "DRIVER",
        "ZONE",
        "LAST CHECK",
        "AGE",
        "PARAMETERS",
        "SECRETS",
    ])
    .and_wide(&["ID"]);
    for method in methods {
        table.row([
            method.name.as_str().into(),
            method.resource.as_str().into(),
            method.driver.as_str().into(),
            Cell::maybe(method.zone.as_deref()),
            checks::outcome(method.checks.as_ref()),
            checks::age(method.checks.as_ref().and_then(|checks| checks.age_s)),
            joined(&method.parameters).into(),
            joined(&method.secrets).into(),
            method.id.as_str().into(),
        ]);
    }
    table
}

fn show(screen: &mut Screen, method: Method) -> Result<(), CliError> {
    let times = method.times.as_object().cloned().unwrap_or(Map::new());
    let times: Vec<String> = times
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let mut details = Details::default()
        .with("name", &method.name)
        .with("id", &method.id)
        .with("resource", &method.resource)
        .with("driver", &method.driver)
        .with("zone", method.zone.as_deref().unwrap_or("the host's"));
    for (key, value) in &method.parameters {
        details = details.with("parameter", format!("{key}={value}"));
    }
    for (key, value) in &method.secrets {
        details = details.with("secret", format!("{key}={value}"));
    }
    let checked = method.checks.as_ref().map(checks::in_words);
    screen.details(
        details
            .with_some("times", Some(times.join(" ")))
            .with_some("last check", checked),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields() -> MethodFields {
        MethodFields {
            resource: None,
            driver: Some("ipmi".to_owned()),
            parameters: vec!["ip=192.0.2.7".to_owned()],
            secrets: vec!["password=env:BMC".to_owned()],
            zone: None,
            attempt_timeout_s: None,
            timeout_s: None,
            retries: Some(2),
            pause_ms: None,
            settle_s: Some(3),
            lingers_s: Some(Value::Null),
        }
    }

    #[test]
    fn flags_become_the_body_and_leave_the_rest_of_it_alone() {
        let mut body = json!({"name": "bmc", "parameters": {"port": "623"}})
            .as_object()
            .unwrap()
            .clone();
        fields().put_into(&mut body).unwrap();
        let expected = json!({
            "name": "bmc", "driver": "ipmi", "parameters": {"ip": "192.0.2.7", "port": "623"},
            "secrets": {"password": "env:BMC"}, "times": {"retries": 2, "settle_s": 3, "lingers_s": null},
        });
        assert_eq!(Value::Object(body), expected);
    }

    #[test]
    fn a_secret_in_the_place_of_its_reference_is_refused_and_not_repeated() {
        let fields = MethodFields {
            secrets: vec!["password=hush".to_owned()],
            ..fields()
        };
        let error = fields.put_into(&mut Map::new()).unwrap_err().to_string();
        assert!(error.contains("env:NAME") && !error.contains("hush"), "{error}");
    }
}
