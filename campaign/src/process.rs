//! One process of the service, which is killed, halted and started again.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use parking_lot::{Mutex, MutexGuard};
use ringfence_tests::{Machine, Service};

use crate::clock::MachineClock;
use crate::log::Log;
use crate::proxy::Proxy;

/// Time from an unexpected end of the process to its next start.
const RESTART_AFTER: Duration = Duration::from_millis(300);

/// One process with its connections.
pub struct Process {
    /// The process's name.
    pub name: String,
    words: Vec<String>,
    variables: Vec<(String, String)>,
    /// The log text before its address, if it listens, and the connection to that address.
    pub front: Option<(&'static str, Proxy)>,
    /// The connection to the database.
    pub database: Option<Proxy>,
    /// The connection to the broker.
    pub broker: Option<Proxy>,
    /// The clock of the process's machine.
    pub clock: MachineClock,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    service: Option<Service>,
    starts: u32,
    down_until: Option<Instant>,
    halted_until: Option<Instant>,
    full_until: Option<Instant>,
}

impl Process {
    pub fn new(name: &str, words: &[&str], variables: Vec<(String, String)>, clock: MachineClock) -> Self {
        Self {
            name: name.to_owned(),
            words: words.iter().map(|&word| word.to_owned()).collect(),
            variables,
            front: None,
            database: None,
            broker: None,
            clock,
            state: Mutex::default(),
        }
    }

    /// Adds a variable to the environment.
    pub fn set(&mut self, name: &str, value: String) {
        self.variables.push((name.to_owned(), value));
    }

    /// Kills the process, as a loss of power would. It starts again after a time. Returns whether it ran.
    pub fn kill(&self, away: Duration) -> bool {
        let mut state = self.lock();
        let ran = state.service.is_some();
        if let Some(mut service) = state.service.take() {
            service.kill();
        }
        self.lead_nowhere();
        (state.halted_until, state.full_until) = (None, None);
        state.down_until = Some(Instant::now() + away);
        ran
    }

    /// Halts the process for a time, like an overloaded machine. Returns whether it ran.
    pub fn halt(&self, lasts: Duration) -> bool {
        let mut state = self.lock();
        if let Some(service) = &state.service {
            signal(service, Signal::SIGSTOP);
            state.halted_until = Some(Instant::now() + lasts);
        }
        state.service.is_some()
    }

    /// Makes the writes of the process fail for a time. Returns whether it ran.
    pub fn fill_disk(&self, lasts: Duration) -> bool {
        let mut state = self.lock();
        if let Some(service) = &state.service {
            limit_files(service, "0");
            state.full_until = Some(Instant::now() + lasts);
        }
        state.service.is_some()
    }

    /// Ends all faults of the process.
    pub fn heal(&self) {
        let now = Some(Instant::now());
        let mut state = self.lock();
        state.down_until = state.down_until.and(now);
        state.halted_until = state.halted_until.and(now);
        state.full_until = state.full_until.and(now);
        drop(state);
        self.ways().for_each(Proxy::heal);
    }

    /// Ends the process for good.
    pub fn end(&self) {
        if let Some(mut service) = self.lock().service.take() {
            service.kill();
        }
    }

    /// Does everything that is due: continues, starts again, finds the address.
    pub fn look(&self, machine: &Machine, log: &Log) {
        self.ways().for_each(Proxy::look);
        let mut state = self.lock();
        let now = Instant::now();
        let is_due = |until: Option<Instant>| until.is_some_and(|until| until <= now);
        let State {
            service,
            halted_until,
            full_until,
            ..
        } = &mut *state;
        if let Some(service) = service {
            if is_due(*halted_until) {
                signal(service, Signal::SIGCONT);
                *halted_until = None;
            }
            if is_due(*full_until) {
                limit_files(service, "unlimited");
                *full_until = None;
            }
        }
        if state.service.as_ref().is_some_and(has_ended) {
            log.note(&format!(
                "{} ended by itself, at its start {}",
                self.name, state.starts
            ));
            state.service = None;
            state.down_until = Some(now + RESTART_AFTER);
            self.lead_nowhere();
        }
        if state.service.is_none() && state.down_until.is_none_or(|until| until <= now) {
            self.start(&mut state, machine);
        }
        self.find(&state);
    }

    fn start(&self, state: &mut State, machine: &Machine) {
        state.starts += 1;
        state.down_until = None;
        let words: Vec<_> = self.words.iter().map(String::as_str).collect();
        let variables: Vec<_> = self
            .variables
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let name = format!("{}.{}", self.name, state.starts);
        state.service = Some(machine.start_with(&name, &words, &variables));
    }

    /// Finds the present address, which changes with every start.
    fn find(&self, state: &State) {
        if let (Some((ready, front)), Some(service)) = (&self.front, &state.service) {
            let printed = service.printed();
            let marker = format!("{ready} address=");
            let rest = printed.split_once(&marker).map(|(_, rest)| rest);
            let address = rest.and_then(|rest| rest.split_once(char::is_whitespace));
            front.lead_to(address.and_then(|(address, _)| address.parse::<SocketAddr>().ok()));
        }
    }

    fn lead_nowhere(&self) {
        if let Some((_, front)) = &self.front {
            front.lead_to(None);
        }
    }

    fn ways(&self) -> impl Iterator<Item = &Proxy> {
        let front = self.front.as_ref().map(|(_, front)| front);
        front.into_iter().chain(&self.database).chain(&self.broker)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

fn signal(service: &Service, signal: Signal) {
    if let Ok(pid) = i32::try_from(service.pid()) {
        // Fails only if the process has ended.
        let _ = kill(Pid::from_raw(pid), signal);
    }
}

fn limit_files(service: &Service, bytes: &str) {
    let limited = std::process::Command::new("prlimit")
        .args(["--pid", &service.pid().to_string(), &format!("--fsize={bytes}:")])
        .status();
    // Fails only if the process has ended.
    let _ = limited;
}

fn has_ended(service: &Service) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", service.pid())).unwrap_or_default();
    let state = stat
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.trim_start().chars().next());
    matches!(state, None | Some('Z' | 'X'))
}
