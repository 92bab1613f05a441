//! Claims and results from workers.

use std::sync::Arc;
use std::time::Duration;

use backon::{ConstantBuilder, Retryable};
use ringfence_bus::{
    Audience, BusError, ClaimReply, ClaimRequest, Delivery, Message, Queue, ReplyTo, Settle,
};
use ringfence_core::{Claim, HostId, Input, Reply, TaskResult, error_chain};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;
use uuid::Uuid;

use crate::commit::Tried;
use crate::destinations;
use crate::{Applied, Context, Engine, EngineError, log};

/// Milliseconds after which a worker asks again for a device that is busy.
const BUSY_RETRY_MS: u64 = 250;
/// How a result is tried again while the database is away.
const RESULT_AGAIN: ConstantBuilder = ConstantBuilder::new()
    .with_delay(Duration::from_secs(2))
    .with_max_times(30);
/// How long to wait before serving a queue is tried again.
const SERVE_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Answers claims and signs of life until it is stopped.
pub(crate) async fn claims(engine: Engine, stop: CancellationToken) {
    serve(engine, Queue::Claims, stop, |engine, delivery| async move {
        answer_claim(&engine, delivery).await
    })
    .await;
}

/// Takes results until it is stopped.
pub(crate) async fn results(engine: Engine, stop: CancellationToken) {
    serve(engine, Queue::Results, stop, |engine, delivery| async move {
        take_result(&engine, delivery).await
    })
    .await;
}

pub(crate) async fn serve<F, D>(engine: Engine, queue: Queue, stop: CancellationToken, deal: D)
where
    D: Fn(Engine, Delivery) -> F + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let prefetch = engine.0.config.prefetch;
    let at_once = Arc::new(Semaphore::new(usize::from(prefetch)));
    while !stop.is_cancelled() {
        let mut deliveries = match engine.0.bus.consume(&queue, prefetch).await {
            Ok(deliveries) => deliveries,
            Err(error) => {
                tracing::warn!(%queue, error = %error_chain(&error), "the queue cannot be served yet");
                pause(&stop).await;
                continue;
            }
        };
        loop {
            let delivery = tokio::select! {
                () = stop.cancelled() => None,
                delivery = deliveries.recv() => delivery,
            };
            let Some(delivery) = delivery else { break };
            let Ok(permit) = Arc::clone(&at_once).acquire_owned().await else {
                return;
            };
            let work = deal(engine.clone(), delivery);
            tokio::spawn(async move {
                work.await;
                drop(permit);
            });
        }
        if !stop.is_cancelled() {
            pause(&stop).await;
        }
    }
    // What is being dealt with is finished before the loop counts as stopped.
    let _ = at_once.acquire_many(u32::from(prefetch)).await;
}

async fn pause(stop: &CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = tokio::time::sleep(SERVE_AGAIN_AFTER) => {}
    }
}

async fn answer_claim(engine: &Engine, delivery: Delivery) {
    let Delivery {
        message,
        reply_to,
        settle,
        ..
    } = delivery;
    let request: ClaimRequest = match engine.0.keys.open(&Audience::Queue(Queue::Claims), &message) {
        Ok(request) => request,
        Err(error) => return refuse_unread(engine, error, settle).await,
    };
    let span = match &request {
        ClaimRequest::Claim(claim) => log::claim(&message, claim, "claim"),
        ClaimRequest::Renew(claim) => log::claim(&message, claim, "renew"),
    };
    answer_read(engine, request, &message, reply_to, settle)
        .instrument(span)
        .await;
}

async fn answer_read(
    engine: &Engine,
    request: ClaimRequest,
    message: &Message,
    reply_to: Option<ReplyTo>,
    settle: Box<dyn Settle>,
) {
    let is_new = matches!(request, ClaimRequest::Claim(_));
    let reply = match decide_claim(engine, request).await {
        Ok(reply) => reply,
        Err(error) => {
            // The worker asks again, or another one does; an answer that is not known must not be made up.
            tracing::warn!(error = %error_chain(&error), "a claim could not be decided");
            settle_quietly(settle.ack().await);
            return;
        }
    };
    log::answered(&reply);
    engine.0.metrics.count_claim(is_new, &reply);
    if let Some(to) = reply_to {
        let audience = Audience::Reply(message.id);
        let sent = match engine.0.keys.seal(Uuid::new_v4(), &audience, &reply) {
            Ok(answer) => engine.0.bus.respond(&to, message, &answer).await,
            Err(error) => Err(error),
        };
        if let Err(error) = sent {
            tracing::warn!(error = %error_chain(&error), "a claim could not be answered; the worker will ask again");
        }
    }
    settle_quietly(settle.ack().await);
}

pub(crate) async fn decide_claim(engine: &Engine, request: ClaimRequest) -> Result<ClaimReply, EngineError> {
    let (claim, is_new) = match request {
        ClaimRequest::Claim(claim) => (claim, true),
        ClaimRequest::Renew(claim) => (claim, false),
    };
    let by = Context::own(&claim.worker);
    let host_id = claim.host_id;
    let input = if is_new {
        Input::Claim(claim.clone())
    } else {
        Input::Renew(claim.clone())
    };
    let decided = match engine.try_apply(host_id, input, &by).await {
        Ok(Tried::Applied(applied)) => {
            engine.0.task_queues.moved(&applied.state, &claim);
            Ok(reply(applied.answer))
        }
        Ok(Tried::DeviceBusy) if is_new => wait_for_device(engine, claim, &by).await,
        Ok(Tried::DeviceBusy) => Ok(ClaimReply::Refused {
            why: "its device was given to another command when its lease had run out".to_owned(),
        }),
        Err(error) => Err(error),
    };
    match decided {
        Err(EngineError::Refused(refusal)) => {
            engine
                .audit_refusal(host_id, &by, "claim.refused", &refusal)
                .await;
            Ok(ClaimReply::Refused {
                why: refusal.to_string(),
            })
        }
        Err(EngineError::NotFound { .. }) => Ok(ClaimReply::Refused {
            why: "there is no such host".to_owned(),
        }),
        decided => decided,
    }
}

/// Lets the attempt wait longer for its claim. What has changed since the claim was decided may refuse that.
async fn wait_for_device(engine: &Engine, claim: Claim, by: &Context) -> Result<ClaimReply, EngineError> {
    engine.apply(claim.host_id, Input::DeviceBusy(claim), by).await?;
    Ok(ClaimReply::Busy {
        retry_after_ms: BUSY_RETRY_MS,
    })
}

fn reply(answer: Reply) -> ClaimReply {
    match answer {
        Reply::Granted { budget_ms, lease_ms } => ClaimReply::Granted { budget_ms, lease_ms },
        Reply::Done | Reply::AlreadySo | Reply::Started(_) | Reply::Joined(_) | Reply::Ignored(_) => {
            ClaimReply::Refused {
                why: "it was not granted".to_owned(),
            }
        }
    }
}

async fn take_result(engine: &Engine, delivery: Delivery) {
    let Delivery { message, settle, .. } = delivery;
    let result: TaskResult = match engine.0.keys.open(&Audience::Queue(Queue::Results), &message) {
        Ok(result) => result,
        Err(error) => return refuse_unread(engine, error, settle).await,
    };
    let span = log::result(&message, &result);
    take_read(engine, result, settle).instrument(span).await;
}

async fn take_read(engine: &Engine, result: TaskResult, settle: Box<dyn Settle>) {
    let by = Context::own(&result.claim.worker);
    let host_id = result.claim.host_id;
    let result = destinations::looked_up(engine, result).await;
    match apply_patiently(engine, host_id, result, &by).await {
        Ok(applied) => {
            if let Reply::Ignored(why) = applied.answer {
                tracing::info!(host = applied.state.host.name, why, "a result changes nothing");
            }
            settle_quietly(settle.ack().await);
        }
        Err(EngineError::Refused(refusal)) => {
            engine
                .audit_refusal(host_id, &by, "result.refused", &refusal)
                .await;
            settle_quietly(settle.ack().await);
        }
        Err(EngineError::NotFound { .. }) => settle_quietly(settle.ack().await),
        Err(error) => {
            tracing::warn!(%host_id, error = %error_chain(&error), "a result could not be taken; it comes again");
            settle_quietly(settle.requeue().await);
        }
    }
}

/// A result waits for a database that restarts: returned to the broker, it would be delivered again at once, and soon too often.
async fn apply_patiently(
    engine: &Engine,
    host_id: HostId,
    result: TaskResult,
    by: &Context,
) -> Result<Applied, EngineError> {
    (|| engine.apply(host_id, Input::Result(result.clone()), by))
        .retry(RESULT_AGAIN)
        .when(EngineError::is_passing)
        .await
}

pub(crate) async fn refuse_unread(engine: &Engine, error: BusError, settle: Box<dyn Settle>) {
    engine.0.metrics.count_refused_message(&error);
    tracing::warn!(error = %error_chain(&error), "a message was refused unread");
    settle_quietly(settle.reject().await);
}

/// A delivery that cannot be settled comes again, which every input allows for.
pub(crate) fn settle_quietly(settled: Result<(), BusError>) {
    if let Err(error) = settled {
        tracing::debug!(error = %error_chain(&error), "a delivery could not be settled and will come again");
    }
}
