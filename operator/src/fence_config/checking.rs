//! A method as the rules check it, and the Secrets that it needs.

use ringfence_core::{Method, MethodId, Problems, SecretReference, Timestamp, validate_method};
use ringfence_engine::MethodDraft;

use super::reading::Given;

/// Checks a method by itself, and whether its Secrets are there.
pub(super) fn check_draft(draft: &MethodDraft, place: &str, given: &Given<'_>, problems: &mut Problems) {
    let own = draft.name.strip_prefix(place).unwrap_or(&draft.name);
    let at = format!("fence-method-{}", own.trim_start_matches('_'));
    let told = |field: &str| {
        let (part, name) = field.split_once('.').unwrap_or(("", field));
        match part {
            "parameters" | "secrets" | "times" => format!("{at}: {name}"),
            _ => format!("{at}: {field}"),
        }
    };
    if let Err(found) = validate_method(given.drivers, &self::draft(draft.clone())) {
        let all = found.0.into_iter();
        all.for_each(|problem| problems.add(told(&problem.field), problem.detail));
    }
    for (secret, key) in secrets_of(draft) {
        let name = format!("Secret {secret} in namespace {}", given.namespace);
        match given.secrets.get(secret) {
            None => problems.add(&at, format!("needs key {key} of {name}, which is not there")),
            Some(keys) if !keys.contains(key) => problems.add(
                &at,
                format!(
                    "needs key {key} of {name}, which has no such key; its keys are {}",
                    keys.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
                ),
            ),
            Some(_) => {}
        }
    }
}

/// The Secrets and keys that a method needs.
pub(super) fn secrets_of(draft: &MethodDraft) -> impl Iterator<Item = (&str, &str)> {
    draft.secrets.values().filter_map(|reference| match reference {
        SecretReference::Cluster { secret, key, .. } => Some((secret.as_str(), key.as_str())),
        SecretReference::Env(_) | SecretReference::File(_) => None,
    })
}

/// A draft as the rules check it.
pub(super) fn draft(draft: MethodDraft) -> Method {
    draft.method(
        MethodId(uuid::Uuid::nil()),
        1,
        Timestamp::UNIX_EPOCH,
        Timestamp::UNIX_EPOCH,
    )
}
