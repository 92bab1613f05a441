//! Reading for the screen: when an event says that something has changed, and every few seconds.

use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::Happening;
use super::model::{Overview, Site};
use crate::client::view::Operation;
use crate::client::{Client, Request, Stream};
use crate::commands::session::views;
use crate::error::CliError;

/// Between two readings, at least and at most. Progress within an operation is no event.
const AT_LEAST: Duration = Duration::from_millis(700);
const AT_MOST: Duration = Duration::from_secs(3);
/// Operations of one status that are read at most.
const OPERATIONS: usize = 200;

/// What is to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The site.
    Overview,
    /// One operation, by its id.
    Operation(String),
}

/// What was read.
#[derive(Debug)]
pub enum Reading {
    Site(Box<Site>),
    Operation(Box<Operation>),
    /// Nothing could be read.
    Fault(CliError),
}

/// Reads until it is dropped.
pub struct Feed {
    wanted: watch::Sender<Wanted>,
    _reading: AbortOnDropHandle<()>,
}

impl Feed {
    pub fn start(client: Client, wanted: Wanted, send: mpsc::Sender<Happening>) -> Self {
        let (sender, receiver) = watch::channel(wanted);
        let reading = tokio::spawn(follow(client, receiver, send));
        Self {
            wanted: sender,
            _reading: AbortOnDropHandle::new(reading),
        }
    }

    /// Reads this from now on.
    pub fn want(&self, wanted: Wanted) {
        self.wanted.send_replace(wanted);
    }
}

async fn follow(client: Client, mut wanted: watch::Receiver<Wanted>, send: mpsc::Sender<Happening>) {
    loop {
        let now = wanted.borrow_and_update().clone();
        let reading = read(&client, &now).await;
        if send.send(Happening::Read(Box::new(reading))).await.is_err() {
            return;
        }
        let something = async {
            sleep(AT_LEAST).await;
            // Until the next event; if the stream cannot be had, until the time is up.
            match client.stream(None, None).await {
                Ok(mut stream) => drop(next_event(&mut stream).await),
                Err(_) => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = timeout(AT_MOST, something) => {}
            changed = wanted.changed() => if changed.is_err() { return },
        }
    }
}

/// The first piece of a stream says where it begins; what follows is an event.
async fn next_event(stream: &mut Stream) -> Result<(), CliError> {
    for _ in 0..2 {
        stream.chunk().await?;
    }
    Ok(())
}

/// Reads once.
pub async fn read(client: &Client, wanted: &Wanted) -> Reading {
    let read = match wanted {
        Wanted::Overview => site(client).await.map(|site| Reading::Site(Box::new(site))),
        Wanted::Operation(id) => {
            let operation = get(client, &["operations", id]).await;
            operation.map(|operation| Reading::Operation(Box::new(operation)))
        }
    };
    read.unwrap_or_else(Reading::Fault)
}

async fn site(client: &Client) -> Result<Site, CliError> {
    let of = async |status: &str| {
        let query = [("status", Some(status.to_owned()))];
        let all = client.collect("operations", &query, OPERATIONS).await?;
        views::<Operation>(&all, "operations")
    };
    Ok(Site {
        overview: get::<Overview>(client, &["overview"]).await?,
        waiting: of("needs_operator").await?,
        running: of("running").await?,
        held: of("held").await?,
    })
}

async fn get<T: DeserializeOwned>(client: &Client, path: &[&str]) -> Result<T, CliError> {
    client.send(Request::get(path)).await?.view()
}

/// The id of a host's newest operation.
pub async fn newest_operation(client: &Client, host: &str) -> Result<String, CliError> {
    let query = [
        ("host", Some(host.to_owned())),
        ("sort", Some("created_at:desc".to_owned())),
    ];
    let all = client.collect("operations", &query, 1).await?;
    let newest = views::<Operation>(&all, "operations")?.into_iter().next();
    let none = || CliError::Usage(format!("host {host} has had no operation; leave --host out"));
    newest.map(|operation| operation.id).ok_or_else(none)
}
