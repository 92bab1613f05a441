//! Asking before acting (S5), and showing a sign of life while acting.

use std::time::Duration;

use ringfence_bus::{Audience, BusError, ClaimReply, ClaimRequest, Queue};
use ringfence_core::Claim;
use tokio::time::{Instant, sleep};

use super::context::Context;

/// How long one answer is waited for.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a claim is asked that gets no answer, and how far apart.
const ASKED: u32 = 3;
const PAUSE: Duration = Duration::from_millis(500);
/// How long a broker that is away is waited for. No attempt is granted for longer.
const BROKER_WAIT: Duration = Duration::from_secs(660);
/// The bounds of what an engine may say, so that no message makes a worker hang or spin.
const BUSY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(10));
const MIN_RENEWAL: Duration = Duration::from_millis(50);

/// What became of a claim.
pub(super) enum Claimed {
    /// Act, and have stopped before `until`.
    Granted { until: Instant, lease: Duration },
    /// The device takes another command at the moment.
    Busy(Duration),
    /// Do not act.
    Refused(String),
    /// Do not act. It may have been granted before, in an answer that was lost: the engine then waits for this worker in vain.
    TooLate(String),
    /// No engine answered.
    Unanswered(BusError),
}

/// Asks once, several times if need be. A claim that is asked again gets the answer that it got first.
pub(super) async fn claim(context: &Context, claim: &Claim, trace: &str) -> Claimed {
    let give_up = Instant::now() + BROKER_WAIT;
    let (mut asked, mut unheard) = (0, false);
    loop {
        // The time that is granted counts from before the question, since the engine's clock started somewhere after it.
        let before = Instant::now();
        let request = ClaimRequest::Claim(claim.clone());
        let error = match ask(context, &request, trace, ANSWER_TIMEOUT).await {
            Ok(ClaimReply::Granted { budget_ms, lease_ms }) => {
                return Claimed::Granted {
                    until: before + Duration::from_millis(budget_ms),
                    lease: Duration::from_millis(lease_ms),
                };
            }
            Ok(ClaimReply::Busy { retry_after_ms }) => {
                return Claimed::Busy(Duration::from_millis(retry_after_ms).clamp(BUSY.0, BUSY.1));
            }
            Ok(ClaimReply::Refused { why }) if unheard => return Claimed::TooLate(why),
            Ok(ClaimReply::Refused { why }) => return Claimed::Refused(why),
            Err(error) => error,
        };
        unheard = true;
        // While the broker is away no other engine can be asked either, and what was asked last may have been granted.
        if !matches!(error, BusError::Unavailable { .. }) {
            asked += 1;
        }
        if asked >= ASKED || context.stop.is_cancelled() || Instant::now() >= give_up {
            return Claimed::Unanswered(error);
        }
        sleep(PAUSE).await;
    }
}

/// Shows signs of life until one is refused; returns why. An engine that is away is no refusal: the granted time still holds.
pub(super) async fn renew_until_refused(
    context: &Context,
    claim: &Claim,
    trace: &str,
    lease: Duration,
) -> String {
    let every = (lease / 3).max(MIN_RENEWAL);
    loop {
        sleep(every).await;
        match ask(context, &ClaimRequest::Renew(claim.clone()), trace, every).await {
            Ok(ClaimReply::Refused { why }) => return why,
            Ok(ClaimReply::Granted { .. } | ClaimReply::Busy { .. }) => {}
            Err(error) => tracing::debug!(%error, "no answer to a sign of life"),
        }
    }
}

async fn ask(
    context: &Context,
    request: &ClaimRequest,
    trace: &str,
    timeout: Duration,
) -> Result<ClaimReply, BusError> {
    let message = context.seal(&Audience::Queue(Queue::Claims), request, Some(trace))?;
    let reply = context.bus.request(&Queue::Claims, &message, timeout).await?;
    context.open(&Audience::Reply(message.id), &reply)
}
