//! `POST /nova/evacuate-check`: may this host's workloads be started elsewhere, or the host be told to be up? From the database.

use actix_web::{HttpResponse, web};
use ringfence_scheduler_hook::{Hook, Verdict};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ApiError;
use crate::auth::Caller;
use crate::body::Body;
use crate::error::ErrorList;
use crate::role::Role;

/// The longest of any name, in characters.
const MAX_CHARS: usize = 255;

/// What is about to be done; evacuate if it is not there
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    /// A workload of the host is to be started elsewhere.
    #[default]
    Evacuate,
    /// The host is to be taken for up again.
    Unforce,
}

/// The question.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EvacuateQuestion {
    /// By what name Ringfence knows the cloud
    #[schema(max_length = 255)]
    cloud: String,
    /// What the cloud calls the host; null, or not there, where the cloud itself does not know, and then the answer is no
    #[serde(default)]
    #[schema(max_length = 255)]
    host: Option<String>,
    /// Which server it is about; for the log
    #[serde(default)]
    #[schema(max_length = 255)]
    server: Option<String>,
    /// Which service it is about; for the log
    #[serde(default)]
    #[schema(max_length = 255)]
    service: Option<String>,
    #[serde(default)]
    #[schema(inline)]
    action: Action,
}

/// The answer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EvacuateAnswer {
    allowed: bool,
    /// For people
    reason: String,
    /// The host's generation; null where the host is not known
    generation: Option<u32>,
}

impl EvacuateQuestion {
    fn check(&self) -> Result<(), ApiError> {
        let fields = [
            ("cloud", Some(&self.cloud)),
            ("host", self.host.as_ref()),
            ("server", self.server.as_ref()),
            ("service", self.service.as_ref()),
        ];
        for (field, value) in fields {
            let chars = value.map_or(0, |value| value.chars().count());
            if chars > MAX_CHARS {
                let why = format!("has {chars} characters; at most {MAX_CHARS} are allowed");
                return Err(ApiError::bad(field, why));
            }
        }
        Ok(())
    }
}

/// May this host's workloads be started elsewhere, or the host be taken for up again?
///
/// Served by `ringfence scheduler-hook` and `ringfence standalone`. Answered from the database each time; 503 if that cannot be read. A
/// host that is not named, or that Ringfence does not know, may not be evacuated.
#[utoipa::path(post, path = "/nova/evacuate-check", operation_id = "check_evacuation", tag = "scheduler hook", request_body = EvacuateQuestion,
    responses((status = 200, body = EvacuateAnswer), (status = 400, body = ErrorList), (status = 401, body = ErrorList),
        (status = 403, body = ErrorList), (status = 415, body = ErrorList), (status = 503, body = ErrorList)))]
pub(crate) async fn check(
    hook: web::Data<Hook>,
    caller: Caller,
    body: Body<EvacuateQuestion>,
) -> Result<HttpResponse, ApiError> {
    caller.require(Role::Reader)?;
    let Body(question) = body;
    question.check()?;
    let verdict = decide(&hook, &question).await?;
    tracing::info!(
        cloud = question.cloud,
        host = question.host,
        server = question.server,
        service = question.service,
        action = ?question.action,
        allowed = verdict.allowed,
        reason = verdict.reason,
        "the hook was asked"
    );
    Ok(HttpResponse::Ok()
        .insert_header(("Cache-Control", "no-store"))
        .json(EvacuateAnswer {
            allowed: verdict.allowed,
            reason: verdict.reason,
            generation: verdict.generation.map(|generation| generation.0),
        }))
}

/// Where a server is, only its cloud knows. Without a host there is nothing that was proven to have stopped.
async fn decide(hook: &Hook, question: &EvacuateQuestion) -> Result<Verdict, ApiError> {
    let Some(host) = &question.host else {
        return Ok(Verdict {
            allowed: false,
            reason: "the cloud could not say which host it is about; try again when its database answers"
                .to_owned(),
            generation: None,
        });
    };
    Ok(match question.action {
        Action::Evacuate => hook.may_evacuate(&question.cloud, host).await?,
        Action::Unforce => hook.may_unforce(&question.cloud, host).await?,
    })
}
