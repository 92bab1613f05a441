//! What is said of a change, under one set of names from the request to the worker: `trace_id`, `operation_id`, `attempt`, `host`,
//! `generation`, `request_id`.
//!
//! The spans only carry fields, so they are of the highest level: a warning shows them whatever `log.level` is. Nothing is recorded by
//! its `Debug` form: ids, names and words for programs only.

use ringfence_bus::{ClaimReply, Message};
use ringfence_core::{
    Claim, Decision, Effect, Event, EventKind, HostState, Input, OperationId, Refusal, Reply, TaskResult,
};
use serde_json::Value;
use tracing::Span;
use tracing::field::Empty;

use crate::Context;

/// The span of one change, and what is to be said of it.
pub(crate) struct ChangeLog {
    span: Span,
    /// The operation that the input names.
    named: Option<OperationId>,
    /// The span around this one says already which operation it is about.
    is_within_attempt: bool,
}

impl ChangeLog {
    pub fn new(input: &Input) -> Self {
        let (named, is_within_attempt) = named(input);
        let span = tracing::error_span!(
            "change",
            input = input_name(input),
            trace_id = Empty,
            operation_id = Empty,
            host = Empty,
            generation = Empty
        );
        Self {
            span,
            named,
            is_within_attempt,
        }
    }

    pub fn span(&self) -> Span {
        self.span.clone()
    }

    /// The input is refused; `state` is what it found.
    pub fn refused(&self, state: &HostState, refusal: &Refusal) {
        self.is_about(state);
        tracing::debug!(refusal = refusal.code(), why = %refusal, "refused");
    }

    /// The input would be granted, but its device is leased to another attempt.
    pub fn device_busy(&self, state: &HostState) {
        self.is_about(state);
        tracing::debug!("the device takes another command at the moment");
    }

    /// The input changes nothing.
    pub fn unchanged(&self, state: &HostState, answer: &Reply) {
        self.is_about(state);
        tracing::debug!(
            answer = answer_name(answer),
            why = ignored(answer),
            "nothing to change"
        );
    }

    /// The decision was committed.
    pub fn committed(&self, state: &HostState, answer: &Reply, told: &Told, by: &Context) {
        self.is_about(state);
        tracing::debug!(
            answer = answer_name(answer),
            why = ignored(answer),
            tasks = told.tasks,
            events = told.events.len(),
            "committed"
        );
        let said = self.operation(state);
        for event in &told.events {
            tell(event, said, by);
        }
    }

    fn operation(&self, state: &HostState) -> Option<OperationId> {
        self.named.or_else(|| state.operation.as_ref().map(|o| o.id))
    }

    fn is_about(&self, state: &HostState) {
        self.span.record("host", &state.host.name);
        self.span.record("generation", state.host.generation.0);
        if let Some(id) = self.operation(state).filter(|_| !self.is_within_attempt) {
            self.span.record("operation_id", tracing::field::display(id));
            self.span
                .record("trace_id", tracing::field::display(id.0.simple()));
        }
    }
}

/// What of a decision is told once it is committed.
pub(crate) struct Told {
    events: Vec<Event>,
    tasks: usize,
}

impl Told {
    pub fn of(decision: &Decision) -> Self {
        let mut told = Self {
            events: Vec::new(),
            tasks: 0,
        };
        for effect in &decision.effects {
            match effect {
                Effect::Event(event) => told.events.push(event.clone()),
                Effect::Dispatch(_) => told.tasks += 1,
                Effect::Note(_) => {}
            }
        }
        told
    }

    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }
}

/// The span of a worker's question; its trace is the one that came with the task.
pub(crate) fn claim(message: &Message, claim: &Claim, ask: &'static str) -> Span {
    let from = message.trace_of(claim.attempt);
    tracing::error_span!(
        "claim",
        ask,
        trace_id = %from.id(),
        parent_id = %from.span_id(),
        operation_id = %claim.attempt.operation_id,
        attempt = claim.attempt.number,
        generation = claim.generation.0,
        task = %claim.kind,
        worker = claim.worker,
    )
}

/// The span of a worker's result.
pub(crate) fn result(message: &Message, result: &TaskResult) -> Span {
    let claim = &result.claim;
    let from = message.trace_of(claim.attempt);
    tracing::error_span!(
        "result",
        trace_id = %from.id(),
        parent_id = %from.span_id(),
        operation_id = %claim.attempt.operation_id,
        attempt = claim.attempt.number,
        generation = claim.generation.0,
        task = %claim.kind,
        worker = claim.worker,
        outcome = result.outcome.as_str(),
    )
}

/// Says how a claim or a sign of life was answered.
pub(crate) fn answered(reply: &ClaimReply) {
    let (answer, why) = match reply {
        ClaimReply::Granted { .. } => ("granted", None),
        ClaimReply::Busy { .. } => ("busy", None),
        ClaimReply::Refused { why } => ("refused", Some(why)),
    };
    tracing::debug!(answer, why, "a worker was answered");
}

/// One event. What an operator has to know is told at info.
fn tell(event: &Event, said: Option<OperationId>, by: &Context) {
    let text = |field: &str| event.data.get(field).and_then(Value::as_str);
    let operation = text("operation_id").and_then(|id| id.parse::<OperationId>().ok());
    // An operation that made way for another is told with its own id, the other one by the span.
    let other = operation.filter(|operation| Some(*operation) != said);
    let operation_id = other.map(tracing::field::display);
    let trace_id = other.map(|id| tracing::field::display(id.0.simple()));
    macro_rules! line {
        ($level:ident) => {
            tracing::$level!(
                event = event.kind.as_str(),
                operation_id,
                trace_id,
                actor = by.actor,
                kind = text("kind"),
                reason = text("reason"),
                detail = text("detail"),
                failure_state = text("to"),
                source = text("source"),
                "{}",
                words(event.kind)
            )
        };
    }
    match event.kind {
        EventKind::HostFailureState
        | EventKind::HostCondition
        | EventKind::HostQuarantined
        | EventKind::HostQuarantineEnded
        | EventKind::HostAlarmBegan
        | EventKind::HostAlarmEnded
        | EventKind::HostKdumpBegan
        | EventKind::HostKdumpEnded
        | EventKind::HostSuspended
        | EventKind::HostResumed
        | EventKind::HostFenced
        | EventKind::HostUnfenced
        | EventKind::HostLeftOff
        | EventKind::OperationStarted
        | EventKind::OperationHeld
        | EventKind::OperationReleased
        | EventKind::OperationNeedsOperator
        | EventKind::OperationRestarted
        | EventKind::OperationSucceeded
        | EventKind::OperationCancelled
        | EventKind::WorkloadMoved
        | EventKind::WorkloadNotMoved
        | EventKind::SubscriptionDisabled => line!(info),
        EventKind::HostCreated
        | EventKind::HostUpdated
        | EventKind::HostDeleted
        | EventKind::OperationProof
        | EventKind::WorkloadMoving => line!(debug),
    }
}

fn words(kind: EventKind) -> &'static str {
    match kind {
        EventKind::HostCreated => "the host was added",
        EventKind::HostUpdated => "the host's description was changed",
        EventKind::HostDeleted => "the host was removed",
        EventKind::HostFailureState => "the host is seen in another failure state",
        EventKind::HostCondition => "a condition of the host stands, or is no more",
        EventKind::HostQuarantined => {
            "the host was fenced too often lately, and is taken back by a person alone"
        }
        EventKind::HostQuarantineEnded => "the host's quarantine is over",
        EventKind::HostAlarmBegan => "a problem of the host comes too often",
        EventKind::HostAlarmEnded => "the problem of the host does not come too often any more",
        EventKind::HostKdumpBegan => "the host writes a crash dump",
        EventKind::HostKdumpEnded => "the host writes its crash dump no more",
        EventKind::HostSuspended => "the host is suspended",
        EventKind::HostResumed => "the suspension of the host is over",
        EventKind::HostFenced => "the host is FENCED",
        EventKind::HostUnfenced => "the host is UNFENCED",
        EventKind::HostLeftOff => "the host may stay off",
        EventKind::OperationStarted => "the operation began",
        EventKind::OperationHeld => "safeguards hold the operation",
        EventKind::OperationReleased => "no safeguard holds the operation any more",
        EventKind::OperationProof => "one more proof was won",
        EventKind::OperationNeedsOperator => "the operation needs an operator",
        EventKind::OperationRestarted => "the operation tries again",
        EventKind::OperationSucceeded => "the operation succeeded",
        EventKind::OperationCancelled => "the operation was cancelled",
        EventKind::WorkloadMoving => "a workload is being started elsewhere",
        EventKind::WorkloadMoved => "a workload was moved",
        EventKind::WorkloadNotMoved => "a workload could not be moved",
        EventKind::SubscriptionDisabled => "the subscription was disabled",
    }
}

pub(crate) fn input_name(input: &Input) -> &'static str {
    match input {
        Input::Fence { .. } => "fence",
        Input::AutoFence { .. } => "auto_fence",
        Input::LookAgain { .. } => "look_again",
        Input::Confirm { .. } => "confirm",
        Input::Rejoin { .. } => "rejoin",
        Input::Evacuate { .. } => "evacuate",
        Input::ResumeEvacuation { .. } => "resume_evacuation",
        Input::BeginAnew { request, .. } => input_name(request),
        Input::Cancel { .. } => "cancel",
        Input::Retry { .. } => "retry",
        Input::ConfirmReleased { .. } => "confirm_released",
        Input::FailureState { .. } => "failure_state",
        Input::Conditions { .. } => "conditions",
        Input::ForgetSource { .. } => "forget_source",
        Input::Suspend { .. } => "suspend",
        Input::Resume { .. } => "resume",
        Input::BeginMoves { .. } => "begin_moves",
        Input::KdumpMessage { .. } => "kdump_message",
        Input::Claim(_) => "claim",
        Input::DeviceBusy(_) => "device_busy",
        Input::Renew(_) => "renew",
        Input::Result(_) => "result",
        Input::Tick { .. } => "tick",
    }
}

/// The operation that an input names, and whether it does so as a worker's word about an attempt.
fn named(input: &Input) -> (Option<OperationId>, bool) {
    match input {
        Input::Claim(claim) | Input::Renew(claim) | Input::DeviceBusy(claim) => {
            (Some(claim.attempt.operation_id), true)
        }
        Input::Result(result) => (Some(result.claim.attempt.operation_id), true),
        Input::Cancel { operation_id, .. } | Input::Retry { operation_id, .. } => {
            (Some(*operation_id), false)
        }
        // These bring the id of an operation that may or may not begin.
        Input::Fence { .. }
        | Input::AutoFence { .. }
        | Input::LookAgain { .. }
        | Input::Confirm { .. }
        | Input::Rejoin { .. }
        | Input::Evacuate { .. }
        | Input::ResumeEvacuation { .. }
        | Input::BeginAnew { .. }
        | Input::ConfirmReleased { .. }
        | Input::FailureState { .. }
        | Input::Conditions { .. }
        | Input::ForgetSource { .. }
        | Input::Suspend { .. }
        | Input::Resume { .. }
        | Input::BeginMoves { .. }
        | Input::KdumpMessage { .. }
        | Input::Tick { .. } => (None, false),
    }
}

pub(crate) fn answer_name(answer: &Reply) -> &'static str {
    match answer {
        Reply::Done => "done",
        Reply::AlreadySo => "already_so",
        Reply::Started(_) => "started",
        Reply::Joined(_) => "joined",
        Reply::Granted { .. } => "granted",
        Reply::Ignored(_) => "ignored",
    }
}

fn ignored(answer: &Reply) -> Option<&'static str> {
    match answer {
        Reply::Ignored(why) => Some(why),
        Reply::Done | Reply::AlreadySo | Reply::Started(_) | Reply::Joined(_) | Reply::Granted { .. } => None,
    }
}
