//! Listens for kdump messages, and tells engines from which addresses of hosts they came.
//!
//! Everything else is dropped here and counted: it reaches neither an engine nor a log. What is kept is bounded by the addresses that
//! hosts have.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use ringfence_bus::{Audience, BusError, KdumpReply, KdumpRequest, Queue};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use super::context::Context;
use super::metrics::Metrics;
use crate::WorkerError;

/// What a message begins with, and its version; both are in the byte order of the host (fence-agents, `agents/kdump`).
const MAGIC: u32 = 0x1B30_2A40;
const VERSION: u32 = 1;
const MESSAGE_BYTES: usize = 8;
/// How long an engine is waited for.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Between two questions for the addresses of hosts; the first ones are asked for at shorter intervals.
const ASK_EVERY: Duration = Duration::from_secs(15);
const ASK_FIRST: Duration = Duration::from_secs(1);
/// Between two reports.
const REPORT_EVERY: Duration = Duration::from_millis(250);
/// Messages of one address that come closer together than this are told as one.
const TOLD_AS_ONE: Duration = Duration::from_secs(3);
/// Addresses of one report.
const REPORTED: usize = 256;
/// Addresses that are kept: 8 of each of 10,000 hosts, and as many again.
const MAX_ADDRESSES: usize = 160_000;

/// What is kept of the addresses of hosts.
#[derive(Default)]
struct Heard {
    /// When a message of each was last taken.
    known: BTreeMap<IpAddr, Option<Instant>>,
    /// From these a message came that no engine was told of.
    untold: BTreeSet<IpAddr>,
}

/// A bound socket.
pub(super) struct Listener {
    socket: UdpSocket,
    address: SocketAddr,
}

impl Listener {
    pub fn bind(address: SocketAddr) -> Result<Self, WorkerError> {
        let fault =
            |error| WorkerError::Configuration(format!("kdump: {address} cannot be listened at: {error}"));
        let socket = UdpSocket::bind(address).map_err(fault)?;
        socket.set_nonblocking(true).map_err(fault)?;
        let address = socket.local_addr().map_err(fault)?;
        Ok(Self { socket, address })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes messages until the worker is stopped.
    pub async fn run(self, context: Arc<Context>) {
        let socket = match tokio::net::UdpSocket::from_std(self.socket) {
            Ok(socket) => socket,
            Err(error) => return tracing::error!(%error, "kdump messages cannot be listened for"),
        };
        tracing::info!(address = %self.address, "listening for kdump messages");
        let heard = Mutex::new(Heard::default());
        let news = Notify::new();
        tokio::select! {
            () = context.stop.cancelled() => {}
            () = listen(&socket, &context.metrics, &heard, &news) => {}
            () = follow_addresses(&context, &heard) => {}
            () = report(&context, &heard, &news) => {}
        }
    }
}

async fn listen(socket: &tokio::net::UdpSocket, metrics: &Metrics, heard: &Mutex<Heard>, news: &Notify) {
    // One byte more than a message has shows what is longer.
    let mut buffer = [0; MESSAGE_BYTES + 1];
    loop {
        let Ok((bytes, from)) = socket.recv_from(&mut buffer).await else {
            // An error of one datagram, such as an answer that its sender is not there.
            sleep(Duration::from_millis(10)).await;
            continue;
        };
        if !is_message(&buffer[..bytes]) {
            Metrics::count(&metrics.kdump_unreadable);
        } else if heard.lock().hear(from.ip().to_canonical(), Instant::now()) {
            Metrics::count(&metrics.kdump_heard);
            news.notify_one();
        } else {
            Metrics::count(&metrics.kdump_foreign);
        }
    }
}

fn is_message(datagram: &[u8]) -> bool {
    let words = [MAGIC, VERSION];
    let little: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let big: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    datagram == little || datagram == big
}

impl Heard {
    /// `false` if no host has the address.
    fn hear(&mut self, address: IpAddr, now: Instant) -> bool {
        let Some(last) = self.known.get_mut(&address) else {
            return false;
        };
        if last.is_none_or(|last| now.saturating_duration_since(last) >= TOLD_AS_ONE) {
            *last = Some(now);
            self.untold.insert(address);
        }
        true
    }

    fn take(&mut self) -> Vec<IpAddr> {
        let more = self.untold.iter().nth(REPORTED).copied();
        let more = more.map(|address| self.untold.split_off(&address));
        std::mem::replace(&mut self.untold, more.unwrap_or_default())
            .into_iter()
            .collect()
    }

    /// What was heard from those that are still there is kept.
    fn replace(&mut self, addresses: Vec<IpAddr>) {
        let was = std::mem::take(&mut self.known);
        let last = |address| was.get(address).copied().flatten();
        self.known = addresses
            .iter()
            .map(|address| (*address, last(address)))
            .collect();
    }
}

/// Asks engines which addresses hosts have. While none answers, those that were known are kept.
async fn follow_addresses(context: &Context, heard: &Mutex<Heard>) {
    loop {
        match addresses(context).await {
            Ok(addresses) => {
                heard.lock().replace(addresses);
                sleep(ASK_EVERY).await;
            }
            Err(error) => {
                tracing::debug!(%error, "no engine has told which addresses hosts have");
                sleep(ASK_FIRST).await;
            }
        }
    }
}

async fn addresses(context: &Context) -> Result<Vec<IpAddr>, BusError> {
    let mut all = Vec::new();
    loop {
        let after = all.last().copied();
        let more = match ask(context, &KdumpRequest::Addresses { after }).await? {
            KdumpReply::Addresses { addresses } => addresses,
            KdumpReply::Taken => Vec::new(),
        };
        if more.is_empty() || all.len() + more.len() > MAX_ADDRESSES {
            return Ok(all);
        }
        all.extend(more);
    }
}

/// One report at a time, so that no number of messages is more work for an engine than it can do. One that is lost is made up for by the
/// next message of the host.
async fn report(context: &Context, heard: &Mutex<Heard>, news: &Notify) {
    loop {
        news.notified().await;
        sleep(REPORT_EVERY).await;
        loop {
            let addresses = heard.lock().take();
            if addresses.is_empty() {
                break;
            }
            if let Err(error) = ask(context, &KdumpRequest::Seen { addresses }).await {
                Metrics::count(&context.metrics.kdump_untold);
                tracing::debug!(%error, "no engine has taken down kdump messages");
            }
        }
    }
}

async fn ask(context: &Context, request: &KdumpRequest) -> Result<KdumpReply, BusError> {
    let message = context.seal(&Audience::Queue(Queue::Kdump), request, None)?;
    let reply = context
        .bus
        .request(&Queue::Kdump, &message, ANSWER_TIMEOUT)
        .await?;
    context.open(&Audience::Reply(message.id), &reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_in_either_byte_order_and_nothing_else_is_one() {
        assert!(is_message(&[0x40, 0x2a, 0x30, 0x1b, 1, 0, 0, 0]));
        assert!(is_message(&[0x1b, 0x30, 0x2a, 0x40, 0, 0, 0, 1]));
        let others: [&[u8]; 6] = [
            &[],
            &[0x40, 0x2a, 0x30, 0x1b, 1, 0, 0],
            &[0x40, 0x2a, 0x30, 0x1b, 1, 0, 0, 0, 0],
            &[0x40, 0x2a, 0x30, 0x1b, 2, 0, 0, 0],
            &[0x40, 0x2a, 0x30, 0x1b, 0, 0, 0, 1],
            &[0x1b, 0x30, 0x2a, 0x40, 1, 0, 0, 0],
        ];
        others
            .iter()
            .for_each(|other| assert!(!is_message(other), "{other:?}"));
    }

    #[test]
    fn messages_of_one_address_that_come_close_together_are_told_as_one() {
        let address: IpAddr = "192.0.2.1".parse().unwrap();
        let mut heard = Heard::default();
        let now = Instant::now();
        assert!(!heard.hear(address, now), "no host has it");
        heard.replace(vec![address]);
        assert!(heard.hear(address, now) && heard.hear(address, now));
        assert_eq!(heard.take(), [address]);
        heard.replace(vec![address]);
        assert!(heard.hear(address, now));
        assert!(heard.take().is_empty(), "it was told just now");
        assert!(heard.hear(address, now + TOLD_AS_ONE));
        assert_eq!(heard.take(), [address]);
    }
}
