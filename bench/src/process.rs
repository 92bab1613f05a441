//! Memory and processor time of a process.

use std::path::Path;

use ringfence_tests::Service;

use crate::error::BenchError;

/// Resident memory in megabytes (1,000,000 bytes).
pub fn resident_mb(service: &Service) -> Result<f64, BenchError> {
    let path = format!("/proc/{}/status", service.pid());
    let status = std::fs::read_to_string(&path).map_err(BenchError::system(format!("read {path}")))?;
    let kib = status.lines().find_map(|line| {
        line.strip_prefix("VmRSS:")?
            .trim()
            .strip_suffix(" kB")?
            .trim()
            .parse::<f64>()
            .ok()
    });
    kib.map(|kib| kib * 1024.0 / 1e6)
        .ok_or_else(|| BenchError::Unexpected {
            what: path,
            found: status,
        })
}

/// The processor time of a process so far, in milliseconds, in user mode and in the kernel.
pub fn processor_ms(service: &Service) -> Result<f64, BenchError> {
    /// The unit of `/proc` on all of Linux's usual machines.
    const TICK_MS: f64 = 10.0;
    let path = format!("/proc/{}/stat", service.pid());
    let stat = std::fs::read_to_string(&path).map_err(BenchError::system(format!("read {path}")))?;
    // The program's name is in brackets, and may contain any characters.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks: Vec<f64> = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|ticks| ticks.parse().ok())
        .collect();
    match ticks.as_slice() {
        [own, system] => Ok((own + system) * TICK_MS),
        _ => Err(BenchError::Unexpected {
            what: path,
            found: stat,
        }),
    }
}

/// The size of a file in megabytes.
#[expect(clippy::cast_precision_loss, reason = "some megabytes")]
pub fn size_mb(path: &Path) -> Result<f64, BenchError> {
    let size = std::fs::metadata(path).map_err(BenchError::system(format!("look at {}", path.display())))?;
    Ok(size.len() as f64 / 1e6)
}
