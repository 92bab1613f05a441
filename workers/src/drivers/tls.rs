//! What the drivers have in common that speak HTTP to an address of a method: which addresses, whose certificates are trusted, and who asks.

use std::fs::File;
use std::io::Read;

use reqwest::header::HeaderValue;
use reqwest::{Certificate, Client};
use ringfence_backends::http::{self, Request};
use ringfence_core::{FrozenMethod, Parameter, Secret, value_of};
use url::Url;

use crate::{Secrets, WorkerError};

/// The largest file of CA certificates, in bytes: all that a distribution trusts are about 220 kB.
const MAX_CA_BYTES: u64 = 1024 * 1024;

/// Whom to trust.
pub(super) const CA_FILE: Parameter =
    Parameter::optional("ca_file", "PEM file on the worker with the certificates to trust");

/// Whether to trust whom the address leads to.
pub(super) const INSECURE: Parameter = Parameter::optional("insecure", "true does not check the certificate")
    .by_default("false")
    .flag();

/// What a service takes in place of a password.
pub(super) const TOKEN: Secret = Secret {
    name: "token",
    is_required: false,
};

pub(super) const ALLOWED_URL: &str = "a URL such as https://monitor.example/ without credentials is allowed";

/// Credentials in a URL would be stored with it, and shown with it.
pub(super) fn is_plain(text: &str) -> bool {
    parse(text).is_ok()
}

/// The address that a method gives.
pub(super) fn parse(text: &str) -> Result<Url, WorkerError> {
    let url = Url::parse(text).ok().filter(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none()
            && url.fragment().is_none()
    });
    url.ok_or_else(|| WorkerError::refused(format!("the url cannot be used; {ALLOWED_URL}")))
}

/// The request with the token, where there is one.
pub(super) fn with_token(request: Request, secrets: &Secrets) -> Result<Request, WorkerError> {
    let Some(token) = secrets.get(TOKEN.name) else {
        return Ok(request);
    };
    let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose().trim()))
        .map_err(|_| WorkerError::refused("the secret token holds what no header can hold"))?;
    value.set_sensitive(true);
    Ok(request.header("authorization", value))
}

/// A client that trusts whom the method says.
pub(super) fn client(method: &FrozenMethod) -> Result<Client, WorkerError> {
    let given = |parameter: Parameter| value_of(&method.parameters, parameter.name);
    let mut builder = http::builder();
    if let Some(path) = given(CA_FILE) {
        builder = builder.tls_certs_only(certificates(path)?);
    }
    if given(INSECURE) == Some("true") {
        builder = builder.tls_danger_accept_invalid_certs(true);
    }
    http::build(builder).map_err(WorkerError::refused)
}

fn certificates(path: &str) -> Result<Vec<Certificate>, WorkerError> {
    let fault = |why: String| WorkerError::refused(format!("the CA file {path} cannot be used: {why}"));
    let mut pem = Vec::new();
    let file = File::open(path).map_err(|error| fault(error.to_string()))?;
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Err(fault("it is not a regular file".to_owned()));
    }
    file.take(MAX_CA_BYTES)
        .read_to_end(&mut pem)
        .map_err(|error| fault(error.to_string()))?;
    match Certificate::from_pem_bundle(&pem) {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(fault("it holds no certificate".to_owned())),
        Err(error) => Err(fault(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_holds_no_credentials() {
        for url in ["http://127.0.0.1:9090", "https://monitor.example/prometheus/"] {
            assert!(is_plain(url), "{url}");
        }
        for url in [
            "https://a:b@monitor.example",
            "https://a@monitor.example",
            "monitor.example",
            "ftp://x",
            "https://",
        ] {
            assert!(!is_plain(url), "{url}");
        }
    }
}
