//! Arguments that several commands take, and those of the services.

mod remote;

use std::path::PathBuf;

use clap::{Args, Subcommand};

pub use self::remote::{Format, OutputArgs, Remote, RemoteArgs, VersionArgs};
use crate::config::{Environment, Flag, Settings, Sources, load};
use crate::error::CliError;

/// Which configuration.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Configuration")]
pub struct ConfigArgs {
    /// Configuration file; /etc/ringfence/ringfence.toml if it exists, or the variable RINGFENCE_CONFIG
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// What to log: off, error, warn, info, debug or trace, and after commas TARGET=LEVEL
    #[arg(long, value_name = "LEVEL")]
    pub log_level: Option<String>,
    /// The format of log lines: text or json
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<String>,
}

impl ConfigArgs {
    /// The layers of the configuration, with these flags and those of the command on top.
    pub fn sources(&self, environment: &Environment, own: Vec<Option<Flag>>) -> Sources {
        let mut flags = vec![
            flag("log.level", "--log-level", self.log_level.clone()),
            flag("log.format", "--log-format", self.log_format.clone()),
        ];
        flags.extend(own);
        Sources {
            file: self.config.clone(),
            environment: environment.clone(),
            flags: flags.into_iter().flatten().collect(),
        }
    }

    /// The settings of a service.
    pub fn settings(&self, environment: &Environment, own: Vec<Option<Flag>>) -> Result<Settings, CliError> {
        load(&self.sources(environment, own)).map(|(settings, _)| settings)
    }
}

/// A flag that was given.
pub fn flag(key: &'static str, name: &'static str, value: Option<String>) -> Option<Flag> {
    value.map(|value| Flag { key, name, value })
}

/// `ringfence standalone`
#[derive(Debug, Args)]
pub struct StandaloneArgs {
    /// Adds six simulated hosts, of which one lies, one is slow and one is silent
    #[arg(long)]
    pub demo: bool,
    /// The data directory
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<String>,
    /// Where to listen, on this machine only unless api.certificate_file is set; port 0 takes any free one
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<String>,
    /// The configuration.
    #[command(flatten)]
    pub config: ConfigArgs,
}

impl StandaloneArgs {
    /// The settings.
    pub fn settings(&self, environment: &Environment) -> Result<Settings, CliError> {
        let data_dir = flag("standalone.data_dir", "--data-dir", self.data_dir.clone());
        let listen = flag("standalone.listen", "--listen", self.listen.clone());
        self.config.settings(environment, vec![data_dir, listen])
    }
}

/// `ringfence api` and `ringfence scheduler-hook`
#[derive(Debug, Args)]
pub struct ListenArgs {
    /// Where to listen
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<String>,
    /// The configuration.
    #[command(flatten)]
    pub config: ConfigArgs,
}

impl ListenArgs {
    /// The settings; `key` is where the service listens.
    pub fn settings(&self, key: &'static str, environment: &Environment) -> Result<Settings, CliError> {
        let listen = flag(key, "--listen", self.listen.clone());
        self.config.settings(environment, vec![listen])
    }
}

/// `ringfence engine`
#[derive(Debug, Args)]
pub struct EngineArgs {
    /// The engine's name in logs and the audit trail; this machine's name if absent
    #[arg(long)]
    pub name: Option<String>,
    /// The configuration.
    #[command(flatten)]
    pub config: ConfigArgs,
}

impl EngineArgs {
    /// The settings.
    pub fn settings(&self, environment: &Environment) -> Result<Settings, CliError> {
        let name = flag("engine.name", "--name", self.name.clone());
        self.config.settings(environment, vec![name])
    }
}

/// `ringfence worker`
#[derive(Debug, Args)]
pub struct WorkerArgs {
    /// The worker's name, unique among the workers; this machine's name if absent
    #[arg(long)]
    pub name: Option<String>,
    /// The zones that the worker reaches
    #[arg(long, value_name = "ZONE,...")]
    pub zones: Option<String>,
    /// What the worker acts on: power, storage, network, workloads; query: it asks others about fences
    #[arg(long, value_name = "RESOURCE,...")]
    pub resources: Option<String>,
    /// The configuration.
    #[command(flatten)]
    pub config: ConfigArgs,
}

impl WorkerArgs {
    /// The settings.
    pub fn settings(&self, environment: &Environment) -> Result<Settings, CliError> {
        let own = vec![
            flag("worker.name", "--name", self.name.clone()),
            flag("worker.zones", "--zones", self.zones.clone()),
            flag("worker.resources", "--resources", self.resources.clone()),
        ];
        self.config.settings(environment, own)
    }
}

/// `ringfence db`
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct DbArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: DbCommand,
}

/// `ringfence db ...`
#[derive(Debug, Subcommand)]
pub enum DbCommand {
    /// Migrates the schema of the database to that of this build
    Migrate(MigrateArgs),
}

/// `ringfence db migrate`
#[derive(Debug, Args)]
pub struct MigrateArgs {
    /// Confirms that no API and no engine runs; without it, an older schema is not migrated
    #[arg(long)]
    pub services_stopped: bool,
    /// The configuration.
    #[command(flatten)]
    pub config: ConfigArgs,
}

/// `ringfence config`
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct ConfigCommandArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: ConfigCommand,
}

/// `ringfence config ...`
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Prints every setting and its source, or what is wrong; secrets are masked
    Check {
        /// The configuration.
        #[command(flatten)]
        config: ConfigArgs,
        /// How to answer
        #[arg(long, short, value_enum, default_value_t, value_name = "FORMAT")]
        output: Format,
    },
}
