//! The commands, one file per noun.

mod arguments;
pub mod audit;
pub mod backup;
pub mod completed;
mod config;
pub mod context;
pub mod dead_letter;
pub mod doctor;
mod document;
pub mod event;
mod follow;
pub mod host;
pub mod kubernetes;
pub mod method;
pub mod operation;
mod operation_id;
pub mod plan;
pub mod policy;
pub mod segment;
mod session;
pub mod subscription;
pub mod suspension;
pub mod token;
pub mod top;
mod version;

use std::path::Path;

use clap::CommandFactory;

use crate::args::{ConfigCommand, DbCommand, Format, Remote, RemoteArgs};
use crate::command_line::{Cli, Command};
use crate::commands::segment::SegmentCommand;
use crate::commands::session::Session;
use crate::config::{Environment, Settings};
use crate::error::CliError;
use crate::output::Screen;
use crate::{logging, services, traces};

/// The format in which a failure of this command is shown.
#[must_use]
pub fn format_of(command: &Command) -> Format {
    match command {
        Command::Host(Remote { remote, .. }) => remote.output.format,
        Command::Operation(Remote { remote, .. }) => remote.output.format,
        Command::Event(Remote { remote, .. }) => remote.output.format,
        Command::Audit(Remote { remote, .. }) => remote.output.format,
        Command::Method(Remote { remote, .. }) => remote.output.format,
        Command::Plan(Remote { remote, .. }) => remote.output.format,
        Command::Segment(Remote { remote, .. }) => remote.output.format,
        Command::Policy(Remote { remote, .. }) => remote.output.format,
        Command::Subscription(Remote { remote, .. }) => remote.output.format,
        Command::Suspend(Remote { remote, .. }) => remote.output.format,
        Command::Resume(Remote { remote, .. }) => remote.output.format,
        Command::Token(args) => args.output.format,
        Command::Context(args) => args.output.format,
        Command::Version(args) => args.remote.output.format,
        Command::Top(args) => args.remote.output.format,
        Command::DeadLetter(args) => args.output.format,
        Command::Doctor(args) => args.output,
        Command::Config(_)
        | Command::Standalone(_)
        | Command::Kubernetes(_)
        | Command::Backup(_)
        | Command::Restore(_)
        | Command::Api(_)
        | Command::Engine(_)
        | Command::SchedulerHook(_)
        | Command::Worker(_)
        | Command::Db(_)
        | Command::Completions { .. }
        | Command::Manual { .. } => Format::Table,
    }
}

pub async fn run(command: Command, environment: &Environment) -> Result<(), CliError> {
    let open = |remote: &RemoteArgs| Session::open(remote, environment);
    match command {
        Command::Standalone(args) => {
            let run = |settings| services::standalone::run(settings, args.demo);
            Box::pin(serve("standalone", args.settings(environment)?, run)).await
        }
        Command::Api(args) => {
            let settings = args.settings("api.listen", environment)?;
            serve("api", settings, services::api::run).await
        }
        Command::Engine(args) => serve("engine", args.settings(environment)?, services::engine::run).await,
        Command::SchedulerHook(args) => {
            let settings = args.settings("scheduler_hook.listen", environment)?;
            serve("scheduler-hook", settings, services::scheduler_hook::run).await
        }
        Command::Worker(args) => serve("worker", args.settings(environment)?, services::worker::run).await,
        Command::Db(args) => {
            let DbCommand::Migrate(args) = args.command;
            let settings = args.config.settings(environment, Vec::new())?;
            logging::start(&settings.log, None)?;
            services::db::migrate(settings, args.services_stopped).await
        }
        Command::Config(args) => {
            let ConfigCommand::Check { config, output } = args.command;
            config::check(&config, output, environment)
        }
        Command::Backup(args) => backup::take(args, environment).await,
        Command::Restore(args) => backup::restore(args, environment).await,
        Command::Token(args) => token::run(args, environment),
        Command::DeadLetter(args) => dead_letter::run(args, environment).await,
        Command::Doctor(args) => doctor::run(args, environment).await,
        Command::Kubernetes(args) => kubernetes::run(args, environment).await,
        Command::Context(args) => context::run(args, environment),
        Command::Version(args) => version::run(&args.remote, environment).await,
        Command::Top(args) => top::run(args, environment).await,
        Command::Completions { shell } => completions(shell),
        Command::Manual { folder } => manual(folder.as_deref()),
        Command::Host(args) => host::run(args.command, &mut open(&args.remote)?).await,
        Command::Operation(args) => operation::run(args.command, &mut open(&args.remote)?).await,
        Command::Event(args) => event::run(args.command, &mut open(&args.remote)?).await,
        Command::Audit(args) => audit::run(args.command, &mut open(&args.remote)?).await,
        Command::Method(args) => method::run(args.command, &mut open(&args.remote)?).await,
        Command::Plan(args) => plan::run(args.command, &mut open(&args.remote)?).await,
        Command::Segment(Remote {
            command: SegmentCommand::Template(args),
            remote,
        }) => segment::template(&args, &mut Screen::new(remote.output.format)),
        Command::Segment(args) => segment::run(args.command, &mut open(&args.remote)?).await,
        Command::Policy(args) => policy::run(args.command, &mut open(&args.remote)?).await,
        Command::Subscription(args) => subscription::run(args.command, &mut open(&args.remote)?).await,
        Command::Suspend(args) => suspension::suspend(args.command, &mut open(&args.remote)?).await,
        Command::Resume(args) => suspension::resume(args.command, &mut open(&args.remote)?).await,
    }
}

/// Runs a service with its log and, where a collector is configured, its spans. The last spans are sent, whether the service has failed or not.
async fn serve(
    role: &'static str,
    settings: Settings,
    run: impl AsyncFnOnce(Settings) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let (layer, traces) = traces::start(role, &settings)?.unzip();
    logging::start(&settings.log, layer)?;
    let done = run(settings).await;
    if let Some(traces) = traces {
        traces.stop().await;
    }
    done
}

fn manual(folder: Option<&Path>) -> Result<(), CliError> {
    let Some(folder) = folder else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut page)?;
        return Ok(std::io::Write::write_all(&mut std::io::stdout(), &page)?);
    };
    clap_mangen::generate_to(Cli::command(), folder)
        .map_err(|source| CliError::file("write the manual's pages to", folder, source))
}

/// At the first key, zsh reads the script from its folder of completions without calling it; this line calls it.
const ZSH_AUTOLOADED: &[u8] =
    b"if [[ $funcstack[1] = _ringfence ]]; then _clap_dynamic_completer_ringfence \"$@\"; fi\n";

/// Prints the completion script. The script calls this program at every key, so that it completes the service's names too.
fn completions(shell: clap_complete::Shell) -> Result<(), CliError> {
    let name = shell.to_string();
    let shells = clap_complete::env::Shells::builtins();
    let Some(completer) = shells.completer(&name) else {
        return Err(CliError::Usage(format!("{name} cannot be completed for")));
    };
    let mut script = Vec::new();
    completer.write_registration("COMPLETE", "ringfence", "ringfence", "ringfence", &mut script)?;
    if shell == clap_complete::Shell::Zsh {
        script.extend_from_slice(ZSH_AUTOLOADED);
    }
    Ok(std::io::Write::write_all(&mut std::io::stdout(), &script)?)
}
