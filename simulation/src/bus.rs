//! The bus of a simulation: tasks are taken from the outbox, so that nothing has to be published; those who are asked before a fence answer at once.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ringfence_bus::{
    Audience, Bus, BusError, Deliveries, DeviceReply, DeviceRequest, Keys, Message, Queue, ReplyTo,
};
use ringfence_core::{Answer, CephSurvey, Outcome};

use crate::Assumptions;

/// Who answers.
const WORKER: &str = "simulation";
/// Why those hold who are assumed to.
const HOLDS: &str = "it is assumed to hold every fence in this simulation";

pub(crate) struct SimulatedBus {
    pub keys: Keys,
    pub assumptions: Arc<Assumptions>,
}

impl SimulatedBus {
    fn answer(&self, request: DeviceRequest) -> DeviceReply {
        let worker = WORKER.to_owned();
        let holds = |method: &str| self.assumptions.holding.contains(method);
        let failed = |outcome, detail: &str| DeviceReply::Failed {
            outcome,
            detail: detail.to_owned(),
            worker: WORKER.to_owned(),
            took_ms: 0,
        };
        match request {
            DeviceRequest::Survey(survey) if holds(&survey.method.name) => failed(Outcome::Refused, HOLDS),
            DeviceRequest::Survey(survey) => DeviceReply::Surveyed {
                survey: without_osds(survey.method.name),
                worker,
                took_ms: 0,
            },
            DeviceRequest::Query(query) => {
                let is_allowed = !holds(&query.method.name);
                let reason = if is_allowed {
                    "it is assumed to allow every fence in this simulation"
                } else {
                    HOLDS
                };
                DeviceReply::Answered {
                    said: Answer {
                        is_allowed,
                        reason: reason.to_owned(),
                    },
                    worker,
                    took_ms: 0,
                }
            }
            DeviceRequest::Validate(_) | DeviceRequest::Check(_) | DeviceRequest::Heartbeats(_) => {
                failed(Outcome::Unknown, "no device is asked in a simulation")
            }
        }
    }
}

/// A Ceph that has nothing of the host.
fn without_osds(fsid: String) -> CephSurvey {
    CephSurvey {
        fsid,
        osds: 0,
        up: 0,
        groups: 0,
        unclean: 0,
        one_unclean: None,
        is_own_domain: true,
        stopped: 0,
        one_stopped: None,
        gone: Vec::new(),
        monitors: 3,
        own_monitors: 0,
        monitors_left: 3,
        is_ok_to_stop: None,
    }
}

#[async_trait]
impl Bus for SimulatedBus {
    async fn publish(&self, _queue: &Queue, _message: &Message) -> Result<(), BusError> {
        Ok(())
    }

    async fn consume(&self, _queue: &Queue, _prefetch: u16) -> Result<Deliveries, BusError> {
        Err(BusError::Closed)
    }

    async fn request(
        &self,
        queue: &Queue,
        message: &Message,
        _timeout: Duration,
    ) -> Result<Message, BusError> {
        let request = self.keys.open(&Audience::Queue(queue.clone()), message)?;
        let answer = self.answer(request);
        self.keys
            .seal(uuid::Uuid::new_v4(), &Audience::Reply(message.id), &answer)
    }

    async fn respond(&self, _to: &ReplyTo, _request: &Message, _answer: &Message) -> Result<(), BusError> {
        Ok(())
    }

    async fn health(&self) -> Result<(), BusError> {
        Ok(())
    }

    async fn close(&self) {}
}
