//! `ringfence token`: the file of static tokens.

use std::path::{Path, PathBuf};

use chrono::TimeDelta;
use clap::{Args, Subcommand, ValueEnum};
use ringfence_api::Role;
use ringfence_core::Timestamp;
use serde_json::json;

use super::arguments::duration;
use crate::args::{ConfigArgs, OutputArgs, flag};
use crate::clock::now;
use crate::config::Environment;
use crate::error::CliError;
use crate::output::{Screen, Table, time};
use crate::services::home;
use crate::tokens;

/// `ringfence token`
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct TokenArgs {
    /// The token file; api.tokens_file of the configuration if absent, else that of a standalone service on this machine
    #[arg(long, global = true, value_name = "FILE")]
    tokens_file: Option<PathBuf>,
    /// Data directory of a standalone service
    #[arg(long, global = true, value_name = "DIR", conflicts_with_all = ["tokens_file", "config"])]
    data_dir: Option<PathBuf>,
    /// Configuration file
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// How to answer.
    #[command(flatten)]
    pub output: OutputArgs,
    /// What to do.
    #[command(subcommand)]
    command: TokenCommand,
}

/// `ringfence token ...`
#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Makes a token and prints it, once
    Create {
        /// The owner's name; goes into the audit trail
        #[arg(long)]
        name: String,
        /// The role of the token
        #[arg(long, value_enum)]
        role: RoleName,
        /// When the token expires: 90d, 12h, 30m
        #[arg(long, value_name = "TIME", value_parser = duration)]
        expires_in: Option<TimeDelta>,
    },
    /// Lists the tokens by name, without the tokens themselves
    List,
    /// Revokes a token; it stops working within seconds
    Revoke {
        /// The owner's name
        name: String,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum RoleName {
    /// Reads
    Reader,
    /// For another program: reports failure states, fences, confirms, rejoins
    Service,
    /// For a person: reports failure states, fences, confirms, rejoins
    Operator,
    /// Configures, and overrides
    Admin,
}

impl From<RoleName> for Role {
    fn from(name: RoleName) -> Self {
        match name {
            RoleName::Reader => Self::Reader,
            RoleName::Service => Self::Service,
            RoleName::Operator => Self::Operator,
            RoleName::Admin => Self::Admin,
        }
    }
}

pub fn run(args: TokenArgs, environment: &Environment) -> Result<(), CliError> {
    let mut screen = Screen::new(args.output.format);
    let path = file(&args, environment)?;
    match args.command {
        TokenCommand::Create {
            name,
            role,
            expires_in,
        } => {
            let expires_at = expires_in.and_then(|after| now().checked_add_signed(after));
            create(&mut screen, &path, &name, role.into(), expires_at)
        }
        TokenCommand::List => list(&mut screen, &path),
        TokenCommand::Revoke { name } => revoke(&mut screen, &path, &name),
    }
}

fn file(args: &TokenArgs, environment: &Environment) -> Result<PathBuf, CliError> {
    let config = ConfigArgs {
        config: args.config.clone(),
        ..ConfigArgs::default()
    };
    if let Some(directory) = &args.data_dir {
        return of_standalone(directory).ok_or_else(|| {
            let shown = directory.display();
            CliError::Usage(format!(
                "--data-dir is {shown}, and no standalone service has been started on it"
            ))
        });
    }
    let given = args.tokens_file.as_ref().map(|path| path.display().to_string());
    let settings = config.settings(environment, vec![flag("api.tokens_file", "--tokens-file", given)])?;
    let found = settings.standalone.data_dir.as_deref().and_then(of_standalone);
    match (&settings.api.tokens_file, found) {
        (None, Some(found)) => Ok(found),
        (Some(_), _) => settings.tokens_file().map(ToOwned::to_owned),
        (None, None) => Err(CliError::config(
            "api.tokens_file is not set, and no standalone service was found; set it in the file or by RINGFENCE_API_TOKENS_FILE, \
             or name the data directory of a standalone service with --data-dir",
        )),
    }
}

/// The token file of a standalone service, once it has been started.
fn of_standalone(data_dir: &Path) -> Option<PathBuf> {
    Some(data_dir.join(home::TOKENS)).filter(|file| file.exists())
}

fn create(
    screen: &mut Screen,
    path: &Path,
    name: &str,
    role: Role,
    expires_at: Option<Timestamp>,
) -> Result<(), CliError> {
    ringfence_core::validate_name("--name", name).map_err(|problem| CliError::Usage(problem.to_string()))?;
    let token = tokens::create(path, name, role, expires_at)?;
    if screen.is_for_programs() {
        let made = json!({"name": name, "role": role.as_str(), "expires_at": expires_at, "token": token});
        return screen.data(&made);
    }
    screen.note(format!(
        "{name} is {}; the token is shown once, and only its hash is kept:",
        role.as_str()
    ));
    screen.line(token)
}

fn list(screen: &mut Screen, path: &Path) -> Result<(), CliError> {
    let file = tokens::read(path)?;
    if screen.is_for_programs() {
        let shown = file.tokens.iter().map(
            |token| json!({"name": token.name, "role": token.role.as_str(), "expires_at": token.expires_at}),
        );
        return screen.data(&json!({"tokens": shown.collect::<Vec<_>>()}));
    }
    let mut table = Table::new(&["NAME", "ROLE", "EXPIRES"]);
    for token in &file.tokens {
        let expires = match token.expires_at {
            Some(at) if at <= now() => format!("{} (expired)", time(at)),
            Some(at) => time(at),
            None => "never".to_owned(),
        };
        table.row([
            token.name.as_str().into(),
            token.role.as_str().into(),
            expires.into(),
        ]);
    }
    screen.table(table)
}

fn revoke(screen: &mut Screen, path: &Path, name: &str) -> Result<(), CliError> {
    tokens::change(path, |file| {
        let before = file.tokens.len();
        file.tokens.retain(|token| token.name != name);
        if file.tokens.len() == before {
            return Err(CliError::Usage(format!("there is no token of {name:?}")));
        }
        Ok(())
    })?;
    screen.done(format!("the token of {name} is revoked"))
}
