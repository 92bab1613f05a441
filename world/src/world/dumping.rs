//! A host in its crash kernel: its messages, the workers that hear them, and what these tell engines.

use chrono::TimeDelta;
use ringfence_core::{EngineTime, Input, Refusal, Reply, Timestamp};

use super::World;
use crate::site::Machine;

/// A message is under way for less than this, or is lost.
const UNDER_WAY: TimeDelta = TimeDelta::seconds(5);
/// So long before it reads a message a worker may have seen last that none was there.
const LOOKED_BEFORE: TimeDelta = TimeDelta::milliseconds(500);

/// What a worker says of a message that it has heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KdumpHeard {
    /// As it says.
    pub after: EngineTime,
    /// When the message was sent, by the clock that is never set.
    pub sent_at: Timestamp,
}

impl World {
    /// The crash kernel sends a message. `false` if the host is not in it.
    pub fn send_kdump(&mut self) -> bool {
        let is_dumping = self.site.machine == Machine::Crashed;
        if is_dumping {
            self.datagrams.push(self.real);
        }
        is_dumping
    }

    /// A message reaches a worker, which may hear it again. `false` if it was lost.
    pub fn hear_kdump(&mut self, at: usize) -> bool {
        let sent_at = self.datagrams[at];
        let is_heard = self.real - sent_at < UNDER_WAY;
        if is_heard {
            let after = EngineTime {
                at: self.now - LOOKED_BEFORE,
                clock_set_at: self.state.clock_set_at,
            };
            self.kdump_heard.push(KdumpHeard { after, sent_at });
        }
        is_heard
    }

    /// An engine is told of a message.
    pub fn tell_kdump(&mut self, at: usize) -> Result<Reply, Refusal> {
        let heard_after = Some(self.kdump_heard[at].after);
        self.give(Input::KdumpMessage { heard_after })
    }
}
