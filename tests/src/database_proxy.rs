//! A proxy before a PostgreSQL. The database carries out one statement, and the proxy closes the connection instead of passing on the
//! answer: as if the network were cut between a commit and its answer. A test cannot stop a real database at that moment.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use url::Url;

/// Runs until the runtime that started it ends.
pub struct DatabaseProxy {
    url: String,
    /// A text of the statement whose answer is dropped.
    marker: Arc<Mutex<Option<String>>>,
}

impl DatabaseProxy {
    /// Starts a proxy before the database of this URL.
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

    /// Drops the answer to the next statement that contains `marker`.
    pub fn hide(&self, marker: &str) {
        *self.marker.lock() = Some(marker.to_owned());
    }

    /// Whether such a statement has been sent.
    pub fn has_hidden(&self) -> bool {
        self.marker.lock().is_none()
    }
}

async fn pass(client: TcpStream, server: TcpStream, marker: Arc<Mutex<Option<String>>>) {
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let hidden = Arc::new(Notify::new());
    // The end of either connection closes both.
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

/// Whether this is the marked statement; true once only.
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
        // Notified only before the marked statement goes on, so that the next bytes are its answer: the database has committed.
        let is_hidden = tokio::time::timeout(std::time::Duration::ZERO, hidden.notified()).await;
        if is_hidden.is_ok() || to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
