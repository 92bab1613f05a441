//! StorageOS: the copy that takes writes is on another node, and is online, by its own API.
//!
//! Its nodes find out from each other which of them are gone. That tells where a volume can be used now, and no more: a node that it calls
//! offline may come back at any moment, so that it is no proof that the node cannot write.

use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use reqwest::header::HeaderValue;
use reqwest::{Certificate, Client, Method, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::time::Instant;
use url::Url;

use super::{UsedVolume, VolumeHealth};
use crate::http::{self, Request};
use crate::kubernetes::{Cluster, FoundSecret};
use crate::{BackendError, Preflight};

/// Its CSI driver. A volume has the name of its `PersistentVolume`, in the namespace of its claim.
pub(super) const DRIVER: &str = "csi.storageos.com";
/// How long a login is used; it lasts 5 minutes.
const LASTS: Duration = Duration::from_secs(240);

/// A login.
#[derive(Clone)]
pub(in crate::kubernetes) struct Session {
    client: Client,
    base: Url,
    authorization: HeaderValue,
    until: Instant,
}

#[derive(Deserialize)]
struct Named {
    id: String,
    name: String,
}

#[derive(Deserialize)]
struct Volume {
    name: String,
    master: Option<Master>,
}

#[derive(Deserialize)]
struct Master {
    #[serde(rename = "nodeID")]
    node_id: String,
    health: String,
}

/// The StorageOS of a cluster.
pub(super) struct StorageOs<'a>(pub &'a Cluster);

#[async_trait]
impl VolumeHealth for StorageOs<'_> {
    async fn of(&self, volume: &UsedVolume) -> Result<(), String> {
        let session = self.session().await;
        let unasked = |why: String| format!("is not known to be healthy: {why}");
        let session = session.map_err(unasked)?;
        let master = self.master(&session, volume).await.map_err(unasked)?;
        let Some(master) = master else {
            return Err("has no master, says StorageOS".to_owned());
        };
        if master.health != "online" {
            return Err(format!("has a master that is {}, says StorageOS", master.health));
        }
        let nodes: Vec<Named> = self.get(&session, &["nodes"]).await.map_err(unasked)?;
        match nodes.iter().find(|node| node.id == master.node_id) {
            Some(node) if node.name == volume.node => {
                Err(format!("still has its master on {}, says StorageOS", volume.node))
            }
            Some(_) => Ok(()),
            None => Err("has its master on a node that StorageOS does not name".to_owned()),
        }
    }

    async fn preflight(&self) -> Option<Preflight> {
        let (name, secret) = (
            &self.0.settings().name,
            &self.0.settings().volumes.storageos_secret,
        );
        let found = self.0.secret(secret, "url").await;
        if matches!(
            found,
            Ok(FoundSecret::NoSecret) | Err(BackendError::Denied { .. })
        ) {
            return None;
        }
        let asked = async {
            let session = self.session().await?;
            let nodes: Vec<Named> = self.get(&session, &["nodes"]).await?;
            Ok::<_, String>((session.base, nodes.len()))
        };
        Some(match asked.await {
            Ok((url, nodes)) => Preflight::Good(format!(
                "{name}: StorageOS at {url}, with {nodes} nodes, is asked for the masters of volumes"
            )),
            Err(why) => Preflight::Warning(
                format!("{name}: whether volumes of StorageOS are healthy cannot be asked: {why}"),
                format!("mend the Secret {secret}: url, username, password, and ca.crt where it needs one"),
            ),
        })
    }
}

impl StorageOs<'_> {
    async fn master(&self, session: &Session, volume: &UsedVolume) -> Result<Option<Master>, String> {
        let namespaces: Vec<Named> = self.get(session, &["namespaces"]).await?;
        let named = namespaces.iter().find(|one| one.name == volume.namespace);
        let namespace = named.ok_or_else(|| format!("StorageOS has no namespace {}", volume.namespace))?;
        let volumes: Vec<Volume> = self
            .get(session, &["namespaces", &namespace.id, "volumes"])
            .await?;
        let found = volumes.into_iter().find(|one| one.name == volume.name);
        let found = found.ok_or_else(|| {
            format!(
                "StorageOS has no volume {} in namespace {}",
                volume.name, volume.namespace
            )
        })?;
        Ok(found.master)
    }

    async fn get<T: DeserializeOwned>(&self, session: &Session, path: &[&str]) -> Result<T, String> {
        let url = below(&session.base, path)?;
        let request = Request::new(Method::GET, url).header("authorization", session.authorization.clone());
        let reply = http::send(&session.client, request, self.until())
            .await
            .map_err(|why| away(&session.base, &why))?;
        match reply.status {
            StatusCode::OK => {
                let body = reply.json().and_then(|body| serde_json::from_value(body).ok());
                body.ok_or_else(|| {
                    let what = path.last().copied().unwrap_or_default();
                    format!(
                        "the {what} that StorageOS at {} names cannot be read",
                        session.base
                    )
                })
            }
            status => {
                // The next look logs in anew.
                *self.kept().lock() = None;
                Err(format!(
                    "StorageOS at {} answers HTTP {}",
                    session.base,
                    status.as_u16()
                ))
            }
        }
    }

    async fn session(&self) -> Result<Session, String> {
        let kept = self.kept().lock().clone();
        if let Some(kept) = kept.filter(|kept| kept.until > Instant::now()) {
            return Ok(kept);
        }
        let session = self.log_in().await?;
        *self.kept().lock() = Some(session.clone());
        Ok(session)
    }

    async fn log_in(&self) -> Result<Session, String> {
        let base = base(&self.value("url").await?)?;
        let (username, password) = (self.value("username").await?, self.value("password").await?);
        let client = client(self.find("ca.crt").await?)?;
        let request = Request::new(Method::POST, below(&base, &["auth", "login"])?)
            .json(&json!({ "username": username, "password": password }));
        let reply = http::send(&client, request, self.until())
            .await
            .map_err(|why| away(&base, &why))?;
        let given = reply.headers.get("authorization").cloned();
        match given.filter(|_| reply.status == StatusCode::OK) {
            Some(mut authorization) => {
                authorization.set_sensitive(true);
                let until = Instant::now() + LASTS;
                Ok(Session {
                    client,
                    base,
                    authorization,
                    until,
                })
            }
            // What it says in words may repeat the credentials.
            None => Err(format!(
                "StorageOS at {base} does not take username and password of the Secret {}: HTTP {}",
                self.secret(),
                reply.status.as_u16()
            )),
        }
    }

    async fn value(&self, key: &str) -> Result<String, String> {
        self.find(key).await?.ok_or_else(|| {
            format!(
                "the Secret {} in namespace {} has no key {key}",
                self.secret(),
                self.0.namespace()
            )
        })
    }

    async fn find(&self, key: &str) -> Result<Option<String>, String> {
        let (secret, namespace) = (self.secret(), self.0.namespace());
        match self.0.secret(secret, key).await {
            Ok(FoundSecret::Value(value)) => String::from_utf8(value).map(Some).map_err(|_| {
                format!("{key} of the Secret {secret} in namespace {namespace} is not UTF-8 text")
            }),
            Ok(FoundSecret::NoKey) => Ok(None),
            Ok(FoundSecret::NoSecret) => Err(format!(
                "there is no Secret {secret} in namespace {namespace} that says how StorageOS is reached"
            )),
            Err(error) => Err(error.to_string()),
        }
    }

    fn secret(&self) -> &str {
        &self.0.settings().volumes.storageos_secret
    }

    fn kept(&self) -> &Mutex<Option<Session>> {
        self.0.storageos()
    }

    fn until(&self) -> Instant {
        Instant::now() + self.0.settings().timeout
    }
}

fn client(ca: Option<String>) -> Result<Client, String> {
    let mut builder = http::builder();
    if let Some(ca) = ca {
        let certificates = Certificate::from_pem_bundle(ca.as_bytes());
        let certificates = certificates.map_err(|_| "ca.crt holds no certificate in PEM".to_owned())?;
        builder = builder.tls_certs_only(certificates);
    }
    http::build(builder)
}

/// Credentials in a URL would be shown with it.
fn base(text: &str) -> Result<Url, String> {
    let url = Url::parse(text.trim()).ok();
    let is_plain = |url: &Url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none()
            && url.path() == "/"
            && url.query().is_none()
    };
    url.filter(is_plain).ok_or_else(|| {
        "url of the Secret is not scheme, host and port alone, such as http://storageos.storageos.svc:5705".to_owned()
    })
}

/// No part of a path can lead elsewhere.
fn below(base: &Url, path: &[&str]) -> Result<Url, String> {
    let mut url = base.clone();
    url.path_segments_mut()
        .map_err(|()| format!("{base} has no paths"))?
        .clear()
        .push("v2")
        .extend(path);
    Ok(url)
}

fn away(base: &Url, why: &str) -> String {
    format!("StorageOS at {base} does not answer: {why}")
}
