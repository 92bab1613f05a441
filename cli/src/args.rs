//! The command line.

mod remote;

use std::path::PathBuf;

use clap::builder::Styles;
use clap::builder::styling::AnsiColor;
use clap::{Args, Parser, Subcommand};

pub use self::remote::{Format, OutputArgs, Remote, RemoteArgs, VersionArgs};
use crate::commands::{
    audit, backup, context, dead_letter, doctor, event, host, method, operation, plan, segment, subscription,
    token,
};
use crate::config::{Environment, Flag, Settings, Sources, load};
use crate::error::{CliError, EXIT_CODES};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Yellow.on_default().bold())
    .usage(AnsiColor::Yellow.on_default().bold())
    .literal(AnsiColor::Green.on_default())
    .placeholder(AnsiColor::Cyan.on_default());

/// Makes certain that a failed host can no longer run or write, and takes it back safely.
#[derive(Debug, Parser)]
#[command(name = "ringfence", version, styles = STYLES, after_help = EXIT_CODES, after_long_help = EXIT_CODES)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Runs everything in one process on this machine: SQLite, no broker, loopback only
    Standalone(StandaloneArgs),
    /// Runs the REST API
    Api(ListenArgs),
    /// Runs an engine: publishes work, takes in results, keeps the time
    Engine(EngineArgs),
    /// Runs a scheduler hook: tells schedulers where workloads may land, and what may be evacuated
    SchedulerHook(ListenArgs),
    /// Runs a worker: carries out tasks on devices
    Worker(WorkerArgs),
    /// Looks after the database
    Db(DbArgs),
    /// Dead letters: messages on the broker that nobody could deal with
    DeadLetter(dead_letter::DeadLetterArgs),
    /// Looks at the configuration
    Config(ConfigCommandArgs),
    /// Looks for what would keep a fence from being proven, and says what to do about it
    Doctor(doctor::DoctorArgs),
    /// Writes all that a standalone service keeps into one file, also while it runs
    Backup(backup::BackupArgs),
    /// Puts a backup in the place of a standalone service's data directory
    Restore(backup::BackupArgs),
    /// Makes, lists and revokes the tokens of the token file
    Token(token::TokenArgs),
    /// Hosts: list, add, fence, confirm, take back
    Host(Remote<host::HostCommand>),
    /// Operations: what is being done to hosts
    Operation(Remote<operation::OperationCommand>),
    /// Events: what changed
    Event(Remote<event::EventCommand>),
    /// The audit trail: who did what, from where and why
    Audit(Remote<audit::AuditCommand>),
    /// Methods: the configured ways to do a task
    Method(Remote<method::MethodCommand>),
    /// Plans: how hosts are fenced
    Plan(Remote<plan::PlanCommand>),
    /// Segments: failure domains and their policies
    Segment(Remote<segment::SegmentCommand>),
    /// Subscriptions: webhooks that are told of events
    Subscription(Remote<subscription::SubscriptionCommand>),
    /// Contexts: several services by name
    Context(context::ContextArgs),
    /// Prints the version of this program, and that of the API of the service
    Version(VersionArgs),
    /// Prints a completion script for a shell; it completes commands, and names that the service knows
    Completions {
        /// For which shell
        shell: clap_complete::Shell,
    },
    /// Prints the manual's first page, or writes all pages into a folder
    Manual {
        /// The folder to write them to; read one with: man -l FOLDER/ringfence-host-fence.1
        folder: Option<PathBuf>,
    },
}

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
    /// How log lines look: text or json
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<String>,
}

impl ConfigArgs {
    /// The layers with these flags and those of the command on top.
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
    /// Where everything is kept
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<String>,
    /// Where to listen, on this machine only; port 0 takes any free one
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
    /// Its name in logs and the audit trail; this machine's name if absent
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
    /// Its name, unique among the workers; this machine's name if absent
    #[arg(long)]
    pub name: Option<String>,
    /// The zones that it reaches
    #[arg(long, value_name = "ZONE,...")]
    pub zones: Option<String>,
    /// What it acts on: power, storage, network
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
    /// Brings the schema of the database to that of this build
    Migrate(MigrateArgs),
}

/// `ringfence db migrate`
#[derive(Debug, Args)]
pub struct MigrateArgs {
    /// Says that no API and no engine runs; an older schema is not migrated without it
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
    /// Prints every setting and where it came from, or what is wrong; secrets are masked
    Check {
        /// The configuration.
        #[command(flatten)]
        config: ConfigArgs,
        /// How to answer
        #[arg(long, short, value_enum, default_value_t, value_name = "FORMAT")]
        output: Format,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn no_argument_of_a_command_stands_in_the_place_of_the_connection() {
        fn look(command: &clap::Command, path: &str) {
            let shared = ["context", "url", "token_file", "ca_file", "data_dir", "output"];
            for argument in command.get_arguments() {
                let is_shared = shared.contains(&argument.get_id().as_str());
                assert!(!is_shared || argument.is_global_set(), "{path}: {argument}");
            }
            for sub in command.get_subcommands() {
                look(sub, &format!("{path} {}", sub.get_name()));
            }
        }
        let mut cli = Cli::command();
        cli.build();
        let without = [
            "standalone",
            "backup",
            "restore",
            "doctor",
            "config",
            "dead-letter",
            "token",
            "context",
        ];
        let remote = cli
            .get_subcommands()
            .filter(|sub| !without.contains(&sub.get_name()));
        for sub in remote {
            look(sub, sub.get_name());
        }
    }

    #[test]
    fn connection_flags_stand_before_or_after_the_verb() {
        for line in [
            "ringfence host --url http://h list",
            "ringfence host list --url http://h",
        ] {
            let Command::Host(host) = Cli::parse_from(line.split(' ')).command else {
                panic!("{line}")
            };
            assert_eq!(host.remote.url.as_deref(), Some("http://h"));
        }
    }
}
