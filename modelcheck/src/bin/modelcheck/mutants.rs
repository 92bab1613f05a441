//! What the model check notices of a guard that is switched off.

use std::process::ExitCode;

use ringfence_core::{Guard, switch_off};
use ringfence_modelcheck::{Configuration, ModelCheckError, Wrong, run, trace};

use crate::{Arguments, limits, wanted};

/// Prints the names of the guards.
pub(super) fn list() {
    for guard in Guard::ALL {
        println!("{}", guard.name());
    }
}

/// Searches with guards switched off. Fails if the absence of one is not noticed.
pub(super) fn run_without(name: &str, arguments: &Arguments) -> Result<ExitCode, ModelCheckError> {
    let guards: Vec<Guard> = Guard::ALL
        .iter()
        .copied()
        .filter(|guard| name == "all" || guard.name() == name)
        .collect();
    if guards.is_empty() {
        return Err(ModelCheckError::Guard(name.to_owned()));
    }
    let configurations = wanted(arguments)?;
    let mut missed = Vec::new();
    for guard in &guards {
        switch_off(Some(*guard));
        match notice(&configurations, arguments) {
            Some(noticed) => tell(*guard, &noticed, name != "all"),
            None => {
                println!("{:<28} NOT NOTICED", guard.name());
                missed.push(guard.name());
            }
        }
    }
    println!(
        "{} of {} not noticed: {}",
        missed.len(),
        guards.len(),
        missed.join(", ")
    );
    Ok(if missed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// How the absence of a guard shows.
struct Noticed {
    configuration: &'static str,
    states: u64,
    wrong: Wrong,
    trace: Vec<String>,
}

fn notice(configurations: &[Configuration], arguments: &Arguments) -> Option<Noticed> {
    configurations.iter().find_map(|configuration| {
        let found = run(configuration, limits(arguments));
        let (wrong, path) = found.wrong?;
        Some(Noticed {
            configuration: configuration.name,
            states: found.states,
            wrong,
            trace: trace(configuration, &path),
        })
    })
}

fn tell(guard: Guard, noticed: &Noticed, in_full: bool) {
    println!(
        "{:<28} noticed in {} after {} states, in {} lines: {}",
        guard.name(),
        noticed.configuration,
        noticed.states,
        noticed.trace.len(),
        noticed.wrong
    );
    if in_full {
        for line in &noticed.trace {
            println!("    {line}");
        }
    }
}
