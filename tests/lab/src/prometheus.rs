//! A real Prometheus whose series a test sets, and a real Alertmanager that it tells.

use std::fmt::Write;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::error::LabError;
use crate::home::{Home, wait_ready};
use crate::leash::{Leash, Start};
use crate::net::free_tcp_port;
use crate::programs::find_program;

const READY_LIMIT: Duration = Duration::from_secs(60);
const RULES: &str = "rules.yml";

/// A Prometheus on a loopback port of its own that scrapes itself each second, as the job `prometheus`.
#[derive(Debug)]
pub struct Prometheus {
    leash: Leash,
    port: u16,
    home: Home,
}

impl Prometheus {
    /// Starts it without a series of a test's own.
    ///
    /// # Errors
    /// It is not installed, or does not answer within a minute.
    pub fn start() -> Result<Self, LabError> {
        Self::telling(None)
    }

    /// Starts it, with an Alertmanager that it tells of the alert `RaidDegraded`: of each series `raid_degraded` above 0.
    ///
    /// # Errors
    /// Those of [`Prometheus::start`].
    pub fn telling(alertmanager: Option<&Alertmanager>) -> Result<Self, LabError> {
        let program = find_program("prometheus").ok_or(LabError::Missing {
            program: "prometheus",
            package: "prometheus",
        })?;
        let home = Home::new("prometheus")?;
        let port = free_tcp_port()?;
        home.write(
            "prometheus.yml",
            &configuration(port, alertmanager.map(|told| told.port)),
        )?;
        home.write(RULES, &rules(&[]))?;
        home.make_folder("data")?;
        let log = home.join("prometheus.log");
        let leash = Leash::start(Start {
            arguments: vec![
                format!("--config.file={}", home.text("prometheus.yml")),
                format!("--storage.tsdb.path={}", home.text("data")),
                format!("--web.listen-address=127.0.0.1:{port}"),
                // It knows its Alertmanager after some seconds; what is told before is lost until it is told again.
                "--rules.alert.resend-delay=1s".to_owned(),
            ],
            ..Start::new(&program, &log, home.path())
        })?;
        wait_ready("prometheus", &leash, &log, READY_LIMIT, || is_ready(port))?;
        Ok(Self { leash, port, home })
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Has these series, each the value of an expression, such as `vector(1)`, under a name and with a label `host`; those that it had are gone. It takes a second
    /// or two.
    ///
    /// # Errors
    /// The file cannot be written, or the signal cannot be sent.
    pub fn record(&self, series: &[(&str, &str, &str)]) -> Result<(), LabError> {
        self.home.write(RULES, &rules(series))?;
        self.leash.signal(Signal::SIGHUP)
    }

    /// Makes it accept connections and answer no request.
    ///
    /// # Errors
    /// If the signal could not be sent.
    pub fn silence(&self) -> Result<(), LabError> {
        self.leash.signal(Signal::SIGSTOP)
    }

    /// Makes it answer again.
    ///
    /// # Errors
    /// If the signal could not be sent.
    pub fn wake(&self) -> Result<(), LabError> {
        self.leash.signal(Signal::SIGCONT)
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // A stopped process does not hear SIGTERM.
        let _ = self.wake();
    }
}

/// Its port is open before it hears a SIGHUP, which would end it until then.
fn is_ready(port: u16) -> bool {
    let asked = ureq::get(format!("http://127.0.0.1:{port}/-/ready"));
    let limit = Some(Duration::from_secs(1));
    let asked = asked.config().timeout_global(limit).build();
    asked.call().is_ok()
}

fn configuration(port: u16, alertmanager: Option<u16>) -> String {
    let told = alertmanager.map_or_else(String::new, |port| {
        format!("alerting: {{alertmanagers: [{{static_configs: [{{targets: ['127.0.0.1:{port}']}}]}}]}}\n")
    });
    format!(
        "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\n\
         rule_files: [{RULES}]\n\
         scrape_configs:\n  - job_name: prometheus\n    static_configs: [{{targets: ['127.0.0.1:{port}']}}]\n{told}"
    )
}

fn rules(series: &[(&str, &str, &str)]) -> String {
    let mut text = "groups:\n  - name: test\n    interval: 1s\n    rules:\n".to_owned();
    // A group without a rule is refused.
    let always = [("test_always", "", "vector(1)")];
    for (name, host, expression) in always.iter().chain(series) {
        let _ = writeln!(
            text,
            "      - {{record: {name}, expr: '{expression}', labels: {{host: '{host}'}}}}"
        );
    }
    text += "      - {alert: RaidDegraded, expr: 'raid_degraded > 0', annotations: {summary: 'a disk of the RAID has failed'}}\n";
    text
}

/// An Alertmanager on a loopback port of its own that tells one receiver at once, and again when an alert is over.
#[derive(Debug)]
pub struct Alertmanager {
    /// Kept, so that it runs.
    _leash: Leash,
    port: u16,
    _home: Home,
}

impl Alertmanager {
    /// Starts it: it calls this URL with this bearer token.
    ///
    /// # Errors
    /// It is not installed, or does not answer within a minute.
    pub fn start(receiver: &str, token: &str) -> Result<Self, LabError> {
        let program = find_program("prometheus-alertmanager").ok_or(LabError::Missing {
            program: "prometheus-alertmanager",
            package: "prometheus-alertmanager",
        })?;
        let home = Home::new("alertmanager")?;
        let port = free_tcp_port()?;
        let call =
            format!("{{url: '{receiver}', http_config: {{authorization: {{credentials: '{token}'}}}}}}");
        let configuration = format!(
            "route: {{receiver: ringfence, group_by: [alertname], group_wait: 1s, group_interval: 1s, repeat_interval: 1h}}\n\
             receivers:\n  - {{name: ringfence, webhook_configs: [{call}]}}\n"
        );
        home.write("alertmanager.yml", &configuration)?;
        home.make_folder("data")?;
        let log = home.join("alertmanager.log");
        let leash = Leash::start(Start {
            arguments: vec![
                format!("--config.file={}", home.text("alertmanager.yml")),
                format!("--storage.path={}", home.text("data")),
                format!("--web.listen-address=127.0.0.1:{port}"),
                "--cluster.listen-address=".to_owned(),
            ],
            ..Start::new(&program, &log, home.path())
        })?;
        wait_ready("alertmanager", &leash, &log, READY_LIMIT, || is_ready(port))?;
        Ok(Self {
            _leash: leash,
            port,
            _home: home,
        })
    }
}
