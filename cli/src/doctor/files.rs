//! The files that the configuration names.

use chrono::TimeDelta;
use ringfence_api::{TlsFiles, Validity};

use super::Report;
use crate::clock::now;
use crate::config::{Settings, read_keys};
use crate::error::error_chain;
use crate::tokens;

const CREATE_TOKEN: &str = "make one with: ringfence token create --name NAME --role admin";

const CERTIFICATE: &str = "certificate";
const RENEW: &str = "put a new one in its place, then send the API a SIGHUP";
/// A certificate that expires sooner should have been renewed by now.
const ENDS_SOON: TimeDelta = TimeDelta::days(30);

/// The signing keys, the tokens and the certificate. A missing setting is reported by the service that needs it.
pub(super) fn look(settings: &Settings, report: &mut Report) {
    match &settings.bus.keys_file {
        None if settings.bus.url.is_some() => report.failure(
            "keys",
            "bus.keys_file is not set: no message can be signed",
            "name a file with lines ID:HEX, a copy of it on every machine",
        ),
        None => {}
        Some(path) => match read_keys(path) {
            Ok(_) => report.good("keys", format!("{} can be read", path.display())),
            Err(error) => report.failure("keys", error_chain(&error), "mend the file; see docs/security.md"),
        },
    }
    if let Some(path) = &settings.api.tokens_file {
        match tokens::read(path) {
            Ok(file) => judge_tokens(&file, report),
            Err(error) => report.failure("tokens", error_chain(&error), "mend the file"),
        }
    }
    match settings.api_tls() {
        Ok(Some(files)) => judge_certificate(&files, report),
        Ok(None) => {}
        Err(error) => report.failure(CERTIFICATE, error_chain(&error), "set both, or neither"),
    }
}

fn judge_certificate(files: &TlsFiles, report: &mut Report) {
    let validity = match files.check() {
        Ok(validity) => validity,
        Err(error) => {
            return report.failure(
                CERTIFICATE,
                error_chain(&error),
                "mend the file, then send the API a SIGHUP",
            );
        }
    };
    let (path, now) = (files.certificate.display(), now());
    let Validity {
        not_before,
        not_after,
    } = validity;
    if not_after < now {
        let found = format!("{path} expired at {not_after}: callers refuse the API");
        report.failure(CERTIFICATE, found, RENEW);
    } else if not_before > now {
        let found = format!("{path} is valid from {not_before} on: callers refuse the API until then");
        report.failure(
            CERTIFICATE,
            found,
            "compare this machine's clock, or mend the file",
        );
    } else if not_after < now + ENDS_SOON {
        report.warning(CERTIFICATE, format!("{path} expires at {not_after}"), RENEW);
    } else {
        report.good(CERTIFICATE, format!("{path} is valid until {not_after}"));
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
            "no token is valid: the API refuses every caller",
            CREATE_TOKEN,
        );
    } else if expired > 0 {
        report.warning(
            "tokens",
            format!("{valid} are valid, {expired} have expired"),
            "revoke the tokens that are not needed, or make new ones",
        );
    } else {
        report.good("tokens", format!("{valid} are valid"));
    }
}
