//! The command line: every command.

use std::path::PathBuf;

use clap::builder::Styles;
use clap::builder::styling::AnsiColor;
use clap::{Parser, Subcommand};

use crate::args::{
    ConfigCommandArgs, DbArgs, EngineArgs, ListenArgs, Remote, StandaloneArgs, VersionArgs, WorkerArgs,
};
use crate::commands::{
    audit, backup, context, dead_letter, doctor, event, host, kubernetes, method, operation, plan, policy,
    segment, subscription, suspension, token, top,
};
use crate::exit::EXIT_CODES;

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
    /// Runs an engine: publishes work, receives results, runs the timers
    Engine(EngineArgs),
    /// Runs a scheduler hook: tells schedulers where workloads may land, and what may be evacuated
    SchedulerHook(ListenArgs),
    /// Runs a worker: carries out tasks on devices
    Worker(WorkerArgs),
    /// Migrates the schema of the database
    Db(DbArgs),
    /// Dead letters: messages on the broker that no service could process
    DeadLetter(dead_letter::DeadLetterArgs),
    /// Checks the configuration
    Config(ConfigCommandArgs),
    /// Looks for what would keep a fence from being proven, and says what to do about it
    Doctor(doctor::DoctorArgs),
    /// Prints what is installed in a Kubernetes cluster
    Kubernetes(kubernetes::KubernetesArgs),
    /// Writes all data of a standalone service into one file, also while it runs
    Backup(backup::BackupArgs),
    /// Replaces a standalone service's data directory by a backup
    Restore(backup::BackupArgs),
    /// Makes, lists and revokes the tokens of the token file
    Token(token::TokenArgs),
    /// Shows live in a terminal what needs a person, what is under way, and every host
    Top(top::TopArgs),
    /// Hosts: list, add, fence, confirm, rejoin
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
    /// Policies: what would happen under them
    Policy(Remote<policy::PolicyCommand>),
    /// Subscriptions: webhooks that are told of events
    Subscription(Remote<subscription::SubscriptionCommand>),
    /// Suspends hosts, segments or everything for a time: nothing begins by itself, and what was asked for before stands still
    Suspend(Remote<suspension::SuspendCommand>),
    /// Ends a suspension
    Resume(Remote<suspension::ResumeCommand>),
    /// Contexts: several services by name
    Context(context::ContextArgs),
    /// Prints the version of this program, and that of the API of the service
    Version(VersionArgs),
    /// Prints a completion script for a shell; it completes commands, and names that the service knows
    Completions {
        /// For which shell
        shell: clap_complete::Shell,
    },
    /// Prints the first page of the manual, or writes all pages into a folder
    Manual {
        /// The folder to write them to; read one with: man -l FOLDER/ringfence-host-fence.1
        folder: Option<PathBuf>,
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
            "kubernetes",
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
