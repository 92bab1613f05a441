//! Drawing.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line as Row, Span};
use ratatui::widgets::{Block, Paragraph};
use ringfence_core::Timestamp;

use super::model::{BriefHost, Need, Site};
use super::state::{Line, Shown, State, lines};
use crate::client::view::{Attempt, Operation, Task};
use crate::output::plain;

const KEYS: &str = "↑↓ choose   Enter open   Esc back   q quit";

/// Draws the screen.
pub fn draw(frame: &mut Frame<'_>, state: &mut State, now: Timestamp) {
    let [top, middle, bottom] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(0), Constraint::Length(1)])
            .areas(frame.area());
    let rows = match state.shown() {
        Shown::Overview => overview(state, now),
        Shown::Operation => operation(state, now),
    };
    frame.render_widget(headline(state), top);
    // What is chosen, or as much of the end as there is, stays in sight.
    let height = usize::from(middle.height);
    let first = match state.shown() {
        Shown::Overview => rows.chosen.saturating_sub(height.saturating_sub(3)),
        Shown::Operation => {
            state.scrolled = state.scrolled.min(rows.all.len().saturating_sub(height));
            state.scrolled
        }
    };
    let sight: Vec<Row<'_>> = rows.all.into_iter().skip(first).take(height).collect();
    frame.render_widget(Paragraph::new(sight).block(Block::new()), middle);
    let told = state.fault.as_ref().map_or_else(
        || Row::from(KEYS).style(quiet()),
        |why| Row::from(format!("OUT OF DATE: {why}")).style(bad()),
    );
    frame.render_widget(told, bottom);
}

/// Rows, and which of them is chosen.
#[derive(Default)]
struct Rows<'a> {
    all: Vec<Row<'a>>,
    chosen: usize,
}

impl<'a> Rows<'a> {
    fn title(&mut self, text: String) {
        if !self.all.is_empty() {
            self.all.push(Row::default());
        }
        self.all
            .push(Row::from(text).style(Style::new().add_modifier(Modifier::BOLD)));
    }

    fn push(&mut self, row: impl Into<Row<'a>>) {
        self.all.push(row.into());
    }
}

fn quiet() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

fn bad() -> Style {
    Style::new().fg(Color::Red).add_modifier(Modifier::BOLD)
}

fn headline(state: &State) -> Row<'static> {
    let Some(site) = &state.site else {
        return Row::from("Ringfence");
    };
    let (all, up) = (
        site.count(|_| true),
        site.count(|host| host.failure_state == "UP" && !host.is_fenced()),
    );
    let needs = site.needs().len();
    let hosts = format!("{up} of {all} hosts are UP and UNFENCED");
    let bold = Style::new().add_modifier(Modifier::BOLD);
    match needs {
        0 => Row::from(format!("Nothing needs you. {hosts}")).style(bold),
        1 => Row::from(format!("1 thing needs you. {hosts}")).style(bad()),
        more => Row::from(format!("{more} things need you. {hosts}")).style(bad()),
    }
}

fn overview(state: &mut State, now: Timestamp) -> Rows<'static> {
    let mut rows = Rows::default();
    let Some(site) = &state.site else {
        rows.push("reading");
        return rows;
    };
    let needs = site.needs();
    let all = lines(site, &needs);
    state.chosen = state.chosen.min(all.len().saturating_sub(1));
    let mut part = "";
    for (at, line) in all.iter().enumerate() {
        let title = match line {
            Line::Need(_) => "NEEDS A PERSON",
            Line::Operation(operation) if operation.status == "held" => "HELD BY SAFEGUARDS",
            Line::Operation(_) => "UNDER WAY",
        };
        if title != part {
            rows.title(title.to_owned());
            part = title;
        }
        let is_chosen = at == state.chosen;
        if is_chosen {
            rows.chosen = rows.all.len();
        }
        match line {
            Line::Need(need) => add_need(&mut rows, need, is_chosen),
            Line::Operation(operation) => rows.push(brief(operation, is_chosen, now)),
        }
    }
    add_hosts(&mut rows, site);
    rows
}

fn marker(is_chosen: bool) -> Span<'static> {
    Span::from(if is_chosen { "> " } else { "  " })
}

fn add_need(rows: &mut Rows<'static>, need: &Need, is_chosen: bool) {
    rows.push(Row::from(vec![
        marker(is_chosen),
        Span::styled(plain(&need.what), bad()),
    ]));
    if is_chosen {
        rows.push(Row::from(format!("    {}", plain(&need.why))).style(quiet()));
    }
    rows.push(format!("    {}", need.todo));
}

fn brief(operation: &Operation, is_chosen: bool, now: Timestamp) -> Row<'static> {
    let done = operation.tasks().filter(|task| is_done(task)).count();
    let all = operation.tasks().count();
    let age = operation.created_at.map(|at| age(at, now)).unwrap_or_default();
    Row::from(vec![
        marker(is_chosen),
        Span::from(format!(
            "{:<24} {:<10} ",
            plain(operation.host_name()),
            operation.kind
        )),
        Span::from(format!("{done}/{all} {age:>6}  ")),
        Span::styled(plain(&operation.detail), quiet()),
    ])
}

fn is_done(task: &Task) -> bool {
    matches!(task.status.as_str(), "confirmed" | "skipped")
}

/// One sign for each host: its state by letter and colour.
fn add_hosts(rows: &mut Rows<'static>, site: &Site) {
    rows.title(
        "HOSTS   . UP   ? UNKNOWN   ! UNREACHABLE   F FENCED   * operation   n needs a person".to_owned(),
    );
    for segment in &site.overview.segments {
        let mut told = vec![Span::from(format!(
            "{} ({})",
            plain(&segment.name),
            segment.hosts.len()
        ))];
        if segment.is_suspended {
            told.push(Span::styled("  suspended", Style::new().fg(Color::Yellow)));
        }
        rows.push(Row::from(told));
        for hosts in segment.hosts.chunks(80) {
            let signs = hosts.iter().map(sign);
            rows.push(Row::from_iter(std::iter::once(Span::from("  ")).chain(signs)));
        }
    }
}

fn sign(host: &BriefHost) -> Span<'static> {
    let status = host.operation.as_ref().map(|live| live.status.as_str());
    let (letter, colour) = match (status, host.is_fenced(), host.failure_state.as_str()) {
        (Some("needs_operator"), ..) => ("n", Color::Red),
        (Some(_), ..) => ("*", Color::Yellow),
        (None, true, _) => ("F", Color::Magenta),
        (None, false, "UP") => (".", Color::Green),
        (None, false, "UNREACHABLE") => ("!", Color::Red),
        (None, false, _) => ("?", Color::DarkGray),
    };
    Span::styled(letter, Style::new().fg(colour))
}

fn operation(state: &State, now: Timestamp) -> Rows<'static> {
    let mut rows = Rows::default();
    let Some(operation) = &state.operation else {
        rows.push("reading");
        return rows;
    };
    let age = operation
        .created_at
        .map(|at| age(at, operation.finished_at.unwrap_or(now)));
    rows.title(format!(
        "{} of {}: {}   generation {}   {}",
        operation.kind,
        plain(operation.host_name()),
        operation.status,
        operation.generation,
        age.unwrap_or_default()
    ));
    for line in [&operation.detail, &operation.reason] {
        rows.push(Row::from(format!("  {}", plain(line))));
    }
    rows.push(Row::from(format!("  asked for by {}", plain(&operation.requested_by))).style(quiet()));
    for (number, stage) in operation.stages.iter().enumerate() {
        rows.title(format!("STAGE {}", number + 1));
        stage.tasks.iter().for_each(|task| add_task(&mut rows, task));
    }
    if !operation.proofs.is_empty() {
        rows.title("PROOFS".to_owned());
    }
    for proof in &operation.proofs {
        let told = format!(
            "  {} by {}: {}",
            proof.kind,
            plain(&proof.source),
            plain(&proof.detail)
        );
        rows.push(told);
    }
    rows
}

fn add_task(rows: &mut Rows<'static>, task: &Task) {
    let style = match task.status.as_str() {
        "confirmed" => Style::new().fg(Color::Green),
        "failed" => bad(),
        "running" => Style::new().fg(Color::Yellow),
        _ => Style::new(),
    };
    let workload = task.workload.as_deref().map(|name| format!(" {}", plain(name)));
    let detail = task.detail.as_deref().map(plain).unwrap_or_default();
    rows.push(Row::from(vec![
        Span::from(format!("  {}{} ", task.kind, workload.unwrap_or_default())),
        Span::styled(task.status.clone(), style),
        Span::styled(format!("  {detail}"), quiet()),
    ]));
    task.attempts.iter().for_each(|attempt| rows.push(tried(attempt)));
}

fn tried(attempt: &Attempt) -> Row<'static> {
    let outcome = attempt.outcome.as_deref().unwrap_or(&attempt.status);
    let seen = attempt
        .observation
        .as_ref()
        .map(|seen| format!(", seen {}", plain(&seen.state)));
    let worker = attempt
        .worker
        .as_deref()
        .map(|name| format!(" by {}", plain(name)));
    let detail = attempt.detail.as_deref().map(|text| format!(": {}", plain(text)));
    Row::from(format!(
        "    attempt {} {}{}: {outcome}{}{}",
        attempt.number,
        plain(&attempt.method),
        worker.unwrap_or_default(),
        seen.unwrap_or_default(),
        detail.unwrap_or_default()
    ))
}

fn age(since: Timestamp, until: Timestamp) -> String {
    let seconds = (until - since).num_seconds().max(0);
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3600),
    }
}
