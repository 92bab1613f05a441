//! `cargo xtask campaign`: runs campaigns on one ground or both, and fails on a violation.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use ringfence_campaign::{Ground, Options, Script, run};
use ringfence_core::error_chain;
use ringfence_tests::tell;

#[derive(Parser)]
#[command(
    name = "cargo xtask campaign",
    about = "Runs real processes with faults in everything, and a judge that asks the physical world"
)]
struct Arguments {
    /// Number of faults
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    faults: u32,
    /// Equal seed, faults, hosts and seconds give an equal script of faults
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The ground; both, one after the other with half of the faults each, if absent
    #[arg(long, value_enum)]
    ground: Option<GroundName>,
    /// Number of simulated hosts
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(2..=200))]
    hosts: u16,
    /// Seconds in which the faults happen; a fifth of their number if absent
    #[arg(long, value_parser = clap::value_parser!(u64).range(5..=86_400))]
    seconds: Option<u64>,
    /// Keeps the logs also without a violation
    #[arg(long)]
    keep: bool,
    /// The folder for logs
    #[arg(long, default_value = ".")]
    folder: PathBuf,
    /// Prints the script of faults without running it
    #[arg(long)]
    script: bool,
    /// Lets power alone suffice while every power device is a ghost: this has to end in a violation
    #[arg(long)]
    ghosts: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum GroundName {
    /// SQLite, everything in one process
    Standalone,
    /// PostgreSQL and RabbitMQ, two processes of each service
    Distributed,
}

impl Arguments {
    fn campaigns(&self) -> Vec<Options> {
        let grounds: &[Ground] = match self.ground {
            None => &[Ground::Standalone, Ground::Distributed],
            Some(GroundName::Standalone) => &[Ground::Standalone],
            Some(GroundName::Distributed) => &[Ground::Distributed],
        };
        let faults = usize::try_from(self.faults).unwrap_or(usize::MAX) / grounds.len();
        let of = |ground: &Ground| {
            let usual = Options::new(*ground, faults.max(1), self.seed);
            Options {
                hosts: usize::from(self.hosts),
                seconds: self.seconds.unwrap_or(usual.seconds),
                kept: self.folder.clone(),
                keep: self.keep,
                ghosts: self.ghosts,
                ..usual
            }
        };
        grounds.iter().map(of).collect()
    }
}

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut code = ExitCode::SUCCESS;
    for options in arguments.campaigns() {
        if arguments.script {
            tell_script(&options);
            continue;
        }
        match run(options).await {
            Ok(report) => {
                tell(&report.to_string());
                if !report.violations.is_empty() {
                    code = ExitCode::FAILURE;
                }
            }
            Err(error) => {
                tell(&format!("error: {}", error_chain(&error)));
                return ExitCode::FAILURE;
            }
        }
    }
    code
}

fn tell_script(options: &Options) {
    let script = Script::of(options);
    for fault in &script.faults {
        tell(&format!("{:9} {}", fault.at_ms, script.line(fault)));
    }
}
