//! `ringfence top`: what needs a person, what is under way and every host, live in a terminal; and one operation as it happens.

mod draw;
mod feed;
mod model;
mod state;
#[cfg(test)]
mod tests;

use std::io::IsTerminal;
use std::time::Duration;

use clap::Args;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::{DefaultTerminal, Terminal, crossterm};
use tokio::sync::mpsc;

use super::session::Session;
use crate::args::RemoteArgs;
use crate::clock::now;
use crate::config::Environment;
use crate::error::CliError;
use feed::{Feed, Wanted};
use state::{Shown, State};

/// The size of a picture that is printed, in characters.
const PRINTED: (u16, u16) = (100, 40);
/// Between two pictures while nothing else happens: ages go on.
const TICK: Duration = Duration::from_secs(1);

/// `ringfence top`
#[derive(Debug, Args)]
pub struct TopArgs {
    /// How to reach the service.
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// Begins with the newest operation of this host
    #[arg(long, add = super::completed::hosts())]
    host: Option<String>,
    /// Prints what it would show and ends, also where there is no terminal
    #[arg(long)]
    once: bool,
}

/// What happens to the program.
enum Happening {
    Key(KeyEvent),
    Resized,
    Read(Box<feed::Reading>),
    Tick,
}

pub async fn run(args: TopArgs, environment: &Environment) -> Result<(), CliError> {
    let mut session = Session::open(&args.remote, environment)?;
    if session.screen.is_for_programs() {
        return Err(CliError::Usage(
            "top shows a screen for people; programs read `ringfence host list` and `ringfence operation list`"
                .to_owned(),
        ));
    }
    let mut wanted = Wanted::Overview;
    if let Some(host) = &args.host {
        wanted = Wanted::Operation(feed::newest_operation(&session.client, host).await?);
    }
    if args.once {
        return once(&mut session, wanted).await;
    }
    if !std::io::stdout().is_terminal() {
        return Err(CliError::Usage(
            "top needs a terminal; with --once it prints what it would show".to_owned(),
        ));
    }
    let terminal = ratatui::try_init()?;
    let shown = show(terminal, session, wanted).await;
    ratatui::restore();
    shown
}

async fn once(session: &mut Session, wanted: Wanted) -> Result<(), CliError> {
    let reading = feed::read(&session.client, &wanted).await;
    let mut state = State::new(wanted);
    state.take(reading)?;
    let mut terminal = match Terminal::new(TestBackend::new(PRINTED.0, PRINTED.1)) {
        Ok(terminal) => terminal,
        Err(never) => match never {},
    };
    match terminal.draw(|frame| draw::draw(frame, &mut state, now())) {
        Ok(_) => {}
        Err(never) => match never {},
    }
    let shown = text(terminal.backend());
    // The last line says what the keys do.
    let (shown, _) = shown.trim_end().rsplit_once('\n').unwrap_or_default();
    session.screen.text(&format!("{}\n", shown.trim_end()))
}

/// The characters of a picture, without the blanks that end lines and the lines that are blank at its end.
fn text(backend: &TestBackend) -> String {
    let buffer = backend.buffer();
    let width = usize::from(buffer.area.width);
    let lines = buffer.content.chunks(width).map(|cells| {
        let line: String = cells.iter().map(ratatui::buffer::Cell::symbol).collect();
        line.trim_end().to_owned()
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    format!("{}\n", text.trim_end())
}

async fn show(mut terminal: DefaultTerminal, session: Session, wanted: Wanted) -> Result<(), CliError> {
    let (send, mut happenings) = mpsc::channel(16);
    let keys = send.clone();
    // Ends with the process: a read of the terminal cannot be ended.
    std::thread::spawn(move || read_keys(&keys));
    let mut state = State::new(wanted.clone());
    let feed = Feed::start(session.client, wanted, send.clone());
    let mut ticks = tokio::time::interval(TICK);
    loop {
        terminal.draw(|frame| draw::draw(frame, &mut state, now()))?;
        let happening = tokio::select! {
            happening = happenings.recv() => happening.unwrap_or(Happening::Tick),
            _ = ticks.tick() => Happening::Tick,
        };
        match happening {
            Happening::Key(key) if is_end(key, &state) => return Ok(()),
            Happening::Key(key) => {
                if let Some(wanted) = press(key, &mut state) {
                    feed.want(wanted);
                }
            }
            Happening::Read(reading) => state.take(*reading)?,
            Happening::Resized | Happening::Tick => {}
        }
    }
}

fn read_keys(send: &mpsc::Sender<Happening>) {
    while let Ok(event) = crossterm::event::read() {
        let happening = match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => Happening::Key(key),
            Event::Resize(..) => Happening::Resized,
            Event::Key(_) | Event::FocusGained | Event::FocusLost | Event::Mouse(_) | Event::Paste(_) => {
                continue;
            }
        };
        if send.blocking_send(happening).is_err() {
            return;
        }
    }
}

fn is_end(key: KeyEvent, state: &State) -> bool {
    let is_break = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    let is_back = key.code == KeyCode::Esc && matches!(state.shown(), Shown::Overview);
    is_break || is_back || key.code == KeyCode::Char('q')
}

/// Moves, and opens and closes operations. What is to be read then, if that changes.
fn press(key: KeyEvent, state: &mut State) -> Option<Wanted> {
    match key.code {
        KeyCode::Up | KeyCode::Char('k') => state.step(-1),
        KeyCode::Down | KeyCode::Char('j') => state.step(1),
        KeyCode::PageUp => state.step(-10),
        KeyCode::PageDown => state.step(10),
        KeyCode::Home => state.step(isize::MIN),
        KeyCode::End => state.step(isize::MAX),
        KeyCode::Enter | KeyCode::Right => return state.open(),
        KeyCode::Esc | KeyCode::Left | KeyCode::Backspace => return state.close(),
        _ => {}
    }
    None
}
