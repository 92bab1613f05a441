//! Searches every history of some small worlds.

#![expect(clippy::print_stdout, reason = "it tells what it finds")]

#[cfg(feature = "mutants")]
mod mutants;

use std::process::ExitCode;

use clap::Parser;
use ringfence_modelcheck::{
    Chance, Configuration, Found, Limits, ModelCheckError, Order, all, by_name, run, small, trace,
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(about = "Searches every history of some small worlds for one that must never be")]
struct Arguments {
    /// One configuration; all small ones if absent
    #[arg(long)]
    configuration: Option<String>,
    /// Names the configurations, what may happen in them, and the kinds of things that happen
    #[arg(long)]
    list: bool,
    /// The nearest states first: the shortest trace, and more memory
    #[arg(long)]
    bfs: bool,
    /// Threads, 1 to 256
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: u16,
    /// Seconds after which a configuration is left, 1 to 86,400
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: Option<u64>,
    /// How often a kind of thing may happen, instead of what the configuration says: KIND=NUMBER
    #[arg(long)]
    chance: Vec<String>,
    /// Prints the names of the guards
    #[cfg(feature = "mutants")]
    #[arg(long)]
    guards: bool,
    /// Switches this guard of the rules off; `all`: one after the other, each until the search has noticed
    #[cfg(feature = "mutants")]
    #[arg(long)]
    without: Option<String>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match carry_out(&arguments) {
        Ok(code) => code,
        Err(error) => {
            println!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn carry_out(arguments: &Arguments) -> Result<ExitCode, ModelCheckError> {
    if arguments.list {
        list();
        return Ok(ExitCode::SUCCESS);
    }
    #[cfg(feature = "mutants")]
    if arguments.guards {
        mutants::list();
        return Ok(ExitCode::SUCCESS);
    }
    #[cfg(feature = "mutants")]
    if let Some(name) = &arguments.without {
        return mutants::run_without(name, arguments);
    }
    let mut is_well = true;
    for configuration in wanted(arguments)? {
        is_well &= search(&configuration, arguments);
    }
    Ok(if is_well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn wanted(arguments: &Arguments) -> Result<Vec<Configuration>, ModelCheckError> {
    let mut wanted = match &arguments.configuration {
        Some(name) => vec![by_name(name)?],
        None => small(),
    };
    for configuration in &mut wanted {
        for words in &arguments.chance {
            configuration.chances.change(words)?;
        }
    }
    Ok(wanted)
}

fn list() {
    for configuration in all() {
        println!("{:<14} {}", configuration.name, configuration.about);
        let chances = Chance::ALL
            .iter()
            .map(|chance| (chance, configuration.chances.left(*chance)));
        let some = chances.filter(|(_, times)| *times > 0);
        let words: Vec<String> = some
            .map(|(chance, times)| format!("{}={times}", chance.name()))
            .collect();
        println!("{:<14} {}", "", words.join(" "));
    }
    let kinds: Vec<&str> = Chance::ALL.iter().map(|chance| chance.name()).collect();
    println!("kinds: {}", kinds.join(" "));
}

fn limits(arguments: &Arguments) -> Limits {
    Limits {
        order: if arguments.bfs {
            Order::Breadth
        } else {
            Order::Depth
        },
        threads: usize::from(arguments.threads),
        seconds: arguments.seconds,
    }
}

/// `false` if something is wrong.
fn search(configuration: &Configuration, arguments: &Arguments) -> bool {
    let found = run(configuration, limits(arguments));
    tell(configuration, &found);
    let missed = found.missed(configuration);
    if found.is_exhausted && !missed.is_empty() {
        println!("    NOT REACHED: {missed:?}");
        return false;
    }
    found.wrong.is_none()
}

fn tell(configuration: &Configuration, found: &Found) {
    let end = match (&found.wrong, found.is_exhausted) {
        (Some((wrong, _)), _) => format!("WRONG: {wrong}"),
        (None, true) => "exhausted".to_owned(),
        (None, false) => "cut short".to_owned(),
    };
    println!(
        "{:<14} {:>9} states {:>10} steps {:>7.1} s {:>4} deep, {} known to end: {end}",
        configuration.name, found.states, found.steps, found.seconds, found.depth, found.known
    );
    let reached: Vec<String> = found
        .goals
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(goal, count)| format!("{} {count}", goal.name()))
        .collect();
    println!("    {}", reached.join(", "));
    if let Some((_, path)) = &found.wrong {
        for line in trace(configuration, path) {
            println!("    {line}");
        }
    }
}
