//! `ringfence dead-letter`. The command asks the broker itself: the API has no part in it.

use clap::{Args, Subcommand};
use ringfence_bus::{AmqpBus, Bus, DeadLetter, DeadLetters, Survey};
use serde_json::{Value, json};

use crate::args::{ConfigArgs, OutputArgs};
use crate::config::{Environment, Settings};
use crate::error::CliError;
use crate::output::{Cell, Screen, Table, time};
use crate::services::parts;

/// `ringfence dead-letter`
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct DeadLetterArgs {
    /// How to answer.
    #[command(flatten)]
    pub output: OutputArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: DeadLetterCommand,
}

/// `ringfence dead-letter ...`
#[derive(Debug, Subcommand)]
pub enum DeadLetterCommand {
    /// Counts the dead letters of each queue and shows the newest; removes none
    List(ListArgs),
    /// Removes dead letters for good; only the record of what went wrong is lost
    Purge(PurgeArgs),
}

/// `ringfence dead-letter list`
#[derive(Debug, Args)]
pub struct ListArgs {
    /// How many to show at most
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=100))]
    limit: u16,
    /// The services' configuration, which names the broker.
    #[command(flatten)]
    config: ConfigArgs,
}

/// `ringfence dead-letter purge`
#[derive(Debug, Args)]
pub struct PurgeArgs {
    /// Which.
    #[command(flatten)]
    which: Which,
    /// The services' configuration, which names the broker.
    #[command(flatten)]
    config: ConfigArgs,
}

/// Which dead letters.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct Which {
    /// The dead letters of this queue, as `dead-letter list` names it
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// The dead letters of every queue
    #[arg(long)]
    all: bool,
}

pub async fn run(args: DeadLetterArgs, environment: &Environment) -> Result<(), CliError> {
    let config = match &args.command {
        DeadLetterCommand::List(args) => &args.config,
        DeadLetterCommand::Purge(args) => &args.config,
    };
    let bus = connect(&config.settings(environment, Vec::new())?).await?;
    let mut screen = Screen::new(args.output.format);
    let done = match &args.command {
        DeadLetterCommand::List(args) => list(&bus, args.limit, &mut screen).await,
        DeadLetterCommand::Purge(args) => purge(&bus, args.which.queue.as_deref(), &mut screen).await,
    };
    bus.close().await;
    done
}

fn fault(error: ringfence_bus::BusError) -> CliError {
    CliError::service("dead-letter", "cannot ask the broker", error)
}

async fn connect(settings: &Settings) -> Result<AmqpBus, CliError> {
    if settings.bus.url.is_none() {
        return Err(CliError::config(
            "bus.url is not set, so that there is no broker to ask; name the services' configuration with --config, or set \
             RINGFENCE_BUS_URL. A standalone service has no broker: its dead letters are in its memory and end with it, and its \
             log tells each with the words \"a message went to the dead letters\"",
        ));
    }
    let config = parts::broker_config("dead-letter", "cli", settings)?;
    AmqpBus::connect(config).await.map_err(fault)
}

async fn list(bus: &AmqpBus, limit: u16, screen: &mut Screen) -> Result<(), CliError> {
    let survey = bus.survey_dead_letters(limit).await.map_err(fault)?;
    if screen.is_for_programs() {
        return screen.data(&json(&survey));
    }
    if survey.queues.is_empty() {
        return screen.line("there are no dead letters");
    }
    screen.table(queues(&survey))?;
    if survey.newest.is_empty() {
        return Ok(());
    }
    screen.line("")?;
    screen.table(newest(&survey.newest))
}

async fn purge(bus: &AmqpBus, queue: Option<&str>, screen: &mut Screen) -> Result<(), CliError> {
    let count = bus.remove_dead_letters(queue).await.map_err(fault)?;
    if screen.is_for_programs() {
        return screen.data(&json!({ "queue": queue, "removed": count }));
    }
    let of = queue.map(|queue| format!(" of {queue}")).unwrap_or_default();
    screen.line(match count {
        1 => format!("1 dead letter{of} was removed"),
        count => format!("{count} dead letters{of} were removed"),
    })
}

fn queues(survey: &Survey) -> Table {
    let mut table = Table::new(&["QUEUE", "DEAD LETTERS"]);
    for (queue, count) in &survey.queues {
        table.row([named(queue), count.to_string().into()]);
    }
    table
}

fn newest(letters: &[DeadLetter]) -> Table {
    let mut table = Table::new(&[
        "DIED", "QUEUE", "TYPE", "HOST", "ATTEMPT", "WHY", "BYTES", "MESSAGE",
    ]);
    for letter in letters {
        let about = letter.about();
        table.row([
            Cell::maybe(letter.died_at.map(time)),
            named(&letter.queue),
            named(&letter.kind),
            Cell::maybe(about.host),
            Cell::maybe(about.attempt),
            named(&letter.reason),
            letter.bytes.to_string().into(),
            named(&letter.id),
        ]);
    }
    table
}

fn named(text: &str) -> Cell {
    Cell::maybe(Some(text).filter(|text| !text.is_empty()))
}

fn json(survey: &Survey) -> Value {
    let queues = survey.queues.iter();
    let letters = survey.newest.iter().map(|letter| {
        let about = letter.about();
        json!({
            "id": letter.id, "type": letter.kind, "queue": letter.queue, "reason": letter.reason,
            "died_at": letter.died_at, "bytes": letter.bytes, "host": about.host, "attempt": about.attempt,
        })
    });
    json!({
        "queues": queues.map(|(queue, count)| json!({ "queue": queue, "count": count })).collect::<Vec<_>>(),
        "dead_letters": letters.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ringfence_core::Timestamp;

    use super::*;

    #[test]
    fn a_forged_message_commands_no_terminal() {
        let died_at: Timestamp = "2026-01-31T12:00:00Z".parse().unwrap();
        let letter = DeadLetter {
            id: "m1".to_owned(),
            kind: "task.v1\x1b[2J".to_owned(),
            queue: "ringfence.tasks.power.default".to_owned(),
            reason: "rejected".to_owned(),
            died_at: Some(died_at),
            bytes: 50,
            body: br#"{"host":"c1","host_id":"h","attempt":{"operation_id":"op","number":2}}"#.to_vec(),
        };
        let survey = Survey {
            queues: BTreeMap::from([(letter.queue.clone(), 3)]),
            newest: vec![letter],
        };
        let text = queues(&survey).render(None, false, false);
        assert!(text.contains("ringfence.tasks.power.default  3\n"), "{text}");
        let expected = "\
DIED                  QUEUE                          TYPE         HOST  ATTEMPT  WHY       BYTES  MESSAGE
2026-01-31 12:00:00Z  ringfence.tasks.power.default  task.v1 [2J  c1    op/2     rejected  50     m1
";
        assert_eq!(newest(&survey.newest).render(None, false, false), expected);
        assert_eq!(json(&survey)["dead_letters"][0]["attempt"], "op/2");
    }
}
