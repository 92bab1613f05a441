//! Puts the shared disk into a machine as soon as there is a way to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::machine::Machine;

const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// Looks for the disk for as long as it lives.
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
                // The way may be closed between the question and the use, and the machine may go off: it is tried again.
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
            // Whatever it died of, it looks no more.
            let _ = thread.join();
        }
    }
}
