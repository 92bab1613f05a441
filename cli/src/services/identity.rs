//! The authentication of callers, from the settings.

use std::collections::BTreeMap;
use std::time::Duration;

use ringfence_api::{KeystoneConfig, Password, RateLimits, RoleNames, Scope, StreamLimits, Tokens};
use ringfence_core::SecretReference;
use ringfence_workers::Secrets;

use crate::config::{ApiSettings, KeystoneSettings, Settings};
use crate::error::CliError;
use crate::open_files;

/// The key of the reference to the password.
const PASSWORD: &str = "keystone.password";

/// The rate limits of one caller.
pub fn limits(api: &ApiSettings) -> RateLimits {
    RateLimits {
        requests_per_second: api.requests_per_second,
        request_burst: api.request_burst,
        failed_authentications_per_minute: api.failed_authentications_per_minute,
    }
}

/// The limits of event streams.
pub fn streams(api: &ApiSettings) -> StreamLimits {
    StreamLimits {
        of_one_caller: api.streams_per_caller,
        in_all: open_files::streams_at_most(api.streams),
    }
}

/// The static tokens. With Keystone there need be none.
pub fn tokens(settings: &Settings) -> Result<Tokens, CliError> {
    if settings.keystone.url.is_some() && settings.api.tokens_file.is_none() {
        return Ok(Tokens::none());
    }
    Tokens::open(settings.tokens_file()?).map_err(|error| CliError::service("api", "cannot serve", error))
}

/// The configuration for Keystone, if the API accepts its tokens.
pub fn keystone(settings: &KeystoneSettings) -> Result<Option<KeystoneConfig>, CliError> {
    let Some(url) = &settings.url else {
        return Ok(None);
    };
    let reference = settings
        .password
        .clone()
        .ok_or_else(|| missing(PASSWORD, "env:VARIABLE or file:/path"))?;
    let mut config = KeystoneConfig::new(url, password(reference), scopes(settings)?);
    config.user.clone_from(&settings.user);
    config.user_domain.clone_from(&settings.user_domain);
    config.project.clone_from(&settings.project);
    config.project_domain.clone_from(&settings.project_domain);
    config.roles = RoleNames {
        reader: settings.reader_roles.clone(),
        service: settings.service_roles.clone(),
        operator: settings.operator_roles.clone(),
        admin: settings.admin_roles.clone(),
    };
    config.ca_pem = authority(settings)?;
    config.timeout = Duration::from_millis(settings.timeout_ms);
    Ok(Some(config))
}

/// The scopes have no default: a cloud's tenants are members of their own projects, and must not fence its hosts.
fn scopes(settings: &KeystoneSettings) -> Result<Vec<Scope>, CliError> {
    let allowed = "a list of any, system, domain:DOMAIN, project:PROJECT@DOMAIN";
    let texts = settings
        .scopes
        .as_ref()
        .ok_or_else(|| missing("keystone.scopes", allowed))?;
    let scopes: Result<Vec<Scope>, String> = texts.iter().map(|text| text.parse()).collect();
    scopes.map_err(|why| CliError::config(format!("keystone.scopes {why}")))
}

fn authority(settings: &KeystoneSettings) -> Result<Option<Vec<u8>>, CliError> {
    let read = |path: &std::path::PathBuf| {
        std::fs::read(path)
            .map_err(|error| CliError::file("read Keystone's certificate authority", path, error))
    };
    settings.ca_file.as_ref().map(read).transpose()
}

fn password(reference: SecretReference) -> Password {
    let references = BTreeMap::from([(PASSWORD.to_owned(), reference)]);
    Password::new(move || {
        let secrets = Secrets::resolve_here(&references).map_err(|error| error.to_string())?;
        let secret = secrets.get(PASSWORD).ok_or("it is not there")?;
        Ok(secret.expose().to_owned())
    })
}

fn missing(key: &str, allowed: &str) -> CliError {
    CliError::config(format!(
        "{key} is not set, and keystone.url is; {allowed} is needed"
    ))
}
