//! A connection between two programs that can be cut, hang, or be slow.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use crate::error::CampaignError;

/// The state of the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// Bytes pass.
    #[default]
    Open,
    /// Connections are closed, and new ones refused.
    Cut,
    /// Connections stay open, and no byte passes.
    Deaf,
    /// Bytes pass with this delay.
    Slow(Duration),
}

/// A proxy. It ends when the value is dropped.
pub struct Proxy {
    address: SocketAddr,
    way: watch::Sender<Way>,
    target: Arc<Mutex<Option<SocketAddr>>>,
    until: Mutex<Option<Instant>>,
    _accepting: AbortOnDropHandle<()>,
}

impl Proxy {
    /// A proxy to a program whose address is known now or later.
    pub async fn to(target: Option<SocketAddr>) -> Result<Self, CampaignError> {
        let cannot = || CampaignError::system("listen for a proxy");
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(cannot())?;
        let address = listener.local_addr().map_err(cannot())?;
        let (way, heard) = watch::channel(Way::Open);
        let target = Arc::new(Mutex::new(target));
        let accepting = tokio::spawn(accept(listener, Arc::clone(&target), heard));
        Ok(Self {
            address,
            way,
            target,
            until: Mutex::default(),
            _accepting: AbortOnDropHandle::new(accepting),
        })
    }

    /// The proxy's address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes the target.
    pub fn lead_to(&self, target: Option<SocketAddr>) {
        *self.target.lock() = target;
    }

    /// Sets the state for a time.
    pub fn set(&self, way: Way, lasts: Duration) {
        *self.until.lock() = Some(Instant::now() + lasts);
        self.way.send_replace(way);
    }

    /// Opens the connection again when the time is over.
    pub fn look(&self) {
        let mut until = self.until.lock();
        if until.is_some_and(|until| until <= Instant::now()) {
            *until = None;
            self.way.send_replace(Way::Open);
        }
    }

    /// Opens the connection.
    pub fn heal(&self) {
        *self.until.lock() = None;
        self.way.send_replace(Way::Open);
    }
}

async fn accept(listener: TcpListener, target: Arc<Mutex<Option<SocketAddr>>>, way: watch::Receiver<Way>) {
    loop {
        let Ok((client, _)) = listener.accept().await else {
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        let known = *target.lock();
        let is_cut = *way.borrow() == Way::Cut;
        if let Some(known) = known.filter(|_| !is_cut) {
            tokio::spawn(pass(client, known, way.clone()));
        }
    }
}

async fn pass(client: TcpStream, target: SocketAddr, way: watch::Receiver<Way>) {
    let Ok(server) = TcpStream::connect(target).await else {
        return;
    };
    // Without this, every small message waits for the one before it.
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    // The end of either connection closes both.
    tokio::select! {
        () = carry(from_client, to_server, way.clone()) => {}
        () = carry(from_server, to_client, way.clone()) => {}
        () = until_cut(way) => {}
    }
}

async fn until_cut(mut way: watch::Receiver<Way>) {
    // An error means that the proxy has ended.
    let _ = way.wait_for(|way| *way == Way::Cut).await;
}

async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut way: watch::Receiver<Way>) {
    let mut bytes = vec![0; 1 << 15];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        let Ok(now) = way.wait_for(|way| *way != Way::Deaf).await.map(|way| *way) else {
            return;
        };
        if let Way::Slow(delay) = now {
            sleep(delay).await;
        }
        if to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
