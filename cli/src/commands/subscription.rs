//! `ringfence subscription`.

mod deliveries;

use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args, Subcommand};
use serde_json::{Map, Value};

use self::deliveries::{DeliveriesArgs, call, deliveries};
use super::arguments::{ListArgs, put};
use super::completed::subscriptions;
use super::document;
use super::session::Session;
use crate::client::Request;
use crate::client::view::Subscription;
use crate::error::CliError;
use crate::output::{Cell, Details, Screen, Table, time};

/// The keys of a subscription that can be written.
const KEYS: [&str; 8] = [
    "name",
    "description",
    "url",
    "format",
    "types",
    "segments",
    "hosts",
    "enabled",
];

/// `ringfence subscription ...`
#[derive(Debug, Subcommand)]
pub enum SubscriptionCommand {
    /// Lists subscriptions
    List(ListArgs),
    /// Shows a subscription
    Show {
        /// Name or id
        #[arg(add = subscriptions())]
        subscription: String,
    },
    /// Adds a subscription and shows its secret, once
    Add(AddArgs),
    /// Changes a subscription; options that are not given stay as they are
    Set(SetArgs),
    /// Deletes a subscription and its log of deliveries
    Delete {
        /// Name or id
        #[arg(add = subscriptions())]
        subscription: String,
    },
    /// Gives a subscription a new secret and shows it, once; for a day, the old secret signs as well
    RotateSecret {
        /// Name or id
        #[arg(add = subscriptions())]
        subscription: String,
    },
    /// Sends the receiver a message of type ringfence.test and shows the result
    Test {
        /// Name or id
        #[arg(add = subscriptions())]
        subscription: String,
    },
    /// Lists deliveries of the last 7 days, the newest first
    Deliveries(DeliveriesArgs),
    /// Delivers an event once more and shows the result
    Redeliver {
        /// Name or id
        #[arg(add = subscriptions())]
        subscription: String,
        /// The delivery's id
        delivery: String,
    },
}

/// The options for a subscription's fields.
#[derive(Debug, Args)]
pub struct SubscriptionFields {
    /// What the subscription is for
    #[arg(long)]
    description: Option<String>,
    /// The form of the events; if absent, the form that fits the receiver's address, else cloudevents
    #[arg(long, value_parser = ["cloudevents", "slack", "mattermost", "teams"])]
    format: Option<String>,
    /// Types of events, such as host.fenced, or all of a kind, as in 'host.*'; 'all': every type
    #[arg(long, value_name = "TYPE,...", value_delimiter = ',')]
    types: Option<Vec<String>>,
    /// Segments; 'all': every segment
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    segments: Option<Vec<String>>,
    /// Hosts; 'all': every host
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    hosts: Option<Vec<String>>,
    /// Whether events are delivered; a subscription that was disabled continues after its last event
    #[arg(long, value_name = "true|false")]
    enabled: Option<bool>,
    /// Continues after the event with this number; events after a lower number are sent again
    #[arg(long, value_name = "NUMBER")]
    after: Option<u64>,
}

/// `ringfence subscription add`
#[derive(Debug, Args)]
pub struct AddArgs {
    /// Its name
    name: String,
    /// The receiver's URL: https://HOST/PATH
    // Not named `url`: that is the option for the service's URL, which would get this value, and with it the token.
    #[arg(id = "receiver", value_name = "URL", required_unless_present = "to_file")]
    url: Option<String>,
    /// File with the receiver's URL, where it is a secret; - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "receiver")]
    to_file: Option<PathBuf>,
    #[command(flatten)]
    fields: SubscriptionFields,
}

/// `ringfence subscription set`
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("change").multiple(true).required(true).args([
    "name", "to", "to_file", "format", "description", "types", "segments", "hosts", "enabled", "after",
])))]
pub struct SetArgs {
    /// Name or id
    #[arg(add = subscriptions())]
    subscription: String,
    /// Its new name
    #[arg(long)]
    name: Option<String>,
    /// The receiver's new URL: https://HOST/PATH
    #[arg(long, value_name = "URL")]
    to: Option<String>,
    /// File with the receiver's URL, where it is a secret; - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "to")]
    to_file: Option<PathBuf>,
    #[command(flatten)]
    fields: SubscriptionFields,
}

pub async fn run(command: SubscriptionCommand, session: &mut Session) -> Result<(), CliError> {
    match command {
        SubscriptionCommand::List(args) => session.list("subscriptions", Vec::new(), &args, table).await,
        SubscriptionCommand::Show { subscription } => {
            session
                .show(Request::get(&["subscriptions", &subscription]), show)
                .await
        }
        SubscriptionCommand::Add(args) => {
            let mut body = Map::new();
            put(&mut body, "name", Some(args.name));
            put(&mut body, "url", url_of(args.url, args.to_file.as_deref())?);
            args.fields.put_into(&mut body);
            session
                .show(Request::post(&["subscriptions"], body.into()), show)
                .await
        }
        SubscriptionCommand::Set(args) => set(args, session).await,
        SubscriptionCommand::Delete { subscription } => session.delete("subscriptions", &subscription).await,
        SubscriptionCommand::RotateSecret { subscription } => {
            let path = ["subscriptions", &subscription, "rotate-secret"];
            session.show(Request::post(&path, empty()), show).await
        }
        SubscriptionCommand::Test { subscription } => {
            call(&["subscriptions", &subscription, "test"], &subscription, session).await
        }
        SubscriptionCommand::Deliveries(args) => deliveries(args, session).await,
        SubscriptionCommand::Redeliver {
            subscription,
            delivery,
        } => {
            let path = [
                "subscriptions",
                &subscription,
                "deliveries",
                &delivery,
                "redeliver",
            ];
            call(&path, &subscription, session).await
        }
    }
}

/// The URL that was given, or that a file holds: a URL may be a secret, which other users of the machine see among the arguments.
fn url_of(given: Option<String>, file: Option<&Path>) -> Result<Option<String>, CliError> {
    let Some(file) = file else { return Ok(given) };
    let text = document::text(file, 1)?;
    Ok(Some(text.trim().to_owned()))
}

fn empty() -> Value {
    Value::Object(Map::new())
}

async fn set(args: SetArgs, session: &mut Session) -> Result<(), CliError> {
    let (mut body, etag) = session.draft("subscriptions", &args.subscription, &KEYS).await?;
    put(&mut body, "name", args.name);
    put(&mut body, "url", url_of(args.to, args.to_file.as_deref())?);
    args.fields.put_into(&mut body);
    let request = Request::put(&["subscriptions", &args.subscription], body.into()).if_match(etag);
    session.show(request, show).await
}

impl SubscriptionFields {
    fn put_into(self, body: &mut Map<String, Value>) {
        put(body, "format", self.format);
        put(body, "description", self.description);
        put(body, "types", self.types.map(all_or));
        put(body, "segments", self.segments.map(all_or));
        put(body, "hosts", self.hosts.map(all_or));
        put(body, "enabled", self.enabled);
        put(body, "after", self.after);
    }
}

/// An empty list lets every event through.
fn all_or(words: Vec<String>) -> Vec<String> {
    if words == ["all"] { Vec::new() } else { words }
}

fn list_or_all(words: &[String]) -> String {
    if words.is_empty() {
        "all".to_owned()
    } else {
        words.join(", ")
    }
}

/// The state in one word.
fn state(subscription: &Subscription) -> &'static str {
    match (subscription.enabled, &subscription.disabled_reason) {
        (true, _) if subscription.retrying > 0 => "retrying",
        (true, _) => "enabled",
        (false, Some(_)) => "failed",
        (false, None) => "disabled",
    }
}

fn table(subscriptions: &[Subscription]) -> Table {
    let mut table = Table::new(&["NAME", "STATE", "URL", "TYPES", "SEGMENTS", "HOSTS", "AFTER"]).and_wide(&[
        "FORMAT",
        "RETRYING",
        "DESCRIPTION",
        "ID",
    ]);
    for subscription in subscriptions {
        table.row([
            subscription.name.as_str().into(),
            Cell::word(state(subscription)),
            subscription.url.as_str().into(),
            list_or_all(&subscription.types).into(),
            list_or_all(&subscription.segments).into(),
            list_or_all(&subscription.hosts).into(),
            subscription.after.to_string().into(),
            subscription.format.as_str().into(),
            subscription.retrying.to_string().into(),
            subscription.description.as_str().into(),
            subscription.id.as_str().into(),
        ]);
    }
    table
}

fn show(screen: &mut Screen, subscription: Subscription) -> Result<(), CliError> {
    let mut details = Details::default()
        .with("name", &subscription.name)
        .with("id", &subscription.id)
        .with_some("description", Some(&subscription.description))
        .with("url", &subscription.url)
        .with_some("format", Some(&subscription.format))
        .with("types", list_or_all(&subscription.types))
        .with("segments", list_or_all(&subscription.segments))
        .with("hosts", list_or_all(&subscription.hosts))
        .with_word("state", state(&subscription), "")
        .with_some("reason", subscription.disabled_reason.as_ref())
        .with("delivered up to event", subscription.after.to_string())
        .with("events being retried", subscription.retrying.to_string())
        .with_some(
            "previous secret until",
            subscription.previous_secret_until.map(time),
        );
    if let Some(secret) = &subscription.secret {
        details = details.with("secret (shown once)", secret);
    }
    screen.details(details)
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn a_list_of_all_is_empty_and_an_empty_one_reads_all() {
        assert!(all_or(vec!["all".to_owned()]).is_empty());
        assert_eq!(all_or(vec!["all".to_owned(), "x".to_owned()]).len(), 2);
        assert_eq!(list_or_all(&[]), "all");
    }

    #[test]
    fn a_subscription_that_was_disabled_by_its_receiver_is_told_from_one_that_somebody_switched_off() {
        let of = |enabled: bool, reason: Option<&str>, retrying: u64| {
            let subscription: Subscription = from_value(json!({
                "id": "i", "name": "n", "url": "u", "types": [], "segments": [], "hosts": [], "enabled": enabled,
                "disabled_reason": reason, "after": 7, "retrying": retrying,
            }))
            .unwrap();
            state(&subscription)
        };
        assert_eq!(of(true, None, 0), "enabled");
        assert_eq!(of(true, None, 2), "retrying");
        assert_eq!(of(false, None, 0), "disabled");
        assert_eq!(of(false, Some("it answered 410 Gone"), 0), "failed");
    }
}
