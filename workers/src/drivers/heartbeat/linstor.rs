//! The driver `linstor`: hosts whose satellites answer the controller of a LINSTOR.
//!
//! The controller keeps a status of its connection to each satellite, and has shown `ONLINE` for satellites that had been stopped. So the status is no sign of life. A sign of life
//! is an answer: the controller lists the free disks of a node (`GET /v1/physical-storage/NODE`) by asking its satellite, and keeps no such list. The answer is made after the
//! question, so that the sign of life is as new as the question.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::{StreamExt, TryStreamExt, stream};
use reqwest::{Client, Method};
use ringfence_backends::http::{self, Reply, Request};
use ringfence_core::{Declaration, FrozenMethod, Heartbeat, Parameter, Resource};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;
use url::Url;

use super::{Answer, HOST, Reads, Storage, are_seconds, needed, silent_after, unclear};
use crate::drivers::Entry;
use crate::drivers::tls::{self, ALLOWED_URL, CA_FILE, INSECURE, TOKEN, is_plain};
use crate::text::cut;
use crate::{Secrets, WorkerError};

const URL: &str = "url";
/// Nodes that are asked for at a time: an answer tells some kB of each.
const NODES_AT_ONCE: usize = 50;
/// Satellites that are asked side by side.
const SATELLITES_AT_ONCE: usize = 16;
/// Nodes with a satellite of their own. That of others runs beside the controller, and would answer for a host that is dead.
const WITH_SATELLITE: [&str; 2] = ["satellite", "combined"];
const OFFLINE: &str = "OFFLINE";

pub(in crate::drivers) static DRIVER: Entry = Entry {
    declaration: Declaration {
        name: "linstor",
        about: "hosts whose satellites answer the controller of a LINSTOR",
        resources: &[Resource::Heartbeat],
        parameters: &[
            Parameter::required(URL, "the URL of the controller, such as http://linstor.example:3370")
                .says_where()
                .allowing(ALLOWED_URL, is_plain),
            Parameter::optional(
                HOST,
                "the name of the host's node in LINSTOR, where that is not the name by which its platform knows it",
            )
            .or_of_host()
            .tells_apart()
            .allowing("a name without a slash is allowed", |name| {
                !name.is_empty() && !name.contains('/')
            }),
            CA_FILE,
            INSECURE,
            silent_after("60", "15 to 3600 is allowed", |text| are_seconds(text, 15)),
        ],
        secrets: &[TOKEN],
        others: None,
        place: None,
        lingers_s: 0,
        device: |_| None,
        can_prove: |_| false,
    },
    make: |settings| {
        Arc::new(Reads {
            storage: Linstor,
            clock: Arc::clone(&settings.clock),
        })
    },
};

struct Linstor;

#[async_trait]
impl Storage for Linstor {
    async fn read(
        &self,
        method: &FrozenMethod,
        secrets: &Secrets,
        hosts: &[String],
        until: Instant,
    ) -> Answer {
        let controller = Controller {
            client: tls::client(method)?,
            url: tls::parse(needed(&method.parameters, URL)?)?,
            secrets,
            until,
        };
        let nodes = controller.nodes(hosts).await?;
        let of = |host: &String| {
            let (host, controller, nodes) = (host.clone(), &controller, &nodes);
            async move {
                let heartbeat = controller.heartbeat(&host, nodes).await;
                (host, heartbeat)
            }
        };
        let asked: Vec<_> = hosts.iter().map(of).collect();
        Ok(stream::iter(asked)
            .buffer_unordered(SATELLITES_AT_ONCE)
            .collect()
            .await)
    }
}

/// A node as the controller lists it.
#[derive(Debug, Deserialize)]
struct Node {
    name: String,
    r#type: String,
    #[serde(default)]
    connection_status: String,
}

/// One controller, and how long it is waited for.
struct Controller<'a> {
    client: Client,
    url: Url,
    secrets: &'a Secrets,
    until: Instant,
}

impl Controller<'_> {
    /// Without hosts, whether it answers.
    async fn nodes(&self, hosts: &[String]) -> Result<Vec<Node>, WorkerError> {
        let no_hosts: &[String] = &[];
        let parts = hosts.chunks(NODES_AT_ONCE);
        let parts = parts.chain(hosts.is_empty().then_some(no_hosts));
        let asked: Vec<_> = parts.map(|part| self.part(part)).collect();
        let asked = stream::iter(asked).buffer_unordered(2);
        asked.try_concat().await
    }

    async fn part(&self, hosts: &[String]) -> Result<Vec<Node>, WorkerError> {
        let mut url = self.path(&["nodes"])?;
        let names = hosts.iter().map(|host| ("nodes", host));
        url.query_pairs_mut()
            .append_pair("limit", "50")
            .extend_pairs(names);
        let reply = self.get(url, self.until).await?;
        let nodes = reply.json().filter(|_| reply.status.is_success());
        nodes
            .and_then(|nodes| serde_json::from_value(nodes).ok())
            .ok_or_else(|| not_linstor(&reply))
    }

    async fn heartbeat(&self, host: &str, nodes: &[Node]) -> Heartbeat {
        let node = nodes.iter().find(|node| node.name.eq_ignore_ascii_case(host));
        let Some(node) = node else {
            return unclear(format!("LINSTOR has no node {host:?}"));
        };
        let kind = node.r#type.to_ascii_lowercase();
        if !WITH_SATELLITE.contains(&kind.as_str()) {
            return unclear(format!(
                "the node {host:?} of LINSTOR is a {}, which has no satellite of its own",
                cut(&kind)
            ));
        }
        if node.connection_status == OFFLINE {
            return Heartbeat::Unheard;
        }
        match self.asks_satellite(&node.name).await {
            Ok(()) => Heartbeat::Heard {
                by: format!("the satellite of {} has answered", node.name),
                within_s: 0,
            },
            Err(why) => unclear(format!(
                "LINSTOR shows {}, and the satellite has not answered: {why}",
                cut(&node.connection_status)
            )),
        }
    }

    /// One that has answered by now has done so after it was asked.
    async fn asks_satellite(&self, node: &str) -> Result<(), WorkerError> {
        // The answers of others are told, even where one does not come.
        let left = self.until.saturating_duration_since(Instant::now());
        let reply = self
            .get(
                self.path(&["physical-storage", node])?,
                Instant::now() + left * 3 / 4,
            )
            .await?;
        let is_list = reply.json().as_ref().is_some_and(Value::is_array);
        (reply.status.as_u16() == 200 && is_list)
            .then_some(())
            .ok_or_else(|| not_linstor(&reply))
    }

    fn path(&self, parts: &[&str]) -> Result<Url, WorkerError> {
        let mut url = self.url.clone();
        url.path_segments_mut()
            .map_err(|()| WorkerError::refused("the url cannot have a path"))?
            .pop_if_empty()
            .push("v1")
            .extend(parts);
        Ok(url)
    }

    async fn get(&self, url: Url, until: Instant) -> Result<Reply, WorkerError> {
        let request = tls::with_token(Request::new(Method::GET, url), self.secrets)?;
        http::send(&self.client, request, until)
            .await
            .map_err(WorkerError::unclear)
    }
}

fn not_linstor(reply: &Reply) -> WorkerError {
    let said: String = cut(&reply.words()).chars().take(200).collect();
    match reply.status.as_u16() {
        401 | 403 => WorkerError::refused(said),
        status if reply.status.is_redirection() => {
            WorkerError::unclear(format!("it answers HTTP {status}; redirects are not followed"))
        }
        _ => WorkerError::unclear(format!("it answers otherwise than LINSTOR does: {said}")),
    }
}
