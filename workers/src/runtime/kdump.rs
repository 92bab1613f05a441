//! Listens for kdump messages, and tells engines from which addresses of hosts they came.
//!
//! Everything else is dropped here and counted: it reaches neither an engine nor a log. What is kept is bounded by the addresses that
//! hosts have.
//!
//! An engine has to know when a message was heard, and clocks of workers count for nothing. So engines say the time with the addresses, and the worker
//! counts on from that with its monotonic clock. What it reads from the socket may have lain there while the worker was halted: a message was heard
//! after the moment at which the socket was last seen empty, and nothing more is known of it.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use parking_lot::Mutex;
use ringfence_bus::{Audience, BusError, KdumpHeard, KdumpReply, KdumpRequest, Queue};
use ringfence_core::EngineTime;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

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
/// The socket is looked at so often, whether something has come or not.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// For how long the time is counted on without an engine: clocks run apart.
const TIME_KNOWN_FOR: Duration = Duration::from_secs(60);
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
    /// From these a message came that no engine was told of; after which moment the last one was heard.
    untold: BTreeMap<IpAddr, Option<EngineTime>>,
    /// The time that an engine has said, and when that had come here.
    time: Option<(EngineTime, Instant)>,
    /// When the socket was last seen empty.
    empty_at: Option<Instant>,
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
        let peeked = self.socket.try_clone();
        let (socket, peeked) = match (tokio::net::UdpSocket::from_std(self.socket), peeked) {
            (Ok(socket), Ok(peeked)) => (socket, peeked),
            (Err(error), _) | (_, Err(error)) => {
                return tracing::error!(%error, "kdump messages cannot be listened for");
            }
        };
        tracing::info!(address = %self.address, "listening for kdump messages");
        let heard = Mutex::new(Heard::default());
        let news = Notify::new();
        tokio::select! {
            () = context.stop.cancelled() => {}
            () = listen(&socket, &peeked, &context.metrics, &heard, &news) => {}
            () = follow_addresses(&context, &heard) => {}
            () = report(&context, &heard, &news) => {}
        }
    }
}

/// `peeked` is the socket once more.
async fn listen(
    socket: &tokio::net::UdpSocket,
    peeked: &UdpSocket,
    metrics: &Metrics,
    heard: &Mutex<Heard>,
    news: &Notify,
) {
    // One byte more than a message has shows what is longer.
    let mut buffer = [0; MESSAGE_BYTES + 1];
    loop {
        if let Some(empty_at) = seen_empty(peeked) {
            heard.lock().empty_at = Some(empty_at);
        }
        let Ok(read) = timeout(LOOK_EVERY, socket.recv_from(&mut buffer)).await else {
            continue;
        };
        let Ok((bytes, from)) = read else {
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

/// When nothing lay in the socket, if that is so now. The system is asked, since the runtime may not know yet of what has come.
fn seen_empty(socket: &UdpSocket) -> Option<Instant> {
    // Before the look: this process may be halted after it.
    let looked_at = Instant::now();
    let looked = socket.peek_from(&mut [0]);
    let is_empty = looked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
    is_empty.then_some(looked_at)
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
        let is_due = last.is_none_or(|last| now.saturating_duration_since(last) >= TOLD_AS_ONE);
        if is_due {
            *last = Some(now);
        }
        if is_due || self.untold.contains_key(&address) {
            let after = self.after(now);
            self.untold.insert(address, after);
        }
        true
    }

    /// After which moment that was heard which is read now, by the clock of an engine.
    fn after(&self, now: Instant) -> Option<EngineTime> {
        let ((time, came_at), empty_at) = (self.time?, self.empty_at?);
        let since = now.saturating_duration_since(came_at);
        let later = TimeDelta::from_std(empty_at.saturating_duration_since(came_at)).ok()?;
        let earlier = TimeDelta::from_std(came_at.saturating_duration_since(empty_at)).ok()?;
        (since < TIME_KNOWN_FOR).then(|| EngineTime {
            at: time.at + later - earlier,
            ..time
        })
    }

    fn take(&mut self) -> Vec<KdumpHeard> {
        let more = self.untold.keys().nth(REPORTED).copied();
        let more = more.map(|address| self.untold.split_off(&address));
        std::mem::replace(&mut self.untold, more.unwrap_or_default())
            .into_iter()
            .map(|(from, after)| KdumpHeard { from, after })
            .collect()
    }

    /// What was heard from those that are still there is kept.
    fn follow(&mut self, addresses: Vec<IpAddr>, time: Option<(EngineTime, Instant)>) {
        self.time = time;
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
            Ok((addresses, time)) => {
                heard.lock().follow(addresses, time);
                sleep(ASK_EVERY).await;
            }
            Err(error) => {
                tracing::debug!(%error, "no engine has told which addresses hosts have");
                sleep(ASK_FIRST).await;
            }
        }
    }
}

/// All addresses, and the time of the last answer with when it had come.
async fn addresses(context: &Context) -> Result<(Vec<IpAddr>, Option<(EngineTime, Instant)>), BusError> {
    let mut all = Vec::new();
    loop {
        let after = all.last().copied();
        let (more, time) = match ask(context, &KdumpRequest::Addresses { after }).await? {
            KdumpReply::Addresses { addresses, time } => (addresses, Some((time, Instant::now()))),
            KdumpReply::Taken => (Vec::new(), None),
        };
        if more.is_empty() || all.len() + more.len() > MAX_ADDRESSES {
            return Ok((all, time));
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
            let messages = heard.lock().take();
            if messages.is_empty() {
                break;
            }
            if let Err(error) = ask(context, &KdumpRequest::Seen { messages }).await {
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
        heard.follow(vec![address], None);
        assert!(heard.hear(address, now) && heard.hear(address, now));
        let from = |told: Vec<KdumpHeard>| told.into_iter().map(|heard| heard.from).collect::<Vec<_>>();
        assert_eq!(from(heard.take()), [address]);
        heard.follow(vec![address], None);
        assert!(heard.hear(address, now));
        assert!(heard.take().is_empty(), "it was told just now");
        assert!(heard.hear(address, now + TOLD_AS_ONE));
        assert_eq!(from(heard.take()), [address]);
    }

    #[test]
    fn a_message_was_heard_after_the_socket_was_last_seen_empty_by_the_time_that_an_engine_has_said() {
        let address: IpAddr = "192.0.2.1".parse().unwrap();
        let noon: chrono::DateTime<chrono::Utc> = "2030-01-01T12:00:00Z".parse().unwrap();
        let time = EngineTime {
            at: noon,
            clock_set_at: Some(noon),
        };
        let s = Duration::from_secs;
        let mut heard = Heard::default();
        heard.follow(vec![address], None);
        let start = Instant::now() + s(100);
        let mut after = |time, empty_at, now| {
            heard.time = time;
            heard.empty_at = empty_at;
            heard.hear(address, now);
            heard.take()[0].after
        };
        let said = Some((time, start));
        assert_eq!(after(None, Some(start), start), None);
        assert_eq!(after(said, None, start + s(10)), None);
        // It may have lain there since then, however late it is read.
        let lain = after(said, Some(start + s(2)), start + s(50)).unwrap();
        assert_eq!(lain.at, noon + TimeDelta::seconds(2));
        assert_eq!(lain.clock_set_at, Some(noon));
        let before = after(said, Some(start - s(30)), start + s(55)).unwrap();
        assert_eq!(before.at, noon - TimeDelta::seconds(30));
        // The worker's clock has run on by itself for too long.
        assert_eq!(after(said, Some(start + s(60)), start + s(61)), None);
    }
}
