//! One command at a time per device, in the order in which they came.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{Mutex as DeviceLock, OwnedMutexGuard};

/// The locks of the devices in use, by device.
#[derive(Default)]
pub(super) struct DeviceLocks(Mutex<HashMap<String, Weak<DeviceLock<()>>>>);

/// Holds a device; none where several commands at once are no harm.
pub(super) struct Held(#[expect(dead_code, reason = "held, not read")] Option<OwnedMutexGuard<()>>);

impl DeviceLocks {
    /// Waits for its turn; dropped, it gives its turn up.
    pub(super) async fn hold(&self, device: Option<&str>) -> Held {
        match device {
            Some(device) => Held(Some(self.of(device).lock_owned().await)),
            None => Held(None),
        }
    }

    fn of(&self, device: &str) -> Arc<DeviceLock<()>> {
        let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = locks.get(device).and_then(Weak::upgrade) {
            return lock;
        }
        locks.retain(|_, lock| lock.strong_count() > 0);
        let lock = Arc::new(DeviceLock::new(()));
        locks.insert(device.to_owned(), Arc::downgrade(&lock));
        lock
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn devices_that_nobody_uses_are_forgotten() {
        let locks = DeviceLocks::default();
        for i in 0..100 {
            drop(locks.hold(Some(&i.to_string())).await);
        }
        assert!(locks.0.lock().unwrap().len() <= 1);
    }
}
