//! One task as it was delivered: claim, act, report, let go.

use std::sync::Arc;
use std::time::Duration;

use ringfence_bus::{Audience, BusError, Delivery, Queue, Settle, TaskMessage};
use ringfence_core::{Claim, Job, TaskResult};
use tokio::time::{Instant, sleep, timeout};
use tracing::field::Empty;
use tracing::{Instrument, Span};
use uuid::Uuid;

use super::attempt::{ActingPermit, Attempt};
use super::claim::{Claimed, claim, renew_until_refused};
use super::context::Context;
use super::metrics::Metrics;
use super::{result, unless};
use crate::driver::Report;

/// How long a device is waited for before the engine is asked anyway, so that it knows of the wait. Shorter than the
/// engine waits for a claim.
const DEVICE_WAIT: Duration = Duration::from_secs(4);
/// How long a busy device is waited for; the engine gives the attempt up before.
const BUSY_WAIT: Duration = Duration::from_secs(660);
/// How long a task is kept whose claim no engine answered, before it goes back to the bus.
const UNANSWERED_PAUSE: Duration = Duration::from_secs(1);
/// What to do with a delivery.
pub(super) enum End {
    /// Say this, then let the task go.
    Report(Box<Report>),
    /// Let the task go: nothing was done.
    Drop,
    /// Another worker may try: nothing was done.
    Release,
    /// The driver cannot be stopped, so nothing may be said.
    Stuck,
}

pub(super) async fn handle(context: Arc<Context>, queue: Queue, delivery: Delivery) {
    let Delivery { message, settle, .. } = delivery;
    let Ok(task) = context.open::<TaskMessage>(&Audience::Queue(queue), &message) else {
        settled(settle.reject().await);
        return;
    };
    let claim_id = (context.new_id)();
    let from = message.trace_of(task.attempt);
    let trace = from.within(claim_id);
    // Of the highest level, so that a warning shows its fields whatever the log's level is.
    let span = tracing::error_span!(
        "attempt",
        trace_id = %trace.id(),
        span_id = %trace.span_id(),
        parent_id = %from.span_id(),
        operation_id = %task.attempt.operation_id,
        attempt = task.attempt.number,
        host = task.host,
        generation = task.generation.0,
        task = %task.job.kind(),
        method = task.job.by(),
        worker = context.config.name,
        outcome = Empty,
    );
    carry_out(&context, task, claim_id, &trace.to_string(), settle)
        .instrument(span)
        .await;
}

async fn carry_out(
    context: &Arc<Context>,
    task: TaskMessage,
    claim_id: Uuid,
    trace: &str,
    settle: Box<dyn Settle>,
) {
    let claim = Claim {
        host_id: task.host_id,
        attempt: task.attempt,
        generation: task.generation,
        kind: task.job.kind(),
        worker: context.config.name.clone(),
        claim_id,
    };
    match claim_and_act(context, &task, &claim, trace).await {
        End::Report(report) => {
            context.metrics.count_outcome(report.outcome);
            Span::current().record("outcome", report.outcome.as_str());
            tracing::info!(
                outcome = report.outcome.as_str(),
                detail = report.detail,
                "attempt ended"
            );
            let result = TaskResult {
                claim,
                outcome: report.outcome,
                observation: report.observation,
                finding: report.finding,
                detail: report.detail,
            };
            if result::publish(context, &result, trace).await {
                settled(settle.ack().await);
            } else {
                settled(settle.requeue().await);
            }
        }
        End::Drop | End::Stuck => settled(settle.ack().await),
        End::Release => settled(settle.requeue().await),
    }
}

/// A settlement that fails leaves the task on the bus: it comes again, and its claim is refused.
fn settled(result: Result<(), BusError>) {
    if let Err(error) = result {
        tracing::warn!(%error, "a delivery could not be settled");
    }
}

async fn claim_and_act(context: &Arc<Context>, task: &TaskMessage, asked: &Claim, trace: &str) -> End {
    let give_up = Instant::now() + BUSY_WAIT;
    loop {
        let Some(turn) = unless(&context.stop, wait_for_turn(context, task)).await else {
            return End::Release;
        };
        match claim(context, asked, trace).await {
            Claimed::Granted { until, lease } => {
                tracing::debug!("the claim was granted");
                let attempt = Attempt {
                    context: Arc::clone(context),
                    task: task.clone(),
                    until,
                    unanswered: Arc::default(),
                };
                return attempt
                    .carry_out(turn, renew_until_refused(context, asked, trace, lease))
                    .await;
            }
            Claimed::Refused(why) => {
                Metrics::count(&context.metrics.claims_refused);
                tracing::info!(why, "the claim was refused; nothing was done");
                return End::Drop;
            }
            Claimed::TooLate(why) => {
                Metrics::count(&context.metrics.claims_refused);
                return End::Report(Box::new(Report::unknown(format!(
                    "nothing was done: the first answer to the worker's claim was lost, and then {why}"
                ))));
            }
            Claimed::Unanswered(error) => {
                Metrics::count(&context.metrics.claims_unanswered);
                tracing::warn!(%error, "no engine answers the claim; the task goes back to its queue");
                sleep(UNANSWERED_PAUSE).await;
                return End::Release;
            }
            Claimed::Busy(pause) => {
                drop(turn);
                if Instant::now() + pause >= give_up {
                    return End::Drop;
                }
                if unless(&context.stop, sleep(pause)).await.is_none() {
                    return End::Release;
                }
            }
        }
    }
}

/// The device, where it takes one command at a time.
pub(super) fn device_of(job: &Job) -> Option<&str> {
    match job {
        Job::Fencing { method, .. } => method.device.as_deref(),
        Job::Step { .. } => None,
    }
}

/// `None` after a while, so that the engine can be asked and learns of the wait; it then answers that the device is busy.
async fn wait_for_turn(context: &Context, task: &TaskMessage) -> Option<ActingPermit> {
    let held = timeout(DEVICE_WAIT, context.locks.hold(device_of(&task.job)))
        .await
        .ok()?;
    ActingPermit::new(context, held).await
}
