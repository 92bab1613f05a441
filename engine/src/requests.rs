//! What the API asks of a host.

use std::collections::BTreeSet;

use chrono::SubsecRound;
use ringfence_core::{
    Boot, Generation, HostId, HostState, Input, Operation, OperationId, Problems, Reply, Report,
    ReportedCondition, Timestamp, check_conditions, validate_reason,
};
use ringfence_db::SeenHost;
use uuid::Uuid;

use crate::commit::Applied;
use crate::fence_request::FenceRequest;
use crate::host_plan::plan_missing;
use crate::ids::new_id;
use crate::{Context, Engine, EngineError};

/// The furthest into the future, in seconds, that an observer's clock may be before its report is refused.
const MAX_AHEAD_S: i64 = 300;
/// The longest name of an observer, and the longest boot id.
const MAX_SOURCE_CHARS: usize = 255;
/// The most methods of one confirmation of a release.
const MAX_RELEASED: usize = 72;

/// What a request to fence, rejoin or confirm came to.
#[derive(Clone, Debug)]
pub enum Operated {
    /// It is so already.
    Already(Box<HostState>),
    /// An operation began; the host is as it is with it.
    Started(OperationId, Box<HostState>),
    /// One that does it was running.
    Joined(OperationId, Box<HostState>),
}

/// As the database keeps it beside the report: one that is finer would be another time each time that it is read.
fn in_micros(report: Report) -> Report {
    let cut = |at: Timestamp| at.trunc_subsecs(6);
    Report {
        observed_at: cut(report.observed_at),
        last_seen_at: report.last_seen_at.map(cut),
        silent_since: report.silent_since.map(cut),
        boot: report.boot.map(|boot| Boot {
            booted_at: boot.booted_at.map(cut),
            ..boot
        }),
        ..report
    }
}

/// What a person says of a host that was fenced by hand.
#[derive(Clone, Copy, Debug)]
pub struct Word<'a> {
    /// The host's generation as the person saw it.
    pub generation: Generation,
    /// When the person said so.
    pub said_at: Timestamp,
    /// How it was made certain.
    pub reason: &'a str,
    /// Although the host is seen UP; admins only.
    pub override_up: bool,
}

impl Engine {
    /// Fences a host.
    pub async fn fence(&self, host: &str, reason: &str, by: &Context) -> Result<Operated, EngineError> {
        validate_reason(reason)?;
        let seen = self.see(host).await?;
        let plan = match self.host_plan(&seen).await? {
            Some(plan) => plan.freeze(&seen.state.host),
            None => Err(plan_missing(&seen.state.host)),
        };
        let request = FenceRequest::new(plan, reason, by);
        let applied = self.apply(seen, request.input, by).await;
        request.fault.told(applied).map(operated)
    }

    /// Records an admin's confirmation that applied fencing was released by hand, or is gone with its device.
    pub async fn confirm_released(
        &self,
        host: &str,
        generation: Generation,
        methods: BTreeSet<String>,
        reason: &str,
        by: &Context,
    ) -> Result<Applied, EngineError> {
        validate_reason(reason)?;
        check_released(&methods)?;
        let id = self.host_id_of(host).await?;
        let input = Input::ConfirmReleased {
            generation,
            methods,
            reason: reason.to_owned(),
            actor: by.actor(),
        };
        self.apply(id, input, by).await
    }

    /// Takes a person's word that a host was fenced by hand.
    pub async fn confirm(&self, host: &str, word: Word<'_>, by: &Context) -> Result<Applied, EngineError> {
        validate_reason(word.reason)?;
        let seen = self.see(host).await?;
        let input = Input::Confirm {
            operation_id: OperationId(new_id()),
            generation: word.generation,
            said_at: word.said_at,
            reason: word.reason.to_owned(),
            actor: by.actor(),
            override_up: word.override_up,
            sufficient_sets: self.sufficient_sets_of(&seen.state.host).await?,
        };
        self.apply(seen, input, by).await
    }

    /// Takes a host back.
    pub async fn rejoin(
        &self,
        host: &str,
        reason: &str,
        boot_confirmed: bool,
        by: &Context,
    ) -> Result<Operated, EngineError> {
        validate_reason(reason)?;
        let seen = self.see(host).await?;
        let input = Input::Rejoin {
            operation_id: OperationId(new_id()),
            reason: reason.to_owned(),
            actor: by.actor(),
            boot_confirmed,
            heeds_safeguards: by.heeds_safeguards,
        };
        Ok(operated(self.apply(seen, input, by).await?))
    }

    /// Starts the workloads of a FENCED host elsewhere.
    pub async fn evacuate(&self, host: &str, reason: &str, by: &Context) -> Result<Operated, EngineError> {
        validate_reason(reason)?;
        let seen = self.see(host).await?;
        let input = Input::Evacuate {
            operation_id: OperationId(new_id()),
            reason: reason.to_owned(),
            actor: by.actor(),
            heeds_safeguards: by.heeds_safeguards,
        };
        Ok(operated(self.apply(seen, input, by).await?))
    }

    /// Stops an operation.
    pub async fn cancel(
        &self,
        operation: Uuid,
        reason: &str,
        by: &Context,
    ) -> Result<Operation, EngineError> {
        validate_reason(reason)?;
        let known = self.operation_of(operation).await?;
        let input = Input::Cancel {
            operation_id: known.id,
            reason: reason.to_owned(),
            actor: by.actor(),
        };
        let applied = self.apply(known.host_id, input, by).await?;
        Ok(applied.state.operation.unwrap_or(known))
    }

    /// Tries again what failed in an operation that waits for an operator.
    pub async fn retry(&self, operation: Uuid, reason: &str, by: &Context) -> Result<Operation, EngineError> {
        validate_reason(reason)?;
        let known = self.operation_of(operation).await?;
        let input = Input::Retry {
            operation_id: known.id,
            reason: reason.to_owned(),
            actor: by.actor(),
        };
        let applied = self.apply(known.host_id, input, by).await?;
        Ok(applied.state.operation.unwrap_or(known))
    }

    /// Takes down what an observer saw.
    pub async fn report_failure_state(
        &self,
        host: &str,
        report: Report,
        by: &Context,
    ) -> Result<HostState, EngineError> {
        self.check_report(&report)?;
        let id = self.host_id_of(host).await?;
        let state = self.take_report(id, report, by).await?;
        self.fence_if_due(&state).await;
        Ok(state)
    }

    /// Takes down the conditions that a source has of the host now: all of them, or, where it says which are `over`, what is new.
    pub async fn report_conditions(
        &self,
        host: &str,
        source: &str,
        (conditions, over): (Vec<ReportedCondition>, Option<Vec<String>>),
        by: &Context,
    ) -> Result<HostState, EngineError> {
        let mut problems = Problems::default();
        check_text("source", source, &mut problems);
        check_conditions(&conditions, &mut problems);
        problems.into_result()?;
        let id = self.host_id_of(host).await?;
        let input = Input::Conditions {
            source: source.to_owned(),
            conditions,
            over,
        };
        let state = self.apply(id, input, by).await?.state;
        self.fence_if_due(&state).await;
        Ok(state)
    }

    pub(crate) async fn take_report(
        &self,
        host_id: HostId,
        report: Report,
        by: &Context,
    ) -> Result<HostState, EngineError> {
        let input = Input::FailureState {
            operation_id: OperationId(new_id()),
            report: in_micros(report),
        };
        Ok(self.apply(host_id, input, by).await?.state)
    }

    /// Strikes a source off that reports no more.
    pub async fn forget_source(
        &self,
        host: &str,
        source: &str,
        reason: &str,
        by: &Context,
    ) -> Result<HostState, EngineError> {
        validate_reason(reason)?;
        let id = self.host_id_of(host).await?;
        let input = Input::ForgetSource {
            source: source.to_owned(),
            reason: reason.to_owned(),
            actor: by.actor(),
        };
        let state = self.apply(id, input, by).await?.state;
        self.fence_if_due(&state).await;
        Ok(state)
    }

    pub(crate) fn check_report(&self, report: &Report) -> Result<(), Problems> {
        let mut problems = Problems::default();
        check_text("source", &report.source, &mut problems);
        if let Some(boot_id) = report.boot.as_ref().and_then(|boot| boot.id.as_ref()) {
            check_text("boot_id", boot_id, &mut problems);
        }
        let ahead_s = (report.observed_at - self.0.clock.now()).num_seconds();
        if ahead_s > MAX_AHEAD_S {
            problems.add(
                "observed_at",
                format!(
                    "is {}, {ahead_s} s ahead of this service's clock; at most {MAX_AHEAD_S} s are allowed",
                    report.observed_at
                ),
            );
        }
        if report.last_seen_at.is_some_and(|at| at > report.observed_at) {
            problems.add(
                "last_seen_at",
                "is later than observed_at; that moment or an earlier one is allowed",
            );
        }
        problems.into_result()
    }

    pub(crate) async fn state_of(&self, host: &str) -> Result<HostState, EngineError> {
        Ok(self.see(host).await?.state)
    }

    /// The host as it is, to change it unless another change comes first.
    pub(crate) async fn see(&self, host: &str) -> Result<SeenHost, EngineError> {
        ringfence_db::see_host(&mut self.0.db.reader_by_keys(), host)
            .await?
            .ok_or_else(|| EngineError::not_found("host", host))
    }

    pub(crate) async fn host_id_of(&self, host: &str) -> Result<HostId, EngineError> {
        match Uuid::parse_str(host) {
            Ok(id) => Ok(HostId(id)),
            Err(_) => Ok(self.state_of(host).await?.host.id),
        }
    }

    async fn operation_of(&self, id: Uuid) -> Result<Operation, EngineError> {
        ringfence_db::operation(&mut self.0.db.reader(), id)
            .await?
            .ok_or_else(|| EngineError::not_found("operation", id))
    }
}

/// What is wrong with the name of a source by itself.
pub fn check_source(source: &str) -> Result<(), EngineError> {
    let mut problems = Problems::default();
    check_text("source", source, &mut problems);
    Ok(problems.into_result()?)
}

fn check_text(field: &str, text: &str, problems: &mut Problems) {
    let is_long = text.chars().count() > MAX_SOURCE_CHARS;
    if text.is_empty() || is_long || text.chars().any(char::is_control) {
        problems.add(
            field,
            format!("1 to {MAX_SOURCE_CHARS} characters of plain text are allowed"),
        );
    }
}

fn check_released(methods: &BTreeSet<String>) -> Result<(), Problems> {
    let mut problems = Problems::default();
    if methods.is_empty() || methods.len() > MAX_RELEASED {
        problems.add(
            "methods",
            format!("names {} methods; 1 to {MAX_RELEASED} are allowed", methods.len()),
        );
    }
    problems.into_result()
}

fn operated(applied: Applied) -> Operated {
    match applied.answer {
        Reply::Started(id) => Operated::Started(id, Box::new(applied.state)),
        Reply::Joined(id) => Operated::Joined(id, Box::new(applied.state)),
        Reply::Done | Reply::AlreadySo | Reply::Granted { .. } | Reply::Ignored(_) => {
            Operated::Already(Box::new(applied.state))
        }
    }
}
