//! What the drivers have in common that speak HTTP to an address of a method: whose certificates are trusted.

use std::fs::File;
use std::io::Read;

use reqwest::{Certificate, Client};
use ringfence_backends::http;
use ringfence_core::{FrozenMethod, Parameter, value_of};

use crate::WorkerError;

/// The largest file of CA certificates, in bytes: all that a distribution trusts are about 220 kB.
const MAX_CA_BYTES: u64 = 1024 * 1024;

/// Whom to trust.
pub(super) const CA_FILE: Parameter =
    Parameter::optional("ca_file", "PEM file on the worker with the certificates to trust");

/// Whether to trust whom the address leads to.
pub(super) const INSECURE: Parameter = Parameter::optional("insecure", "true does not check the certificate")
    .by_default("false")
    .flag();

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
