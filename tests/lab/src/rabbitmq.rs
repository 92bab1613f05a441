//! A private RabbitMQ node.

use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::certificates::Issued;
use crate::error::LabError;
use crate::home::{Home, random_password, wait_ready};
use crate::leash::{Leash, Start};
use crate::net::{free_tcp_port, is_open};
use crate::programs::{find_program, rabbitmq_folder};

const PACKAGE: &str = "rabbitmq-server";
const USER: &str = "ringfence";
const READY_LIMIT: Duration = Duration::from_secs(120);

/// A broker on a loopback port of its own, with a node name, port mapper, cookie, home and files of its own.
#[derive(Debug)]
pub struct RabbitMq {
    leash: Option<Leash>,
    /// Erlang's port mapper. If the node started it, it would outlive the node.
    _epmd: Leash,
    scripts: PathBuf,
    port: u16,
    distribution_port: u16,
    epmd_port: u16,
    password: String,
    tls: Option<Issued>,
    definitions: Option<String>,
    home: Home,
}

impl RabbitMq {
    /// Starts an empty node.
    ///
    /// # Errors
    /// If RabbitMQ is not installed, or does not become ready within two minutes.
    pub fn start() -> Result<Self, LabError> {
        Self::start_as(None, None)
    }

    /// Starts a node with this certificate, which accepts only TLS.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_with_tls(tls: Issued) -> Result<Self, LabError> {
        Self::start_as(Some(tls), None)
    }

    /// Starts a node with these users, permissions, virtual hosts and policies, in RabbitMQ's export format, and no others.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_with_definitions(definitions: String) -> Result<Self, LabError> {
        Self::start_as(None, Some(definitions))
    }

    fn start_as(tls: Option<Issued>, definitions: Option<String>) -> Result<Self, LabError> {
        let missing = |program| LabError::Missing {
            program,
            package: PACKAGE,
        };
        let scripts = rabbitmq_folder().ok_or_else(|| missing("rabbitmq-server"))?;
        let epmd = find_program("epmd").ok_or_else(|| missing("epmd"))?;
        let home = Home::new("mq")?;
        let epmd_port = free_tcp_port()?;
        let epmd = start_epmd(&home, &epmd, epmd_port)?;
        let mut node = Self {
            leash: None,
            _epmd: epmd,
            scripts,
            port: free_tcp_port()?,
            distribution_port: free_tcp_port()?,
            epmd_port,
            password: random_password()?,
            tls,
            definitions,
            home,
        };
        node.configure()?;
        node.start_again()?;
        Ok(node)
    }

    /// The URL of the virtual host `/`, with the password.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "amqps" } else { "amqp" };
        format!("{scheme}://{USER}:{}@127.0.0.1:{}/%2f", self.password, self.port)
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `rabbitmqctl`, and the environment in which it finds this node and no other.
    #[must_use]
    pub fn control(&self) -> (PathBuf, Vec<(&'static str, String)>) {
        (self.scripts.join("rabbitmqctl"), self.environment())
    }

    /// Starts the node on its former port with its former data, after [`stop`](Self::stop) or [`crash`](Self::crash).
    ///
    /// # Errors
    /// If the node does not become ready within two minutes.
    pub fn start_again(&mut self) -> Result<(), LabError> {
        let log = self.home.join("rabbitmq.log");
        let leash = Leash::start(Start {
            environment: self.environment(),
            without: &[
                "RABBITMQ_NODE_PORT",
                "RABBITMQ_NODE_IP_ADDRESS",
                "RABBITMQ_BASE",
                "NOTIFY_SOCKET",
            ],
            ..Start::new(&self.scripts.join("rabbitmq-server"), &log, self.home.path())
        })?;
        wait_ready("RabbitMQ", &leash, &log, READY_LIMIT, || is_open(self.port))?;
        self.leash = Some(leash);
        Ok(())
    }

    /// Stops the node in order.
    pub fn stop(&mut self) {
        self.leash = None;
    }

    /// Kills the node, as a loss of power would.
    ///
    /// # Errors
    /// If the signal could not be sent.
    pub fn crash(&mut self) -> Result<(), LabError> {
        if let Some(leash) = self.leash.take() {
            leash.signal(Signal::SIGKILL)?;
        }
        Ok(())
    }

    fn configure(&self) -> Result<(), LabError> {
        let listener = match &self.tls {
            None => format!("listeners.tcp.1 = 127.0.0.1:{}", self.port),
            Some(tls) => self.configure_tls(tls)?,
        };
        let users = match &self.definitions {
            None => format!("default_user = {USER}\ndefault_pass = {}", self.password),
            Some(text) => self.configure_definitions(text)?,
        };
        self.home.write(
            "rabbitmq.conf",
            &format!("{listener}\n{users}\nlog.console = true\nlog.file = false\n"),
        )?;
        self.home.write("enabled_plugins", "[].\n")?;
        self.home.write("rabbitmq-env.conf", "")?;
        self.home.make_folder("mnesia").map(|_| ())
    }

    fn configure_definitions(&self, text: &str) -> Result<String, LabError> {
        self.home.write("definitions.json", text)?;
        Ok(format!(
            "definitions.import_backend = local_filesystem\ndefinitions.local.path = {}",
            self.home.text("definitions.json")
        ))
    }

    fn configure_tls(&self, tls: &Issued) -> Result<String, LabError> {
        self.home.write("server.crt", &tls.certificate)?;
        self.home.write("server.key", &tls.key)?;
        Ok(format!(
            "listeners.tcp = none\nlisteners.ssl.1 = 127.0.0.1:{}\nssl_options.certfile = {}\nssl_options.keyfile = {}\n\
             ssl_options.verify = verify_none\nssl_options.fail_if_no_peer_cert = false",
            self.port,
            self.home.text("server.crt"),
            self.home.text("server.key"),
        ))
    }

    fn environment(&self) -> Vec<(&'static str, String)> {
        let home = &self.home;
        vec![
            ("HOME", home.path().display().to_string()),
            // The start script then becomes the node instead of waiting for it, so that signals reach the node.
            ("RUNNING_UNDER_SYSTEMD", "true".to_owned()),
            ("ERL_EPMD_PORT", self.epmd_port.to_string()),
            ("ERL_EPMD_ADDRESS", "127.0.0.1".to_owned()),
            ("RABBITMQ_NODENAME", format!("ringfence-{}@localhost", self.port)),
            ("RABBITMQ_DIST_PORT", self.distribution_port.to_string()),
            ("RABBITMQ_CONF_ENV_FILE", home.text("rabbitmq-env.conf")),
            ("RABBITMQ_CONFIG_FILE", home.text("rabbitmq.conf")),
            ("RABBITMQ_ADVANCED_CONFIG_FILE", home.text("advanced.config")),
            ("RABBITMQ_GENERATED_CONFIG_DIR", home.text("generated")),
            ("RABBITMQ_ENABLED_PLUGINS_FILE", home.text("enabled_plugins")),
            ("RABBITMQ_MNESIA_BASE", home.text("mnesia")),
            ("RABBITMQ_LOG_BASE", home.text("log")),
            ("RABBITMQ_PID_FILE", home.text("erlang.pid")),
            (
                "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
                // One scheduler without busy waiting: the tests need the cores more.
                "-kernel inet_dist_use_interface {127,0,0,1} +S 1:1 +sbwt none".to_owned(),
            ),
        ]
    }
}

fn start_epmd(home: &Home, program: &Path, port: u16) -> Result<Leash, LabError> {
    let log = home.join("epmd.log");
    let leash = Leash::start(Start {
        arguments: ["-port", &port.to_string(), "-address", "127.0.0.1"]
            .map(str::to_owned)
            .to_vec(),
        without: &["ERL_EPMD_PORT", "ERL_EPMD_ADDRESS"],
        ..Start::new(program, &log, home.path())
    })?;
    wait_ready("epmd", &leash, &log, Duration::from_secs(20), || is_open(port))?;
    Ok(leash)
}
