//! `ringfence context`: several services by name.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::json;

use crate::args::OutputArgs;
use crate::client::{Context, Contexts, check_url};
use crate::completion::contexts;
use crate::config::Environment;
use crate::error::CliError;
use crate::output::{Cell, Screen, Table};

/// `ringfence context`
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct ContextArgs {
    /// How to answer.
    #[command(flatten)]
    pub output: OutputArgs,
    /// What to do.
    #[command(subcommand)]
    command: ContextCommand,
}

/// `ringfence context ...`
#[derive(Debug, Subcommand)]
enum ContextCommand {
    /// Lists contexts; a star marks the current one
    List,
    /// Uses a context from now on
    Use {
        /// Its name
        #[arg(add = contexts())]
        name: String,
    },
    /// Adds a context, or changes one; options that are not given stay as they are
    Set(SetArgs),
    /// Removes a context
    Remove {
        /// Its name
        #[arg(add = contexts())]
        name: String,
    },
}

/// `ringfence context set`
#[derive(Debug, Args)]
struct SetArgs {
    /// Its name
    #[arg(add = contexts())]
    name: String,
    /// Base URL of the service
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// File that holds the token
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// PEM certificates to trust beside the system's
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// Data directory of a standalone service
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    data_dir: Option<PathBuf>,
}

pub fn run(args: ContextArgs, environment: &Environment) -> Result<(), CliError> {
    let mut screen = Screen::new(args.output.format);
    let mut known = Contexts::read(environment)?;
    let done = match args.command {
        ContextCommand::List => return list(&mut screen, &known),
        ContextCommand::Use { name } => {
            known.named(&name)?;
            let done = format!("{name} is used from now on");
            known.current = Some(name);
            done
        }
        ContextCommand::Set(args) => {
            let name = args.name.clone();
            let context = args.put_over(known.contexts.get(&name).cloned().unwrap_or_default())?;
            known.set(&name, context)?;
            let is_used = known.current.as_deref() == Some(name.as_str());
            let hint = if is_used {
                ", and is used".to_owned()
            } else {
                format!("; use it with: ringfence context use {name}")
            };
            format!("{name} is set{hint}")
        }
        ContextCommand::Remove { name } => {
            known.named(&name)?;
            known.contexts.remove(&name);
            known.current.take_if(|current| *current == name);
            format!("{name} is removed")
        }
    };
    known.write()?;
    screen.done(done)
}

impl SetArgs {
    /// The new context. A service is named by its URL or by its data directory.
    fn put_over(self, known: Context) -> Result<Context, CliError> {
        if let Some(url) = &self.url {
            check_url(url)?;
        }
        let absolute = |path: Option<PathBuf>| path.map(|path| std::path::absolute(&path).unwrap_or(path));
        let is_local = self.data_dir.is_some();
        let context = Context {
            data_dir: absolute(self.data_dir)
                .or(known.data_dir)
                .filter(|_| self.url.is_none()),
            url: self.url.or(known.url).filter(|_| !is_local),
            token_file: absolute(self.token_file).or(known.token_file),
            ca_file: absolute(self.ca_file).or(known.ca_file),
        };
        if context.url.is_none() && context.data_dir.is_none() {
            return Err(CliError::Usage(
                "a context needs the URL of a service (--url) or the data directory of a standalone one (--data-dir)".to_owned(),
            ));
        }
        Ok(context)
    }
}

fn list(screen: &mut Screen, known: &Contexts) -> Result<(), CliError> {
    if screen.is_for_programs() {
        return screen.data(&json!({ "current": known.current, "contexts": known.contexts }));
    }
    let mut table = Table::new(&["USED", "NAME", "SERVICE", "TOKEN FILE", "CA FILE"]);
    for (name, context) in &known.contexts {
        let shown =
            |path: &Option<PathBuf>| Cell::maybe(path.as_ref().map(|path| path.display().to_string()));
        let is_used = known.current.as_ref() == Some(name);
        table.row([
            if is_used { "*" } else { "" }.into(),
            name.as_str().into(),
            context
                .url
                .as_deref()
                .map_or_else(|| shown(&context.data_dir), Cell::from),
            shown(&context.token_file),
            shown(&context.ca_file),
        ]);
    }
    screen.table(table)
}
