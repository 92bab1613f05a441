//! Adding and changing hosts.

use clap::{ArgGroup, Args};
use serde_json::{Map, Value};

use super::super::arguments::{object_at, pair, put};
use super::super::completed::hosts;
use super::super::session::Session;
use super::show;
use crate::client::Request;
use crate::error::CliError;

/// The options for a host's fields.
#[derive(Clone, Debug, Args)]
pub struct HostFields {
    /// The host's segment; the default one if absent
    #[arg(long)]
    segment: Option<String>,
    /// Where the host's workloads live
    #[arg(long, value_parser = ["nova", "kubernetes", "none"])]
    backend: Option<String>,
    /// The cloud or cluster, as the configuration names it
    #[arg(long)]
    cloud: Option<String>,
    /// The host's name in its backend, where it differs
    #[arg(long, value_name = "NAME")]
    known_as: Option<String>,
    /// The group of hosts that share a plan
    #[arg(long = "type", value_name = "TYPE")]
    host_type: Option<String>,
    /// The zone whose workers reach the host's devices
    #[arg(long)]
    zone: Option<String>,
    /// A label, as in rack=r1; may be repeated
    #[arg(long = "label", value_name = "NAME=VALUE")]
    labels: Vec<String>,
    /// A value for a parameter of a method, as in bmc.ip=192.0.2.7; may be repeated
    #[arg(long = "parameter", short, value_name = "METHOD.KEY=VALUE")]
    parameters: Vec<String>,
}

/// `ringfence host add`
#[derive(Debug, Args)]
pub struct AddArgs {
    /// Its name
    name: String,
    #[command(flatten)]
    fields: HostFields,
}

/// How often the parameters of a host are read before a change of them is given up.
const MAX_READS: u32 = 5;

/// `ringfence host set`
#[derive(Clone, Debug, Args)]
#[command(group(ArgGroup::new("change").multiple(true).required(true).args(
    ["name", "segment", "backend", "cloud", "known_as", "host_type", "zone", "labels", "parameters", "no_type", "no_labels", "no_parameters"],
)))]
pub struct SetArgs {
    /// Name or id
    #[arg(add = hosts())]
    host: String,
    /// Its new name
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    fields: HostFields,
    /// Removes the type
    #[arg(long, conflicts_with = "host_type")]
    no_type: bool,
    /// Removes a label; may be repeated
    #[arg(long = "no-label", value_name = "NAME")]
    no_labels: Vec<String>,
    /// Removes a value; may be repeated
    #[arg(long = "no-parameter", value_name = "METHOD.KEY")]
    no_parameters: Vec<String>,
}

impl HostFields {
    fn put_into(self, body: &mut Map<String, Value>) {
        put(body, "segment", self.segment);
        put(body, "backend", self.backend);
        put(body, "cloud", self.cloud);
        put(body, "known_as", self.known_as);
        put(body, "type", self.host_type);
        put(body, "zone", self.zone);
    }
}

/// `ringfence host add`
pub async fn add(args: AddArgs, session: &mut Session) -> Result<(), CliError> {
    let mut body = Map::new();
    let labels = labels(&args.fields.labels)?;
    put(
        &mut body,
        "labels",
        Some(labels).filter(|labels| !labels.is_empty()),
    );
    let mut parameters = Map::new();
    args.fields
        .parameters
        .iter()
        .try_for_each(|text| set_parameter(&mut parameters, text))?;
    put(&mut body, "name", Some(args.name));
    put(
        &mut body,
        "parameters",
        Some(parameters).filter(|parameters| !parameters.is_empty()),
    );
    args.fields.put_into(&mut body);
    session
        .show(Request::post(&["hosts"], body.into()), show::details)
        .await
}

/// `ringfence host set`
///
/// An observer's report changes the host too, so the parameters may have to be read once more.
pub async fn set(args: SetArgs, session: &mut Session) -> Result<(), CliError> {
    for _ in 1..MAX_READS {
        match set_once(args.clone(), session).await {
            Err(CliError::Api(fault)) if fault.is_changed_meanwhile() => {}
            other => return other,
        }
    }
    set_once(args, session).await
}

async fn set_once(args: SetArgs, session: &mut Session) -> Result<(), CliError> {
    let mut body = Map::new();
    let mut etag = None;
    let fields = &args.fields;
    // All parameters are replaced together, and so are all labels, so the others are read first.
    let keys = [
        ("parameters", [&fields.parameters, &args.no_parameters]),
        ("labels", [&fields.labels, &args.no_labels]),
    ];
    let keys = keys
        .iter()
        .filter(|(_, given)| given.iter().any(|texts| !texts.is_empty()));
    let keys: Vec<&str> = keys.map(|(key, _)| *key).collect();
    if !keys.is_empty() {
        let (mut now, read) = session.draft("hosts", &args.host, &keys).await?;
        if keys.contains(&"labels") {
            let known = object_at(&mut now, "labels")?;
            for name in &args.no_labels {
                if known.remove(name).is_none() {
                    return Err(CliError::Usage(format!("the host has no label {name}")));
                }
            }
            known.extend(labels(&fields.labels)?);
        }
        if keys.contains(&"parameters") {
            let parameters = object_at(&mut now, "parameters")?;
            args.no_parameters
                .iter()
                .try_for_each(|text| remove_parameter(parameters, text))?;
            fields
                .parameters
                .iter()
                .try_for_each(|text| set_parameter(parameters, text))?;
        }
        body = now;
        etag = read;
    }
    put(&mut body, "name", args.name);
    args.fields.put_into(&mut body);
    if args.no_type {
        body.insert("type".to_owned(), Value::Null);
    }
    let request = Request::patch(&["hosts", &args.host], body.into()).if_match(etag);
    session.show(request, show::details).await
}

fn labels(texts: &[String]) -> Result<Map<String, Value>, CliError> {
    let label = |text: &String| pair(text).map(|pair| (pair.key, pair.value.into()));
    texts.iter().map(label).collect()
}

/// The name of a method may contain dots, the name of a parameter may not.
fn split(text: &str) -> Result<(&str, &str), CliError> {
    let bad =
        || CliError::Usage("write a host's parameter as METHOD.KEY=VALUE, as in bmc.ip=192.0.2.7".to_owned());
    text.rsplit_once('.')
        .filter(|(method, key)| !method.is_empty() && !key.is_empty())
        .ok_or_else(bad)
}

fn set_parameter(parameters: &mut Map<String, Value>, text: &str) -> Result<(), CliError> {
    let pair = pair(text)?;
    let (method, key) = split(&pair.key)?;
    object_at(parameters, method)?.insert(key.to_owned(), pair.value.into());
    Ok(())
}

fn remove_parameter(parameters: &mut Map<String, Value>, text: &str) -> Result<(), CliError> {
    let (method, key) = split(text)?;
    let values = object_at(parameters, method)?;
    if values.remove(key).is_none() {
        return Err(CliError::Usage(format!("the host has no parameter {text}")));
    }
    if values.is_empty() {
        parameters.remove(method);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parameters_are_added_to_those_that_are_there() {
        let mut parameters = json!({"bmc": {"ip": "192.0.2.1"}}).as_object().unwrap().clone();
        set_parameter(&mut parameters, "bmc.lan.port=623").unwrap();
        set_parameter(&mut parameters, "bmc.ip=192.0.2.2").unwrap();
        remove_parameter(&mut parameters, "bmc.lan.port").unwrap();
        assert_eq!(
            Value::Object(parameters.clone()),
            json!({"bmc": {"ip": "192.0.2.2"}})
        );
        assert!(remove_parameter(&mut parameters, "bmc.port").is_err());
        assert!(set_parameter(&mut parameters, "ip=1").is_err());
    }
}
