//! One command at a time per device, in the order in which they came. Attempts go before questions: a question that has the device
//! gives it up as soon as an attempt wants it.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{Mutex as DeviceLock, OwnedMutexGuard, watch};

/// The locks of the devices in use, by device.
#[derive(Default)]
pub(super) struct DeviceLocks(Mutex<HashMap<String, Weak<Device>>>);

#[derive(Default)]
struct Device {
    lock: Arc<DeviceLock<()>>,
    /// How many attempts want it or have it.
    wanted: watch::Sender<usize>,
}

/// Holds a device; none where several commands at once are no harm.
pub(super) struct Held(
    #[expect(dead_code, reason = "held, not read")] Option<(Wanting, OwnedMutexGuard<()>)>,
);

/// An attempt that wants a device, or has it.
struct Wanting(Arc<Device>);

impl Wanting {
    fn new(device: Arc<Device>) -> Self {
        device.wanted.send_modify(|wanted| *wanted += 1);
        Self(device)
    }
}

impl Drop for Wanting {
    fn drop(&mut self) {
        self.0
            .wanted
            .send_modify(|wanted| *wanted = wanted.saturating_sub(1));
    }
}

impl DeviceLocks {
    /// Waits for an attempt's turn; dropped, it gives its turn up.
    pub(super) async fn hold(&self, device: Option<&str>) -> Held {
        let Some(device) = device else {
            return Held(None);
        };
        let wanting = Wanting::new(self.of(device));
        let lock = Arc::clone(&wanting.0.lock).lock_owned().await;
        Held(Some((wanting, lock)))
    }

    /// Puts a question to a device while no attempt wants it; `None` if one does, and then the question is dropped where it stands.
    pub(super) async fn ask<T>(&self, device: Option<&str>, question: impl Future<Output = T>) -> Option<T> {
        let Some(device) = device else {
            return Some(question.await);
        };
        let device = self.of(device);
        let mut wanted = device.wanted.subscribe();
        let asking = async {
            let _held = device.lock.lock().await;
            question.await
        };
        tokio::select! {
            biased;
            _ = wanted.wait_for(|wanted| *wanted > 0) => None,
            answer = asking => Some(answer),
        }
    }

    fn of(&self, device: &str) -> Arc<Device> {
        let mut locks = self.0.lock();
        if let Some(lock) = locks.get(device).and_then(Weak::upgrade) {
            return lock;
        }
        locks.retain(|_, lock| lock.strong_count() > 0);
        let lock = Arc::new(Device::default());
        locks.insert(device.to_owned(), Arc::downgrade(&lock));
        lock
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    #[tokio::test]
    async fn devices_that_no_attempt_uses_are_forgotten() {
        let locks = DeviceLocks::default();
        for i in 0..100 {
            drop(locks.hold(Some(&i.to_string())).await);
        }
        assert!(locks.0.lock().len() <= 1);
    }

    #[tokio::test]
    async fn an_attempt_does_not_wait_for_a_question() {
        let locks = Arc::new(DeviceLocks::default());
        let asking = Arc::clone(&locks);
        let asked = tokio::spawn(async move { asking.ask(Some("bmc"), pending::<()>()).await });
        tokio::task::yield_now().await;
        let held = locks.hold(Some("bmc")).await;
        assert_eq!(asked.await.unwrap(), None);
        // And none is put while the attempt is at it.
        assert_eq!(locks.ask(Some("bmc"), async { 1 }).await, None);
        drop(held);
        assert_eq!(locks.ask(Some("bmc"), async { 2 }).await, Some(2));
    }

    #[tokio::test]
    async fn questions_wait_for_each_other() {
        let locks = DeviceLocks::default();
        let at_once = Mutex::new(0);
        let question = || async {
            *at_once.lock() += 1;
            tokio::task::yield_now().await;
            let seen = *at_once.lock();
            *at_once.lock() -= 1;
            seen
        };
        let (one, other) = tokio::join!(
            locks.ask(Some("bmc"), question()),
            locks.ask(Some("bmc"), question())
        );
        assert_eq!((one, other), (Some(1), Some(1)));
    }
}
