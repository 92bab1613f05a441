//! Subscriptions: who is told of which events, and where.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{EventKind, Problems, SubscriptionId, Timestamp, validate_name, words};

/// The most words that one list of a filter may hold.
pub const MAX_FILTER_WORDS: usize = 1000;
/// The longest description, in characters.
const MAX_DESCRIPTION_CHARS: usize = 1000;

/// A webhook that is told of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// Its id.
    pub id: SubscriptionId,
    /// Its name, unique.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Where the events go.
    pub url: String,
    /// In which form.
    pub format: MessageFormat,
    /// Which events.
    pub filter: EventFilter,
    /// Whether events are delivered. One that is not keeps its place and goes on from there.
    pub enabled: bool,
    /// Why it is not enabled, if Ringfence has disabled it.
    pub disabled_reason: Option<String>,
    /// Which secrets sign its deliveries.
    pub secret: SecretVersions,
    /// Counts its changes; the API's entity tag.
    pub revision: u64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// The form in which a receiver takes events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum MessageFormat {
    /// CloudEvents, for programs.
    #[default]
    CloudEvents,
    /// A message of Slack.
    Slack,
    /// A message of Mattermost.
    Mattermost,
    /// An adaptive card, as workflows of Microsoft Teams take them.
    Teams,
}

words!(MessageFormat);

impl MessageFormat {
    /// The one form that receivers at this host take, where that is known by its name.
    #[must_use]
    pub fn of_receiver(host: &str) -> Option<Self> {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let is_below = |domain: &str| host == domain || host.ends_with(&format!(".{domain}"));
        if is_below("hooks.slack.com") || is_below("hooks.slack-gov.com") {
            return Some(Self::Slack);
        }
        let teams = [
            "webhook.office.com",
            "logic.azure.com",
            "api.powerplatform.com",
            "flow.microsoft.com",
        ];
        teams.iter().any(|domain| is_below(domain)).then_some(Self::Teams)
    }
}

/// A secret by what it is derived from; the secret itself is kept nowhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretVersion {
    /// The master key.
    pub key_id: String,
    /// Counts the subscription's secrets from 1.
    pub number: u32,
}

/// The secret, and for a while after a change the one before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretVersions {
    /// Signs.
    pub current: SecretVersion,
    /// Signs as well, until then.
    pub previous: Option<(SecretVersion, Timestamp)>,
}

impl SecretVersions {
    /// The first secret, derived from this key.
    #[must_use]
    pub fn first(key_id: &str) -> Self {
        Self {
            current: SecretVersion {
                key_id: key_id.to_owned(),
                number: 1,
            },
            previous: None,
        }
    }

    /// A new secret; the present one goes on signing until `until`, so that a receiver can be changed without a gap.
    #[must_use]
    pub fn rotate(&self, key_id: &str, until: Timestamp) -> Self {
        Self {
            current: SecretVersion {
                key_id: key_id.to_owned(),
                number: self.current.number.saturating_add(1),
            },
            previous: Some((self.current.clone(), until)),
        }
    }

    /// The secrets that sign at this moment, the newest first.
    pub fn signing(&self, now: Timestamp) -> impl Iterator<Item = &SecretVersion> {
        let previous = self.previous.iter().filter(move |(_, until)| now < *until);
        std::iter::once(&self.current).chain(previous.map(|(version, _)| version))
    }
}

/// Which events. A list that is empty lets everything through; those that are not have to match all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EventFilter {
    /// Types such as `host.fenced`, or all of a kind: `host.*`.
    pub types: Vec<String>,
    /// Names of segments.
    pub segments: Vec<String>,
    /// Names of hosts.
    pub hosts: Vec<String>,
}

impl EventFilter {
    /// Whether an event passes. One that is of no host passes only where neither hosts nor segments are named.
    #[must_use]
    pub fn matches(&self, kind: EventKind, segment: Option<&str>, host: Option<&str>) -> bool {
        let is_in = |list: &[String], word: Option<&str>| {
            list.is_empty() || word.is_some_and(|word| list.iter().any(|known| known == word))
        };
        (self.types.is_empty() || self.types.iter().any(|pattern| names(pattern, kind)))
            && is_in(&self.segments, segment)
            && is_in(&self.hosts, host)
    }
}

/// Whether a pattern of a filter names a type.
fn names(pattern: &str, kind: EventKind) -> bool {
    match pattern.strip_suffix(".*") {
        Some(group) => kind
            .as_str()
            .strip_prefix(group)
            .is_some_and(|rest| rest.starts_with('.')),
        None => pattern == kind.as_str(),
    }
}

/// Refuses what no subscription can hold. The URL is checked by the engine, which calls it.
pub fn validate_subscription(name: &str, description: &str, filter: &EventFilter) -> Result<(), Problems> {
    let mut problems = Problems::default();
    if let Err(problem) = validate_name("name", name) {
        problems.0.push(problem);
    }
    let chars = description.chars().count();
    if chars > MAX_DESCRIPTION_CHARS {
        problems.add(
            "description",
            format!("has {chars} characters; up to {MAX_DESCRIPTION_CHARS} are allowed"),
        );
    }
    check_types(&filter.types, &mut problems);
    check_names("segments", &filter.segments, &mut problems);
    check_names("hosts", &filter.hosts, &mut problems);
    problems.into_result()
}

fn check_types(types: &[String], problems: &mut Problems) {
    check_length("types", types, problems);
    for (i, pattern) in types.iter().enumerate() {
        if !EventKind::ALL.iter().any(|kind| names(pattern, *kind)) {
            problems.add(
                format!("types[{i}]"),
                format!("is {pattern:?}; {} is allowed", Allowed),
            );
        }
    }
}

fn check_names(field: &str, list: &[String], problems: &mut Problems) {
    check_length(field, list, problems);
    for (i, name) in list.iter().enumerate() {
        if let Err(problem) = validate_name(&format!("{field}[{i}]"), name) {
            problems.0.push(problem);
        }
    }
}

fn check_length(field: &str, list: &[String], problems: &mut Problems) {
    if list.len() > MAX_FILTER_WORDS {
        problems.add(
            field,
            format!("has {} entries; up to {MAX_FILTER_WORDS} are allowed", list.len()),
        );
    }
}

/// The types that a filter may name.
struct Allowed;

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for kind in EventKind::ALL {
            write!(f, "{kind}, ")?;
        }
        f.write_str("or all of a kind such as host.*")
    }
}
