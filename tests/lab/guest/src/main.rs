//! The program of a virtual host: workloads that write to the shared disk all the time, and an answer with the boot's id to each caller.

use std::fs::{File, OpenOptions};
use std::io::{Write, stdout};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{sleep, spawn};
use std::time::Duration;

use ringfence_guest::{ANSWER_PORT, BLOCK_BYTES, LANES, Record};

const DISK: &str = "/dev/vda";
/// `O_DIRECT | O_DSYNC`: a write that has returned is on the disk, and not in the page cache.
const STRAIGHT_TO_DISK: i32 = 0o40_000 | 0o10_000;
const BETWEEN_WRITES: Duration = Duration::from_millis(250);
const BETWEEN_REPORTS: Duration = Duration::from_millis(500);
const UNTIL_THERE: Duration = Duration::from_millis(50);

/// Numbers of tried and of successful writes.
#[derive(Default)]
struct Count {
    tried: AtomicU64,
    taken: AtomicU64,
}

/// A buffer with the alignment that `O_DIRECT` needs.
#[repr(C, align(4096))]
struct Aligned([u8; BLOCK_BYTES]);

fn main() -> std::io::Result<()> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let boot = boot.trim().to_owned();
    // The kernel passes words of its command line that it does not know to its first program.
    let host = std::env::var("number")
        .ok()
        .and_then(|number| number.parse().ok());
    let host =
        host.ok_or_else(|| std::io::Error::other("the kernel's command line has no number of the host"))?;
    let count = Arc::new(Count::default());
    for lane in 0..LANES {
        let (boot, count) = (boot.clone(), Arc::clone(&count));
        spawn(move || work(host, &boot, lane, &count));
    }
    let answer = format!("{boot}\n");
    spawn(move || answer_callers(&answer));
    writeln!(stdout(), "boot {boot}")?;
    loop {
        let (tried, taken) = (&count.tried, &count.taken);
        let (tried, taken) = (tried.load(Ordering::Relaxed), taken.load(Ordering::Relaxed));
        writeln!(stdout(), "tried {tried} taken {taken}")?;
        sleep(BETWEEN_REPORTS);
    }
}

/// Writes for ever. A failed write is tried again, as by a workload that does not know that its host is fenced.
fn work(host: usize, boot: &str, lane: usize, count: &Count) {
    let disk = disk();
    let mut record = Record {
        host,
        boot: boot.to_owned(),
        lane,
        sequence: 1,
    };
    loop {
        let block = Aligned(record.to_block());
        count.tried.fetch_add(1, Ordering::Relaxed);
        if disk.write_all_at(&block.0, record.offset()).is_ok() {
            count.taken.fetch_add(1, Ordering::Relaxed);
            record.sequence += 1;
        }
        sleep(BETWEEN_WRITES);
    }
}

/// The shared disk, once the machine has it.
fn disk() -> File {
    loop {
        let disk = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(STRAIGHT_TO_DISK)
            .open(DISK);
        if let Ok(disk) = disk {
            return disk;
        }
        sleep(UNTIL_THERE);
    }
}

fn answer_callers(answer: &str) {
    loop {
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::UNSPECIFIED, ANSWER_PORT)) {
            for caller in listener.incoming().flatten() {
                answer_one(caller, answer);
            }
        }
        sleep(UNTIL_THERE);
    }
}

fn answer_one(mut caller: std::net::TcpStream, answer: &str) {
    // The answer may fail: a caller that has gone asks again.
    let _ = caller.set_write_timeout(Some(Duration::from_secs(1)));
    let _ = caller.write_all(answer.as_bytes());
}
