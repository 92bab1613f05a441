//! Plugs the shared disk into a machine as soon as the machine's export is open.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::machine::Machine;

const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// Tries to plug the disk in until it is dropped.
#[derive(Debug)]
pub(super) struct DiskSlot {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl DiskSlot {
    pub(super) fn of(machine: Arc<Machine>) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            while !until.load(Ordering::Relaxed) {
                // The export may close between the check and the use, and the machine may go off: then the next round tries again.
                let _ = machine.look_for_disk();
                std::thread::sleep(BETWEEN_LOOKS);
            }
        });
        Self {
            over,
            thread: Some(thread),
        }
    }
}

impl Drop for DiskSlot {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread is ignored.
            let _ = thread.join();
        }
    }
}
