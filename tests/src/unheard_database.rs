//! Stands before a PostgreSQL. One statement is carried out there, and whoever sent it hears nothing but the end of the connection: as
//! where a network is cut between a commit and its answer. A database that is stopped from outside never stops at that moment.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use url::Url;

/// Lives as long as the runtime that it was started on.
pub struct UnheardDatabase {
    url: String,
    /// What stands in the statement that nobody hears of.
    marker: Arc<Mutex<Option<String>>>,
}

impl UnheardDatabase {
    /// Before the database of this URL.
    pub async fn before(url: &str) -> Self {
        let mut url = Url::parse(url).unwrap();
        let database = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap_or(5432));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        url.set_host(Some("127.0.0.1")).unwrap();
        url.set_port(Some(listener.local_addr().unwrap().port())).unwrap();
        let marker = Arc::new(Mutex::new(None));
        let armed = Arc::clone(&marker);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&database).await.unwrap();
                tokio::spawn(pass(client, server, Arc::clone(&armed)));
            }
        });
        Self {
            url: url.into(),
            marker,
        }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// The next statement that holds this is not heard of.
    pub fn hide(&self, marker: &str) {
        *self.marker.lock() = Some(marker.to_owned());
    }

    /// Whether it has come.
    pub fn has_hidden(&self) -> bool {
        self.marker.lock().is_none()
    }
}

async fn pass(client: TcpStream, server: TcpStream, marker: Arc<Mutex<Option<String>>>) {
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let hidden = Arc::new(Notify::new());
    // Either end closes both.
    tokio::select! {
        () = ask(from_client, to_server, &marker, &hidden) => {}
        () = answer(from_server, to_client, &hidden) => {}
    }
}

async fn ask(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    marker: &Mutex<Option<String>>,
    hidden: &Notify,
) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        let part = &bytes[..count];
        if holds(part, marker) {
            hidden.notify_one();
        }
        if to.write_all(part).await.is_err() {
            return;
        }
    }
}

/// Whether it is the one; once.
fn holds(part: &[u8], marker: &Mutex<Option<String>>) -> bool {
    let mut marker = marker.lock();
    let is_in_it = |marker: &String| {
        part.windows(marker.len())
            .any(|window| window == marker.as_bytes())
    };
    if marker.as_ref().is_some_and(is_in_it) {
        *marker = None;
        return true;
    }
    false
}

async fn answer(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, hidden: &Notify) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        // It is told only before the statement goes on, so that what comes next is its answer: the database has committed.
        let is_hidden = tokio::time::timeout(std::time::Duration::ZERO, hidden.notified()).await;
        if is_hidden.is_ok() || to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
