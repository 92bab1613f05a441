//! The way to one controller: address, trust and credentials. Nothing is ever sent anywhere else.

use reqwest::{Client, Method};
use ringfence_core::FrozenMethod;
use tokio::time::Instant;
use url::Url;

use crate::drivers::{password, required, tls};
use crate::{Secrets, WorkerError};
use ringfence_backends::http::{self, Reply, Request};

pub(super) struct Connection<'a> {
    client: Client,
    base: Url,
    pub system: &'a str,
    pub username: &'a str,
    pub password: &'a str,
}

impl<'a> Connection<'a> {
    pub(super) fn new(method: &'a FrozenMethod, secrets: &'a Secrets) -> Result<Self, WorkerError> {
        let password = password(method, secrets)?;
        Ok(Self {
            client: tls::client(method)?,
            base: base(required(method, "address")?)?,
            system: required(method, "system")?,
            username: required(method, "username")?,
            password,
        })
    }

    /// The URL of a path that the controller or the configuration gives; one that leads to another host is refused.
    pub(super) fn url(&self, path: &str) -> Result<Url, String> {
        let url = self
            .base
            .join(path)
            .map_err(|error| format!("{path:?} is not a path: {error}"))?;
        if url.origin() != self.base.origin() {
            return Err(format!("{path:?} leads to another host"));
        }
        Ok(url)
    }

    pub(super) fn request(&self, method: Method, path: &str) -> Result<Request, String> {
        Ok(Request::new(method, self.url(path)?))
    }

    pub(super) async fn send(&self, request: Request, until: Instant) -> Result<Reply, String> {
        http::send(&self.client, request, until).await
    }
}

/// An address has no path, so that the system's path is all that counts, and no credentials, which would be stored with it.
pub(super) fn base(address: &str) -> Result<Url, WorkerError> {
    let url = Url::parse(address)
        .map_err(|error| WorkerError::refused(format!("the address is not a URL: {error}")))?;
    let plain = matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none()
        && matches!(url.path(), "" | "/")
        && url.query().is_none()
        && url.fragment().is_none();
    if plain {
        Ok(url)
    } else {
        Err(WorkerError::refused(
            "the address must be scheme, host and port alone, such as https://bmc.example:8443",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_holds_neither_credentials_nor_a_path() {
        assert!(base("https://bmc.example:8443").is_ok());
        for address in [
            "https://a:b@bmc",
            "https://bmc/redfish/v1",
            "https://bmc/?x",
            "ftp://bmc",
            "bmc",
            "https://",
        ] {
            assert!(base(address).is_err(), "{address}");
        }
    }
}
