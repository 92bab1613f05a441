//! How commands reach a service, and how they print its answers.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::completion::contexts;
use crate::exit::EXIT_CODES;

/// A command that speaks to a running service.
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true, after_help = EXIT_CODES)]
pub struct Remote<C: Subcommand> {
    /// How to reach it.
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: C,
}

/// `ringfence version`
#[derive(Debug, Args)]
pub struct VersionArgs {
    /// How to reach the service.
    #[command(flatten)]
    pub remote: RemoteArgs,
}

/// How to reach a service and how to answer.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Connection and output")]
pub struct RemoteArgs {
    /// The service of this context; see: ringfence context
    #[arg(long, global = true, env = "RINGFENCE_CONTEXT", value_name = "NAME", add = contexts())]
    pub context: Option<String>,
    /// Base URL of the service; a standalone service on this machine is found by itself
    #[arg(long, global = true, env = "RINGFENCE_URL", value_name = "URL")]
    pub url: Option<String>,
    /// File that holds the token; the variable RINGFENCE_TOKEN may hold the token itself
    #[arg(long, global = true, env = "RINGFENCE_TOKEN_FILE", value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// PEM certificates to trust beside the system's
    #[arg(long, global = true, env = "RINGFENCE_CA_FILE", value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// Data directory of a standalone service
    #[arg(long, global = true, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// How to answer.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// How to answer.
#[derive(Clone, Debug, Default, Args)]
pub struct OutputArgs {
    /// How to answer
    #[arg(
        id = "output",
        long = "output",
        short = 'o',
        global = true,
        value_enum,
        default_value_t,
        value_name = "FORMAT"
    )]
    pub format: Format,
}

/// How to answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Tables, for people
    #[default]
    Table,
    /// Tables with more columns
    Wide,
    /// The API's answer as JSON, for programs
    Json,
    /// The API's answer as YAML
    Yaml,
}

impl Format {
    /// Whether a program reads the output.
    #[must_use]
    pub fn is_for_programs(self) -> bool {
        matches!(self, Self::Json | Self::Yaml)
    }
}
