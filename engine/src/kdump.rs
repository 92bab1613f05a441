//! kdump messages that workers have heard: whose they are, and what follows.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use ringfence_bus::{Audience, BusError, Delivery, KdumpHeard, KdumpReply, KdumpRequest, Queue};
use ringfence_core::{EngineTime, HostId, Input, KDUMP, KdumpAddresses, error_chain};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{Context, Engine, EngineError, intake};

/// How long it is remembered which addresses hosts have.
const KNOWN_FOR: Duration = Duration::from_secs(10);
/// Addresses of one answer: no more fit into a message.
const AT_MOST: usize = 4_000;
/// Hosts of one request that are decided upon at a time.
const AT_ONCE: usize = 64;

/// What this engine knows of the addresses of hosts, and since when.
#[derive(Default)]
pub(crate) struct Known(Mutex<Option<(Instant, Arc<KdumpAddresses>)>>);

/// Answers workers that listen for kdump messages until it is stopped.
pub(crate) async fn messages(engine: Engine, stop: CancellationToken) {
    intake::serve(engine, Queue::Kdump, stop, |engine, delivery| async move {
        answer(&engine, delivery).await;
    })
    .await;
}

async fn answer(engine: &Engine, delivery: Delivery) {
    let Delivery {
        message,
        reply_to,
        settle,
        ..
    } = delivery;
    let request = match engine.0.keys.open(&Audience::Queue(Queue::Kdump), &message) {
        Ok(request) => request,
        Err(error) => return intake::refuse_unread(engine, error, settle).await,
    };
    match reply(engine, request).await {
        Ok(reply) => {
            let audience = Audience::Reply(message.id);
            let sent = match (engine.0.keys.seal(Uuid::new_v4(), &audience, &reply), reply_to) {
                (Ok(answer), Some(to)) => engine.0.bus.respond(&to, &message, &answer).await,
                (Ok(_), None) => Ok(()),
                (Err(error), _) => Err(error),
            };
            log_unless(sent);
        }
        // The worker asks again, and the host sends another message.
        Err(error) => tracing::warn!(error = %error_chain(&error), "a kdump message could not be taken down"),
    }
    intake::settle_quietly(settle.ack().await);
}

fn log_unless(sent: Result<(), BusError>) {
    if let Err(error) = sent {
        tracing::debug!(error = %error_chain(&error), "a worker that listens for kdump messages could not be answered");
    }
}

async fn reply(engine: &Engine, request: KdumpRequest) -> Result<KdumpReply, EngineError> {
    let known = engine.kdump_addresses().await?;
    match request {
        KdumpRequest::Addresses { after } => Ok(KdumpReply::Addresses {
            addresses: known.after(after, AT_MOST),
            time: engine.0.clock.time(),
        }),
        KdumpRequest::Seen { messages } => {
            let of_host = |heard: &KdumpHeard| Some((known.host(heard.from)?, heard.after));
            let mut hosts: Vec<(HostId, Option<EngineTime>)> =
                messages.iter().take(AT_MOST).filter_map(of_host).collect();
            // Of the addresses of one host the one that was heard last.
            hosts.sort_by_key(|(host, after)| (*host, Reverse(after.map(|after| after.at))));
            hosts.dedup_by_key(|(host, _)| *host);
            stream::iter(hosts)
                .for_each_concurrent(AT_ONCE, |(host, after)| take(engine, host, after))
                .await;
            Ok(KdumpReply::Taken)
        }
    }
}

async fn take(engine: &Engine, host: HostId, heard_after: Option<EngineTime>) {
    let by = Context::own(KDUMP);
    match engine.apply(host, Input::KdumpMessage { heard_after }, &by).await {
        Ok(_) | Err(EngineError::NotFound { .. }) => {}
        Err(error) => {
            tracing::warn!(%host, error = %error_chain(&error), "a kdump message could not be taken down");
        }
    }
}

impl Engine {
    /// Whose addresses are whose, as of a short time ago.
    async fn kdump_addresses(&self) -> Result<Arc<KdumpAddresses>, EngineError> {
        if let Some((at, known)) = self.0.kdump.0.lock().as_ref()
            && at.elapsed() < KNOWN_FOR
        {
            return Ok(Arc::clone(known));
        }
        let given = ringfence_db::given_for(&mut self.0.db.reader(), KDUMP).await?;
        let known = KdumpAddresses::new(given.iter().map(|(host, given)| (*host, given)));
        let known = Arc::new(known);
        *self.0.kdump.0.lock() = Some((Instant::now(), Arc::clone(&known)));
        Ok(known)
    }
}
