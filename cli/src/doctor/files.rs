//! The files that the configuration names.

use super::{Report, chain};
use crate::clock::now;
use crate::config::{Settings, read_keys};
use crate::tokens;

const CREATE_TOKEN: &str = "make one with: ringfence token create --name NAME --role admin";

/// The signing keys and the tokens. What is not configured is told by the service that needs it.
pub(super) fn look(settings: &Settings, report: &mut Report) {
    match &settings.bus.keys_file {
        None if settings.bus.url.is_some() => report.failure(
            "keys",
            "bus.keys_file is not set: no message can be signed",
            "name a file with lines ID:HEX, the same on every machine",
        ),
        None => {}
        Some(path) => match read_keys(path) {
            Ok(_) => report.good("keys", format!("{} can be read", path.display())),
            Err(error) => report.failure("keys", chain(&error), "mend the file; see docs/security.md"),
        },
    }
    if let Some(path) = &settings.api.tokens_file {
        match tokens::read(path) {
            Ok(file) => judge_tokens(&file, report),
            Err(error) => report.failure("tokens", chain(&error), "mend the file"),
        }
    }
}

fn judge_tokens(file: &ringfence_api::TokenFile, report: &mut Report) {
    let now = now();
    let valid = file
        .tokens
        .iter()
        .filter(|token| token.expires_at.is_none_or(|at| at > now))
        .count();
    let expired = file.tokens.len() - valid;
    if valid == 0 {
        report.failure(
            "tokens",
            "no token is valid: nobody can use the API",
            CREATE_TOKEN,
        );
    } else if expired > 0 {
        report.warning(
            "tokens",
            format!("{valid} are valid, {expired} have expired"),
            "revoke those that are not needed, or make them anew",
        );
    } else {
        report.good("tokens", format!("{valid} are valid"));
    }
}
