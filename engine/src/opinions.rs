//! Asks others before a fence begins by itself: what it would cost the storage that the segment names, and what the queries that it names say.
//!
//! They may take their time, and what is decided by time does not wait for them: a host that waits for their answer is asked about beside it.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::future::{join, join_all};
use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use ringfence_bus::{DeviceReply, DeviceRequest, QueryRequest, SurveyRequest};
use ringfence_core::{
    Answer, Cause, CephSurvey, FrozenMethod, Host, HostId, HostState, Method, Observation, ObservedState,
    Operation, Opinions, Question, error_chain, value_of,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::devices::{MethodCheck, WAY, no_answer};
use crate::{Engine, EngineError};

/// Hosts that others are asked about side by side.
const AT_ONCE: usize = 8;
/// Hosts that wait for that; the time of any other comes again.
const WAITING: usize = 1_000;
/// How long an answer is waited for, whatever the method says.
const LONGEST: Duration = Duration::from_secs(15);
/// FENCED hosts, and hosts that are being fenced, that one question names.
const MOST_GONE: u32 = 500;

/// Hosts that others are to be asked about.
pub(crate) struct Asking {
    hosts: Mutex<HashSet<HostId>>,
    line: mpsc::Sender<HostId>,
    /// Until the loop takes it.
    end: Mutex<Option<mpsc::Receiver<HostId>>>,
}

impl Asking {
    pub fn new() -> Self {
        let (line, end) = mpsc::channel(WAITING);
        Self {
            hosts: Mutex::default(),
            line,
            end: Mutex::new(Some(end)),
        }
    }

    /// Has others asked about the host, unless that is under way.
    pub fn want(&self, host: HostId) {
        if self.hosts.lock().insert(host) && self.line.try_send(host).is_err() {
            self.hosts.lock().remove(&host);
        }
    }
}

/// Asks about hosts as they come, and has them decided upon.
pub(crate) async fn ask(engine: Engine, stop: CancellationToken) {
    let Some(mut hosts) = engine.0.asking.end.lock().take() else {
        return;
    };
    let engine = &engine;
    let asking =
        stream::poll_fn(|context| hosts.poll_recv(context)).for_each_concurrent(AT_ONCE, |host| async move {
            engine.fence_when_asked(host).await;
            engine.0.asking.hosts.lock().remove(&host);
        });
    tokio::select! {
        () = stop.cancelled() => {}
        () = asking => {}
    }
}

impl Engine {
    /// What others say of a fence of the host, for all whom its segment names.
    pub(crate) async fn opinions(&self, state: &HostState) -> Opinions {
        let policy = &state.policy.fencing;
        if !policy.asks_others() {
            return Opinions::default();
        }
        let asked_at = Some(self.0.clock.now());
        let gone = self.gone_beside(&state.host).await;
        let gone = gone.as_ref().map(Vec::as_slice);
        let cephs = policy.ceph.iter().map(async |name| {
            let survey = match gone {
                Ok(gone) => self.survey(name, &state.host, gone).await,
                Err(why) => Err(why.clone()),
            };
            (name.clone(), survey)
        });
        let queries = policy.queries.iter().map(async |name| {
            let answer = match gone {
                Ok(gone) => self.answer(name, state, gone).await,
                Err(why) => Err(why.clone()),
            };
            (name.clone(), answer)
        });
        let (ceph, queries) = join(join_all(cephs), join_all(queries)).await;
        Opinions {
            asked_at,
            ceph: ceph.into_iter().collect(),
            queries: queries.into_iter().collect(),
        }
    }

    async fn gone_beside(&self, host: &Host) -> Result<Vec<Host>, String> {
        let mut reader = self.0.db.reader();
        let gone = ringfence_db::hosts_gone_beside(&mut reader, host.id, MOST_GONE + 1).await;
        let gone = gone.map_err(|error| error_chain(&error))?;
        if gone.len() > MOST_GONE as usize {
            return Err(format!(
                "more than {MOST_GONE} hosts are FENCED or being fenced, too many for one question"
            ));
        }
        Ok(gone)
    }

    async fn survey(&self, method: &str, host: &Host, gone: &[Host]) -> Result<CephSurvey, String> {
        let method = self.method_of(method).await.map_err(|error| why(&error))?;
        let survey = self.survey_by(&method, host, gone).await;
        survey.map_err(|error| why(&error))
    }

    async fn survey_by(
        &self,
        method: &Method,
        host: &Host,
        gone: &[Host],
    ) -> Result<CephSurvey, EngineError> {
        let names = gone.iter().map(|host| self.name_in_storage(method, host));
        let gone = names.collect();
        let host_name = self.name_in_storage(method, host);
        let reply = self.ask_others(method, host, |method, budget_ms| {
            DeviceRequest::Survey(SurveyRequest {
                host: host_name,
                gone,
                method,
                budget_ms,
            })
        });
        match reply.await? {
            DeviceReply::Surveyed { survey, .. } => Ok(survey),
            other => Err(no_answer(other)),
        }
    }

    async fn answer(&self, method: &str, state: &HostState, gone: &[Host]) -> Result<Answer, String> {
        let method = self.method_of(method).await.map_err(|error| why(&error))?;
        let answer = self.answer_by(&method, state, gone).await;
        answer.map(|answered| answered.said).map_err(|error| why(&error))
    }

    async fn answer_by(
        &self,
        method: &Method,
        state: &HostState,
        gone: &[Host],
    ) -> Result<Answered, EngineError> {
        let host = &state.host;
        let segment = self
            .segment_or_default(Some(&host.segment_id.to_string()))
            .await?;
        let question = Question {
            host: host.name.clone(),
            host_id: host.id,
            segment: segment.name,
            zone: host.zone.clone(),
            cause: cause_of(state),
            failure_state: host.failure_state,
            failure_since: host.failure_since,
            gone: gone.iter().map(|host| host.name.clone()).collect(),
        };
        let reply = self.ask_others(method, host, |method, budget_ms| {
            DeviceRequest::Query(QueryRequest {
                method,
                question,
                budget_ms,
            })
        });
        match reply.await? {
            DeviceReply::Answered {
                said,
                worker,
                took_ms,
            } => Ok(Answered {
                said,
                worker,
                took_ms,
            }),
            other => Err(no_answer(other)),
        }
    }

    /// What a query says of a fence of a host now; nothing else comes of it.
    pub(crate) async fn check_query(&self, method: &Method, host: &str) -> Result<MethodCheck, EngineError> {
        let state = self.state_of(host).await?;
        let gone = self.gone_beside(&state.host).await;
        let gone = gone.map_err(|detail| EngineError::DeviceFailed {
            detail,
            is_refused: false,
        })?;
        let Answered {
            said,
            worker,
            took_ms,
        } = self.answer_by(method, &state, &gone).await?;
        let state = if said.is_allowed {
            ObservedState::Allows
        } else {
            ObservedState::Holds
        };
        Ok(MethodCheck {
            observation: Observation {
                state,
                detail: said.reason,
                observed_at: self.0.clock.now(),
                after_ms: 0,
                before: None,
                proves: false,
            },
            worker,
            took_ms,
        })
    }

    async fn ask_others(
        &self,
        method: &Method,
        host: &Host,
        request: impl FnOnce(FrozenMethod, u64) -> DeviceRequest,
    ) -> Result<DeviceReply, EngineError> {
        let frozen = FrozenMethod::new(&self.0.drivers, method, host)?;
        let budget = Duration::from_secs(u64::from(frozen.times.attempt_timeout_s)).min(LONGEST);
        let (resource, zone) = (frozen.resource, frozen.zone.clone());
        let budget_ms = u64::try_from(budget.as_millis()).unwrap_or(u64::MAX);
        let request = request(frozen, budget_ms);
        self.ask_worker(resource, &zone, &request, budget + WAY).await
    }

    /// What is wrong with a host's own parameters keeps no other host from being asked about.
    fn name_in_storage(&self, method: &Method, host: &Host) -> String {
        let frozen = FrozenMethod::new(&self.0.drivers, method, host).ok();
        let own = frozen
            .as_ref()
            .and_then(|frozen| value_of(&frozen.parameters, "host"));
        own.unwrap_or_else(|| host.known_as()).to_owned()
    }
}

/// That of the live fence, or of the one that would begin.
fn cause_of(state: &HostState) -> Cause {
    let live = state.operation.as_ref().filter(|live| live.status.is_live());
    let known = live.and_then(Operation::fence).map(|fence| fence.cause);
    known.unwrap_or_else(|| Cause::of_automatic(&state.host))
}

/// What a query said, and who asked.
struct Answered {
    said: Answer,
    worker: String,
    took_ms: u64,
}

/// Why there is no answer, in words.
pub(crate) fn why(error: &EngineError) -> String {
    match error {
        EngineError::DeviceFailed { detail, .. } => detail.clone(),
        other => error_chain(other),
    }
}
