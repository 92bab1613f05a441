//! What the messages say.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ringfence_core::{
    Answer, AttemptId, CephSurvey, Claim, EngineTime, FrozenMethod, Generation, Heartbeat, HostId, Job,
    Observation, Outcome, Parameters, Problem, Question, Resource, SecretReference, TaskResult,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Something that can be the body of a message.
pub trait Payload: Serialize + DeserializeOwned {
    /// The message's type, with the version of its form.
    const KIND: &'static str;
}

/// Work for a worker. It may act only after its claim was granted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskMessage {
    /// The host.
    pub host_id: HostId,
    /// Its name, for people.
    pub host: String,
    /// The attempt to claim.
    pub attempt: AttemptId,
    /// The generation that it is for.
    pub generation: Generation,
    /// What to do.
    pub job: Job,
}

impl Payload for TaskMessage {
    const KIND: &'static str = "task.v1";
}

/// A worker asks whether it may act, or shows that it is still at it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum ClaimRequest {
    /// May I?
    Claim(Claim),
    /// I am still at it.
    Renew(Claim),
}

impl Payload for ClaimRequest {
    const KIND: &'static str = "claim.v1";
}

/// The engine's answer to a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum ClaimReply {
    /// Act.
    Granted {
        /// Milliseconds after which the worker must have stopped, counted from before it asked.
        budget_ms: u64,
        /// Milliseconds within which it has to ask for more time.
        lease_ms: u64,
    },
    /// Another command is being carried out by the device; ask again.
    Busy {
        /// Milliseconds to wait before asking again.
        retry_after_ms: u64,
    },
    /// Do not act, and drop the message (or stop, if this answers a sign of life).
    Refused {
        /// Why, in words.
        why: String,
    },
}

impl Payload for ClaimReply {
    const KIND: &'static str = "claim-reply.v1";
}

impl Payload for TaskResult {
    const KIND: &'static str = "result.v1";
}

/// A question to a worker about a device or a driver, outside any operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum DeviceRequest {
    /// Are these parameters right for the driver?
    Validate(ValidateRequest),
    /// What state is the device in?
    Check(CheckRequest),
    /// What would a fence of a host cost the storage behind it?
    Survey(SurveyRequest),
    /// May a fence of a host begin?
    Query(QueryRequest),
    /// What have hosts written to a shared storage?
    Heartbeats(HeartbeatsRequest),
}

impl Payload for DeviceRequest {
    const KIND: &'static str = "device.v1";
}

/// Parameters to validate by what the driver itself says (a fence agent's metadata).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValidateRequest {
    /// The driver's name.
    pub driver: String,
    /// What the method acts on.
    pub resource: Resource,
    /// Its parameters; `${...}` stands for a host's own value.
    pub parameters: Parameters,
    /// References to its secrets.
    pub secrets: BTreeMap<String, SecretReference>,
}

/// A device to ask for its state; nothing is changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckRequest {
    /// How to reach it.
    pub method: FrozenMethod,
    /// Milliseconds after which the answer is not waited for.
    pub budget_ms: u64,
}

/// A storage to ask what a fence of a host would cost it; nothing is changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SurveyRequest {
    /// How to reach it.
    pub method: FrozenMethod,
    /// The host, by the name that the storage knows it by.
    pub host: String,
    /// Other hosts, by those names, that are FENCED or being fenced: the storage may not have noticed yet.
    pub gone: Vec<String>,
    /// Milliseconds after which the answer is not waited for.
    pub budget_ms: u64,
}

/// Others to ask whether a fence of a host may begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryRequest {
    /// How to reach them.
    pub method: FrozenMethod,
    /// What they are told.
    pub question: Question,
    /// Milliseconds after which the answer is not waited for.
    pub budget_ms: u64,
}

/// A shared storage to read the heartbeats of hosts from; nothing is changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeartbeatsRequest {
    /// How to reach it.
    pub method: FrozenMethod,
    /// The hosts, by the names that the storage knows them by, at most 500.
    pub hosts: Vec<String>,
    /// Milliseconds after which the answer is not waited for.
    pub budget_ms: u64,
}

/// A worker's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum DeviceReply {
    /// What is wrong with the parameters; empty if nothing is.
    Validated {
        /// The faults.
        problems: Vec<Problem>,
    },
    /// The device answered.
    Checked {
        /// What it showed.
        observation: Observation,
        /// The worker's name.
        worker: String,
        /// Milliseconds that it took.
        took_ms: u64,
    },
    /// The storage answered.
    Surveyed {
        /// What a fence would cost it.
        survey: CephSurvey,
        /// The worker's name.
        worker: String,
        /// Milliseconds that it took.
        took_ms: u64,
    },
    /// Those who were asked whether a fence may begin answered.
    Answered {
        /// What they said.
        said: Answer,
        /// The worker's name.
        worker: String,
        /// Milliseconds that it took.
        took_ms: u64,
    },
    /// The shared storage was read.
    Read {
        /// What is there of each host.
        heartbeats: BTreeMap<String, Heartbeat>,
        /// The worker's name.
        worker: String,
        /// Milliseconds that it took.
        took_ms: u64,
    },
    /// The device is needed for an attempt, which goes first.
    Busy {
        /// The worker's name.
        worker: String,
    },
    /// The device could not be asked.
    Failed {
        /// Whether that is a definite no; else the result is not known.
        outcome: Outcome,
        /// Why, in words, without secrets.
        detail: String,
        /// The worker's name.
        worker: String,
        /// Milliseconds that it took.
        took_ms: u64,
    },
}

impl Payload for DeviceReply {
    const KIND: &'static str = "device-reply.v1";
}

/// A worker that listens for kdump messages asks an engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum KdumpRequest {
    /// Which addresses do hosts have?
    Addresses {
        /// Those that come after this one.
        after: Option<IpAddr>,
    },
    /// From addresses of hosts messages came.
    Seen {
        /// Each address once.
        messages: Vec<KdumpHeard>,
    },
}

/// A kdump message that a worker has heard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KdumpHeard {
    /// Where it came from.
    pub from: IpAddr,
    /// A moment after which it was heard, counted on from what an engine has said; none if the worker knows none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<EngineTime>,
}

impl Payload for KdumpRequest {
    const KIND: &'static str = "kdump.v1";
}

/// The engine's answer to a [`KdumpRequest`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum KdumpReply {
    /// Addresses of hosts.
    Addresses {
        /// In order; none: there are no more.
        addresses: Vec<IpAddr>,
        /// The time, so that the worker can say when it hears something.
        time: EngineTime,
    },
    /// It was taken down.
    Taken,
}

impl Payload for KdumpReply {
    const KIND: &'static str = "kdump-reply.v1";
}
