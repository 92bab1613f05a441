//! Event sinks: brokers that every event is told to, in order, for the listeners there.
//!
//! One engine at a time tells, from the number on that is kept with the event sink's name. What was told and could not be written down is
//! told again, with the ids that they had.

mod form;
mod tell;

use std::sync::Arc;

use ringfence_bus::Announcer;

pub(crate) use tell::tell;

/// How events look.
#[derive(Clone, Debug)]
pub enum SinkForm {
    /// CloudEvents in structured JSON. The routing key is `host.SEGMENT.TYPE`, with `_` for dots in the segment's name, or
    /// `subscription.NAME.TYPE`.
    CloudEvents,
    /// Notifications of oslo.messaging, version 2.
    Oslo {
        /// What the routing key begins with; the priority follows.
        topic: String,
        /// Who says it.
        publisher_id: String,
    },
}

/// A broker that every event is told to.
#[derive(Clone)]
pub struct EventSink {
    /// Under this name is kept how far it has got.
    pub name: &'static str,
    /// How events look there.
    pub form: SinkForm,
    /// The broker.
    pub announcer: Arc<dyn Announcer>,
}
