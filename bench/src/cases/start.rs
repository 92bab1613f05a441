//! The cost of starting and running the product without load.

use std::path::Path;
use std::time::{Duration, Instant};

use ringfence_tests::Ground;

use crate::error::BenchError;
use crate::plant::{Plant, Settings};
use crate::process::{resident_mb, size_mb};
use crate::report::{Figure, Report, Target};
use crate::statistics::Summary;

const NAME: &str = "start";
const STARTS: usize = 10;
const MOST_MS: f64 = 1000.0;
const MOST_IDLE_MB: f64 = 60.0;
/// How long nothing runs after the start.
const REST: Duration = Duration::from_secs(3);

/// Measures on one ground.
pub async fn measure(ground: Ground, report: &mut Report) -> Result<(), BenchError> {
    let figure = |what: &str, unit, summary| Figure::new(NAME, what, unit, summary).on(ground);
    if ground == Ground::Standalone {
        let mut taken = Vec::new();
        for _ in 0..STARTS {
            let begun = Instant::now();
            let plant = Plant::start(ground, Settings::default()).await?;
            taken.push(begun.elapsed().as_secs_f64() * 1000.0);
            plant.stop().await;
        }
        report.add_summary(&taken, |s| {
            figure("standalone, from nothing to ready", "ms", s)
                .target(Target::at_most("start, median,", s.median, MOST_MS, "ms"))
                .note("its log is read every 10 ms, which is a part of the figure")
        })?;
        let binary =
            std::env::var_os("RINGFENCE_TEST_BINARY").ok_or(BenchError::Unset("RINGFENCE_TEST_BINARY"))?;
        let size = size_mb(Path::new(&binary))?;
        report.add(figure("the program's file", "MB", Summary::once(size)))?;
    }
    let plant = Plant::start(ground, Settings::default()).await?;
    tokio::time::sleep(REST).await;
    for (name, service) in &plant.services {
        let resident = resident_mb(service)?;
        let target = Target::at_most("resident while idle", resident, MOST_IDLE_MB, "MB");
        let what = format!("resident memory of {name} while idle");
        report.add(figure(&what, "MB", Summary::once(resident)).target(target))?;
    }
    plant.stop().await;
    Ok(())
}
