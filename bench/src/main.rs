//! Measures the figures of the product, each with a floor that is measured in one run with it.
//!
//! Machines are shared and noisy: figure and floor are measured in turns, and their ratio or difference counts. Run this with `cargo xtask
//! bench`, which builds the real program as it is shipped and starts a PostgreSQL and a RabbitMQ.

mod agent;
mod asker;
mod cases;
mod clock;
mod commit_watch;
mod devices;
mod end;
mod error;
mod floor;
mod listener;
mod machine;
mod meter;
mod page;
mod plant;
mod process;
mod report;
mod statistics;

use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use ringfence_core::error_chain;
use ringfence_tests::{Ground, tell};

use crate::cases::Case;
use crate::error::BenchError;
use crate::report::Report;

#[derive(Parser)]
#[command(
    name = "cargo xtask bench",
    about = "Measures the figures, each with its floor"
)]
struct Arguments {
    /// The cases to measure; all if absent
    #[arg(value_enum)]
    cases: Vec<Name>,
    /// The ground to measure on; both if absent
    #[arg(long, value_enum)]
    ground: Option<GroundName>,
    /// Measurements of each figure that is measured repeatedly
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u16).range(1..=1000))]
    samples: u16,
    /// Also measures the long figures: a storm of 10,000 hosts, and Masakari at its defaults
    #[arg(long)]
    full: bool,
    /// Writes the results to bench/RESULTS.md, those of `recover` and of `kubernetes` and `kubernetes-watch` into parts of their own; figures
    /// that were not measured stay as they are
    #[arg(long)]
    write: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Name {
    /// How much longer a fence takes than its fence agent
    Fence,
    /// How long a fence takes by a device that answers at once
    Instant,
    /// 1,000 hosts at once, with three tasks each
    Storm,
    /// Reading the gates, and the list of 100,000 hosts
    Gates,
    /// 1, 100 and 10,000 hosts in one request of a scheduler
    Hook,
    /// 1,000 listeners to the event stream
    Stream,
    /// Starting, memory and size
    Start,
    /// Watching 1,000 hosts of a cloud
    Observe,
    /// From a node's death to its pods elsewhere in a real Kubernetes, compared with the bare calls of its API
    Kubernetes,
    /// Watching 5,000 nodes of a real Kubernetes
    KubernetesWatch,
    /// From a host's death to its servers elsewhere, compared with Nova and Masakari
    Recover,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum GroundName {
    /// SQLite, everything in one process
    Standalone,
    /// PostgreSQL and RabbitMQ
    Distributed,
}

impl Arguments {
    fn cases(&self) -> &[Name] {
        if self.cases.is_empty() {
            Name::value_variants()
        } else {
            &self.cases
        }
    }

    fn grounds(&self) -> &'static [Ground] {
        match self.ground {
            None => &[Ground::Standalone, Ground::Distributed],
            Some(GroundName::Standalone) => &[Ground::Standalone],
            Some(GroundName::Distributed) => &[Ground::Distributed],
        }
    }
}

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut report = Report::default();
    let mut done = measure(&arguments, &mut report).await;
    tell(&format!("\n{}", report.text()));
    if arguments.write && done.is_ok() {
        done = write(report).await;
    }
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell(&format!("error: {}", error_chain(&error)));
            ExitCode::FAILURE
        }
    }
}

async fn measure(arguments: &Arguments, report: &mut Report) -> Result<(), BenchError> {
    let case = Case {
        samples: usize::from(arguments.samples),
        is_full: arguments.full,
    };
    for name in arguments.cases() {
        if *name == Name::Recover {
            // One cloud for all grounds, shared with Nova alone and Masakari.
            Box::pin(cases::recover::measure(&case, arguments.grounds(), report)).await?;
            continue;
        }
        for &ground in arguments.grounds() {
            match name {
                Name::Fence => Box::pin(cases::fence::measure(&case, ground, report)).await?,
                Name::Instant => Box::pin(cases::instant::measure(&case, ground, report)).await?,
                Name::Storm => Box::pin(cases::storm::measure(&case, ground, report)).await?,
                Name::Gates => Box::pin(cases::gates::measure(&case, ground, report)).await?,
                Name::Hook => Box::pin(cases::hook::measure(&case, ground, report)).await?,
                Name::Stream => Box::pin(cases::stream::measure(&case, ground, report)).await?,
                Name::Observe => Box::pin(cases::observe::measure(ground, report)).await?,
                Name::Kubernetes => Box::pin(cases::kubernetes::measure(&case, ground, report)).await?,
                Name::KubernetesWatch => Box::pin(cases::kubernetes::measure_watch(ground, report)).await?,
                Name::Start => Box::pin(cases::start::measure(ground, report)).await?,
                // Measured above.
                Name::Recover => {}
            }
        }
    }
    Ok(())
}

async fn write(report: Report) -> Result<(), BenchError> {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let machine = machine::describe(&words).await?;
    let part = |report: Report| format!("{machine}\n{}", report.markdown());
    let parts = report
        .by_case()
        .into_iter()
        .map(|(case, report)| (case, part(report)));
    let names = Name::value_variants()
        .iter()
        .filter_map(ValueEnum::to_possible_value);
    let order: Vec<String> = names.map(|name| name.get_name().to_owned()).collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/RESULTS.md");
    let before = std::fs::read_to_string(path).unwrap_or_default();
    let page = page::renewed(&before, &order, &parts.collect());
    std::fs::write(path, page).map_err(BenchError::system(format!("write {path}")))
}
