//! IPMI over LAN, by `ipmitool`.
//!
//! The password is in the child's environment only: argv is readable by every user of the machine.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ringfence_bus::ValidateRequest;
use ringfence_core::{
    Declaration, FencingKind, FrozenMethod, Observation, ObservedState, Parameter, Problem, Resource, Secret,
    error_chain, value_of,
};
use tokio::time::Instant;

use crate::act::{self, Answer, Device, Reading};
use crate::driver::{Clock, Driver, Report};
use crate::drivers::{Entry, password, required};
use crate::process::{self, Ended, Input, ProcessError, Program};
use crate::{Secrets, WorkerError};
use ringfence_backends::TimeGiven;

const MAX_OUTPUT_BYTES: usize = 16 * 1024;

/// What `ipmitool` prints when a BMC refuses a session for good. A wrong password is not in the list: for it `ipmitool` prints what it
/// prints for a silent BMC.
const DEFINITE: [&str; 5] = [
    "invalid authentication algorithm",
    "invalid integrity algorithm",
    "no matching cipher suite",
    "unauthorized role or privilege level",
    "unauthorized name",
];

const PORT: &str = "623";
const CIPHER: &str = "17";
const PRIVILEGE: &str = "ADMINISTRATOR";

pub(super) static DRIVER: Entry = Entry {
    declaration: Declaration {
        name: "ipmi",
        about: "IPMI over LAN, by ipmitool",
        resources: &[Resource::Power],
        parameters: &[
            Parameter::required("address", "the BMC's name or address").tells_apart(),
            Parameter::optional("port", "the BMC's UDP port")
                .tells_apart()
                .by_default(PORT)
                .allowing("1 to 65535 is allowed", |port| {
                    port.parse::<u16>().is_ok_and(|port| port != 0)
                }),
            Parameter::required("username", "the BMC's user"),
            Parameter::optional("cipher", "the cipher suite")
                .by_default(CIPHER)
                .allowing("3 or 17 is allowed", |cipher| matches!(cipher, "3" | "17")),
            Parameter::optional("privilege", "the privilege level of the session")
                .by_default(PRIVILEGE)
                .allowing("OPERATOR or ADMINISTRATOR is allowed", |level| {
                    matches!(level, "OPERATOR" | "ADMINISTRATOR")
                }),
        ],
        secrets: &[Secret {
            name: "password",
            is_required: true,
        }],
        others: None,
        place: None,
        lingers_s: 30,
        device: |parameters| {
            let (address, port) = (value_of(parameters, "address")?, value_of(parameters, "port"));
            Some(format!("ipmi/{address}:{}", port.unwrap_or(PORT)))
        },
        can_prove: |_| true,
    },
    make: |settings| Arc::new(Ipmi::new(settings.ipmitool.clone(), Arc::clone(&settings.clock))),
};

/// The driver `ipmi`.
pub struct Ipmi {
    ipmitool: PathBuf,
    clock: Clock,
}

impl Ipmi {
    /// With the program to use.
    #[must_use]
    pub fn new(ipmitool: PathBuf, clock: Clock) -> Self {
        Self { ipmitool, clock }
    }
}

#[async_trait]
impl Driver for Ipmi {
    async fn act_and_observe(
        &self,
        kind: FencingKind,
        method: &FrozenMethod,
        secrets: &Secrets,
        budget: Duration,
    ) -> Report {
        let time = TimeGiven::of(budget);
        match Bmc::new(&self.ipmitool, method, secrets) {
            Ok(bmc) => act::act_and_observe(&bmc, kind, secrets, &self.clock, time).await,
            Err(error) => error.into(),
        }
    }

    async fn observe(
        &self,
        method: &FrozenMethod,
        secrets: &Secrets,
        budget: Duration,
    ) -> Result<Observation, WorkerError> {
        let until = Instant::now() + budget;
        let bmc = Bmc::new(&self.ipmitool, method, secrets)?;
        act::observe(&bmc, secrets, &self.clock, until).await
    }

    async fn validate(&self, _: &ValidateRequest) -> Vec<Problem> {
        if self.ipmitool.is_file() {
            return Vec::new();
        }
        vec![Problem::new(
            "driver",
            format!(
                "needs {}, which is not installed on the worker",
                self.ipmitool.display()
            ),
        )]
    }
}

struct Bmc<'a> {
    ipmitool: &'a Path,
    address: &'a str,
    port: &'a str,
    username: &'a str,
    cipher: &'a str,
    privilege: &'a str,
    password: &'a str,
}

impl<'a> Bmc<'a> {
    fn new(ipmitool: &'a Path, method: &'a FrozenMethod, secrets: &'a Secrets) -> Result<Self, WorkerError> {
        let optional = |name: &str| value_of(&method.parameters, name);
        let password = password(method, secrets)?;
        if password.contains('\0') {
            return Err(WorkerError::refused(
                "the password holds a NUL, which no environment variable can",
            ));
        }
        Ok(Self {
            ipmitool,
            address: required(method, "address")?,
            port: optional("port").unwrap_or(PORT),
            username: required(method, "username")?,
            cipher: optional("cipher").unwrap_or(CIPHER),
            privilege: optional("privilege").unwrap_or(PRIVILEGE),
            password,
        })
    }

    /// `-N 1 -R 2`: an unreachable BMC costs 6 s instead of 20 s.
    async fn ipmitool(&self, command: &'static str, until: Instant) -> Result<Ended, ProcessError> {
        let args = [
            ["-I", "lanplus"],
            ["-C", self.cipher],
            ["-H", self.address],
            ["-p", self.port],
            ["-U", self.username],
            ["-L", self.privilege],
            ["-N", "1"],
            ["-R", "2"],
        ];
        let fixed = ["-E", "chassis", "power", command];
        let mut env = process::plain_environment();
        env.push(("IPMI_PASSWORD", OsString::from(self.password)));
        let program = Program {
            path: self.ipmitool.to_owned(),
            args: args.iter().flatten().chain(&fixed).map(OsString::from).collect(),
            env,
            input: Input::Piped(Vec::new()),
            max_output_bytes: MAX_OUTPUT_BYTES,
        };
        process::run(program, until).await
    }
}

#[async_trait]
impl Device for Bmc<'_> {
    async fn read(&self, until: Instant) -> Reading {
        match self.ipmitool("status", until).await {
            Ok(ended) => read_status(&ended),
            Err(error @ ProcessError::Missing(_)) => Reading::Refused(error.to_string()),
            Err(error) => Reading::Unclear(error_chain(&error)),
        }
    }

    async fn command(&self, kind: FencingKind, until: Instant) -> Answer {
        let command = match kind {
            FencingKind::PowerOff => "off",
            FencingKind::PowerOn => "on",
            other => return Answer::Refused(format!("driver ipmi cannot do {other}")),
        };
        match self.ipmitool(command, until).await {
            Ok(ended) if is_definite(&ended) => Answer::Refused(words(&ended)),
            Ok(ended) => Answer::Sent(words(&ended)),
            Err(error @ ProcessError::Missing(_)) => Answer::Refused(error.to_string()),
            Err(error) => Answer::Sent(error_chain(&error)),
        }
    }

    fn pause(&self) -> Duration {
        Duration::from_secs(1)
    }
}

fn read_status(ended: &Ended) -> Reading {
    match (ended.code, ended.stdout.trim()) {
        (Some(0), text @ "Chassis Power is off") => Reading::State(ObservedState::Off, text.to_owned()),
        (Some(0), text @ "Chassis Power is on") => Reading::State(ObservedState::On, text.to_owned()),
        _ if is_definite(ended) => Reading::Refused(words(ended)),
        _ => Reading::Unclear(words(ended)),
    }
}

fn is_definite(ended: &Ended) -> bool {
    ended.code != Some(0) && DEFINITE.iter().any(|text| ended.stderr.contains(text))
}

/// What it printed, the answer first.
fn words(ended: &Ended) -> String {
    let text = format!("{} {}", ended.stdout.trim(), ended.stderr.trim());
    match (text.trim(), ended.code) {
        ("", Some(code)) => format!("ipmitool printed nothing and ended with {code}"),
        ("", None) => "ipmitool printed nothing and died of a signal".to_owned(),
        (text, _) => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(code: i32, stdout: &str, stderr: &str) -> Ended {
        Ended {
            code: Some(code),
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
        }
    }

    #[test]
    fn only_the_exact_words_are_a_state() {
        assert!(matches!(
            read_status(&ended(0, "Chassis Power is off\n", "")),
            Reading::State(ObservedState::Off, _)
        ));
        assert!(matches!(
            read_status(&ended(0, "Chassis Power is on\n", "")),
            Reading::State(ObservedState::On, _)
        ));
        for text in [
            "",
            "Chassis Power is offline",
            "Chassis Power is off\nChassis Power is on",
            "chassis power is off",
        ] {
            assert!(
                matches!(read_status(&ended(0, text, "")), Reading::Unclear(_)),
                "{text:?}"
            );
        }
        assert!(matches!(
            read_status(&ended(1, "Chassis Power is off", "")),
            Reading::Unclear(_)
        ));
    }

    #[test]
    fn a_cipher_that_the_bmc_does_not_speak_is_a_definite_no() {
        let text = "Error in open session response message : invalid authentication algorithm\n";
        assert!(matches!(read_status(&ended(1, "", text)), Reading::Refused(_)));
        let text = "Error: Unable to establish IPMI v2 / RMCP+ session\n";
        assert!(matches!(read_status(&ended(1, "", text)), Reading::Unclear(_)));
    }
}
