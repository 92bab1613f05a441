//! How many event streams may be open. Each holds a connection for as long as its listener likes: without a bound one token could take
//! all connections, and no operator could fence a host.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use crate::ApiError;

/// The bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLimits {
    /// Streams of one caller.
    pub of_one_caller: u32,
    /// Streams of all callers.
    pub in_all: u32,
}

/// The streams that are open.
pub(crate) struct Streams {
    limits: StreamLimits,
    open: Mutex<HashMap<String, u32>>,
}

/// One open stream; dropped, it makes room for another.
pub(crate) struct OpenStream {
    streams: Arc<Streams>,
    caller: String,
}

impl Streams {
    pub fn new(limits: StreamLimits) -> Self {
        Self {
            limits,
            open: Mutex::default(),
        }
    }

    /// Opens one for this caller.
    pub fn open(self: &Arc<Self>, caller: String) -> Result<OpenStream, ApiError> {
        let mut open = self.lock();
        let (own, all) = (
            open.get(&caller).copied().unwrap_or(0),
            open.values().sum::<u32>(),
        );
        let beyond = |whose, allowed| Err(ApiError::TooManyStreams { whose, allowed });
        if own >= self.limits.of_one_caller {
            return beyond("this caller has", self.limits.of_one_caller);
        }
        if all >= self.limits.in_all {
            return beyond("all callers together have", self.limits.in_all);
        }
        open.insert(caller.clone(), own + 1);
        drop(open);
        Ok(OpenStream {
            streams: Arc::clone(self),
            caller,
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, u32>> {
        self.open.lock()
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut open = self.streams.lock();
        if let Some(own) = open.get_mut(&self.caller) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                open.remove(&self.caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_caller_and_all_callers_have_limits_and_a_closed_stream_makes_room() {
        let limits = StreamLimits {
            of_one_caller: 2,
            in_all: 3,
        };
        let streams = Arc::new(Streams::new(limits));
        let open = |caller: &str| streams.open(caller.to_owned());
        let (first, _second) = (open("a").unwrap(), open("a").unwrap());
        let beyond = open("a").err().unwrap().to_string();
        assert_eq!(
            beyond,
            "this caller has 2 event streams open, which is as many as are allowed; close one"
        );
        let _third = open("b").unwrap();
        let beyond = open("b").err().unwrap().to_string();
        assert!(
            beyond.starts_with("all callers together have 3 event streams"),
            "{beyond}"
        );
        drop(first);
        let _fourth = open("b").unwrap();
        assert!(open("a").is_err());
    }
}
