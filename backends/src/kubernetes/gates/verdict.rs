//! What the answer to a request that was tried says of a gate.

use crate::{BackendError, Preflight};

/// What API servers say when a webhook has not answered them; releases differ.
const NOT_ASKED: [&str; 2] = ["failed calling webhook", "failed to call webhook"];
const NOT_REACHED: &str = "run the scheduler hook where the API servers reach it at the webhook's address; where its certificate is refused, \
                           install the webhooks with its authority: ringfence kubernetes webhooks CLUSTER --ca-file FILE";

/// How a gate is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    /// The API server decides by itself.
    Policy,
    /// The API server asks the scheduler hook.
    Webhook,
}

/// A gate, which names itself in what it says.
pub(super) struct Gate<'a> {
    sort: Sort,
    pub name: &'a str,
}

/// A request that was made without effect.
pub(super) enum Tried {
    /// This one.
    Request {
        /// In words.
        what: String,
        /// What follows where it is let through.
        then: &'static str,
        /// The answer.
        done: Result<(), BackendError>,
    },
    /// None, and why.
    Nothing(&'static str),
}

impl Tried {
    /// A request that removes something of a node that is not FENCED.
    pub fn on_node(what: String, done: Result<(), BackendError>) -> Self {
        Self::Request {
            what,
            then: "its node is not FENCED",
            done,
        }
    }

    /// A person's word under the name of another.
    pub fn word(what: String, done: Result<(), BackendError>) -> Self {
        Self::Request {
            what,
            then: "a user who may change a NodeFence can confirm under every name",
            done,
        }
    }
}

impl<'a> Gate<'a> {
    pub fn of(sort: Sort, name: &'a str) -> Self {
        Self { sort, name }
    }

    pub fn judge(&self, cluster: &str, tried: Tried) -> Preflight {
        let gate = self.told(cluster);
        let (what, then, done) = match tried {
            Tried::Nothing(why) => return Preflight::Good(format!("{gate} was not tried, since {why}")),
            Tried::Request { what, then, done } => (what, then, done),
        };
        match done {
            Err(error) if self.has_refused(&error) => Preflight::Good(format!(
                "{gate} has refused {what}, which was tried without effect"
            )),
            Err(error) if self.was_not_asked(&error) => Preflight::Warning(
                format!(
                    "{gate} was not reached, and {what} was refused for that alone, as all that it holds is for every user: {error}"
                ),
                NOT_REACHED.to_owned(),
            ),
            Err(error) => Preflight::Warning(
                format!("{gate} could not be tried by {what}: {error}"),
                "look which part of the cluster has refused it; the API server's log tells more".to_owned(),
            ),
            Ok(()) => Preflight::Warning(
                format!("{gate} has let through {what}, which was tried without effect; {then}"),
                self.why_let_through().to_owned(),
            ),
        }
    }

    /// The cluster does not show what the gate could be tried with.
    pub fn untried(&self, cluster: &str, error: &BackendError) -> Preflight {
        Preflight::Warning(
            format!("{} could not be tried: {error}", self.told(cluster)),
            "where a right is missing, grant it".to_owned(),
        )
    }

    fn told(&self, cluster: &str) -> String {
        match self.sort {
            Sort::Policy => format!("{cluster}: the gate {}", self.name),
            Sort::Webhook => format!("{cluster}: the webhook {}", self.name),
        }
    }

    fn why_let_through(&self) -> &'static str {
        match self.sort {
            Sort::Policy => {
                "look whether the API server has the admission plugin ValidatingAdmissionPolicy, and whether Ringfence's account is in \
                 the group ringfence:break-glass"
            }
            Sort::Webhook => {
                "look whether the API server has the admission plugin ValidatingAdmissionWebhook, and whether the webhook's address is that of \
                 the scheduler hook"
            }
        }
    }

    fn has_refused(&self, error: &BackendError) -> bool {
        match error {
            BackendError::Refused { why, .. } | BackendError::Denied { why, .. } => {
                why.contains(self.name) && !is_unanswered(why)
            }
            _ => false,
        }
    }

    fn was_not_asked(&self, error: &BackendError) -> bool {
        let told = error.to_string();
        self.sort == Sort::Webhook && told.contains(self.name) && is_unanswered(&told)
    }
}

fn is_unanswered(why: &str) -> bool {
    NOT_ASKED.iter().any(|words| why.contains(words))
}
