//! `ringfence event`.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::Value;
use tokio::time::sleep;

use super::completed::hosts;
use super::session::{Session, views};
use crate::client::view::Event;
use crate::client::{Frame, Parser, Request};
use crate::error::CliError;
use crate::output::{Cell, Table, fields, time};

/// The pause before the first try to reach a service that is away; doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// `ringfence event ...`
#[derive(Debug, Subcommand)]
pub enum EventCommand {
    /// Lists the newest events, or the events after a number
    List(ListArgs),
    /// Prints events as they happen, until the command is stopped
    Tail(TailArgs),
}

/// `ringfence event list`
#[derive(Debug, Args)]
pub struct ListArgs {
    /// The events after this number, the oldest first; 0: from the first one that is kept; absent: the newest events
    #[arg(long, value_name = "NUMBER")]
    after: Option<u64>,
    /// Only events of this host
    #[arg(long, add = hosts())]
    host: Option<String>,
    /// Only events of this type, such as host.fenced
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// How many to list at most
    #[arg(long, default_value_t = 50, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
}

/// `ringfence event tail`
#[derive(Debug, Args)]
pub struct TailArgs {
    /// Begins after the event of this number; 0: with the first of all; absent: with the next one
    #[arg(long, value_name = "NUMBER")]
    after: Option<u64>,
    /// Only events of this host
    #[arg(long, add = hosts())]
    host: Option<String>,
    /// Ends after so many events
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
}

pub async fn run(command: EventCommand, session: &mut Session) -> Result<(), CliError> {
    match command {
        EventCommand::List(args) => list(args, session).await,
        EventCommand::Tail(args) => tail(args, session).await,
    }
}

/// Lists events, the oldest first.
async fn list(args: ListArgs, session: &mut Session) -> Result<(), CliError> {
    // The first event that is kept may have any number.
    let after = args.after.filter(|after| *after > 0);
    let newest = args.after.is_none().then_some("sequence:desc");
    let request = Request::get(&["events"])
        .with("after", after)
        .with("host", args.host.as_deref())
        .with("type", args.kind.as_deref())
        .with("limit", Some(args.limit))
        .with("sort", newest);
    let mut list = session.client.send(request).await?.body;
    if let Some(events) = list["events"].as_array_mut().filter(|_| newest.is_some()) {
        events.reverse();
    }
    if session.screen.is_for_programs() {
        return session.screen.data(&list);
    }
    session.screen.table(table(&views(&list, "events")?))
}

fn table(events: &[Event]) -> Table {
    let mut table = Table::new(&["NUMBER", "AT", "TYPE", "HOST", "GENERATION", "DATA"]);
    for event in events {
        table.row([
            event.sequence.to_string().into(),
            time(event.occurred_at).into(),
            event.kind.as_str().into(),
            Cell::maybe(event.host.clone()),
            Cell::maybe(event.generation.map(|number| number.to_string())),
            fields(&event.data, &["generation"]).into(),
        ]);
    }
    table
}

async fn tail(args: TailArgs, session: &mut Session) -> Result<(), CliError> {
    let mut tail = Tail {
        last: args.after,
        left: args.count,
        host: args.host,
        pause: FIRST_PAUSE,
    };
    let mut was_there = false;
    let mut is_away = false;
    loop {
        match tail.listen(session, &mut was_there, &mut is_away).await {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(error) if was_there && error.is_passing() => {}
            Err(error) => return Err(error),
        }
        if !is_away {
            session
                .screen
                .note("the stream broke off; trying to continue after the last event");
        }
        is_away = true;
        sleep(tail.pause).await;
        tail.pause = (tail.pause * 2).min(LONGEST_PAUSE);
    }
}

struct Tail {
    last: Option<u64>,
    left: Option<u64>,
    host: Option<String>,
    pause: Duration,
}

impl Tail {
    /// Prints the events of one stream; returns whether no more are wanted.
    async fn listen(
        &mut self,
        session: &mut Session,
        was_there: &mut bool,
        is_away: &mut bool,
    ) -> Result<bool, CliError> {
        let mut stream = session.client.stream(self.host.as_deref(), self.last).await?;
        *was_there = true;
        let mut parser = Parser::default();
        while let Some(bytes) = stream.chunk().await? {
            let frames = parser.push(&bytes)?;
            for frame in frames {
                if frame.kind.as_deref() == Some("events.gone") {
                    // The next request gets the service's own error, with what to do.
                    return Ok(false);
                }
                self.pause = FIRST_PAUSE;
                *is_away = false;
                self.print(session, &frame)?;
                if self.left == Some(0) {
                    return Ok(true);
                }
            }
            self.last = parser.last_id().and_then(|id| id.parse().ok()).or(self.last);
        }
        Ok(false)
    }

    fn print(&mut self, session: &mut Session, frame: &Frame) -> Result<(), CliError> {
        let unreadable = |error: serde_json::Error| CliError::Answer {
            url: "the stream of events".to_owned(),
            why: error.to_string(),
        };
        let event: Value = serde_json::from_str(&frame.data).map_err(unreadable)?;
        if session.screen.is_for_programs() {
            session.screen.data_line(&event)?;
        } else {
            session
                .screen
                .line(line(&serde_json::from_value(event).map_err(unreadable)?))?;
        }
        self.left = self.left.map(|left| left.saturating_sub(1));
        Ok(())
    }
}

fn line(event: &Event) -> String {
    let (number, at) = (event.sequence, time(event.occurred_at));
    let host = event.host.as_deref().unwrap_or("-");
    let generation = event.generation.map(|number| format!("generation {number}  "));
    let text = format!(
        "{number:>6}  {at}  {:<22} {host}  {}{}",
        event.kind,
        generation.unwrap_or_default(),
        // The generation is printed before them.
        fields(&event.data, &["generation"])
    );
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn an_event_is_one_line() {
        let event: Event = from_value(json!({
            "sequence": 42, "id": "e", "type": "host.fenced", "host": "c1", "host_id": "h", "generation": 3,
            "occurred_at": "2026-01-31T12:00:00Z", "data": {"proofs": [{"kind": "power.off", "source": "bmc"}], "generation": 3, "by": "alice", "none": null},
        }))
        .unwrap();
        let expected = "    42  2026-01-31 12:00:00Z  host.fenced            c1  generation 3  by=alice proofs=power.off by bmc";
        assert_eq!(line(&event), expected);
        let event: Event = from_value(json!({
            "sequence": 43, "id": "e", "type": "subscription.disabled", "host": null, "host_id": null, "generation": null,
            "occurred_at": "2026-01-31T12:00:00Z", "data": {"subscription": "pager"},
        }))
        .unwrap();
        let expected = "    43  2026-01-31 12:00:00Z  subscription.disabled  -  subscription=pager";
        assert_eq!(line(&event), expected);
    }
}
