//! `ringfence kubernetes`: what is installed in a cluster. The commands print it, and change nothing.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use clap::{Args, Subcommand};
use ringfence_backends::kubernetes::{Cluster, GateNames};

use crate::args::ConfigArgs;
use crate::config::Environment;
use crate::error::CliError;
use crate::platforms;

/// `ringfence kubernetes`
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct KubernetesArgs {
    /// What to print.
    #[command(subcommand)]
    pub command: KubernetesCommand,
}

/// `ringfence kubernetes ...`
#[derive(Debug, Subcommand)]
pub enum KubernetesCommand {
    /// Prints the admission policies that hold in a cluster of 1.30 or later while Ringfence is down, for `kubectl apply -f -`
    Gates(GatesArgs),
    /// Prints the definitions of Ringfence's objects, for `kubectl apply -f -`
    Crds,
    /// Prints the webhooks for a cluster before 1.30 and for what a policy cannot see, for `kubectl apply -f -`
    Webhooks(WebhooksArgs),
}

/// `ringfence kubernetes gates`
#[derive(Debug, Args)]
pub struct GatesArgs {
    /// A cluster of kubernetes.clusters
    #[arg(value_name = "CLUSTER")]
    cluster: String,
    /// The user that Ringfence authenticates as; the cluster is asked if it is not given
    #[arg(long, value_name = "USER")]
    account: Option<String>,
    /// The services' configuration.
    #[command(flatten)]
    config: ConfigArgs,
}

/// `ringfence kubernetes webhooks`
#[derive(Debug, Args)]
pub struct WebhooksArgs {
    /// A cluster of kubernetes.clusters
    #[arg(value_name = "CLUSTER")]
    cluster: String,
    /// Where the cluster's API servers reach the scheduler hook
    #[arg(long, value_name = "https://HOST:PORT")]
    url: String,
    /// The authority of the hook's certificate, in PEM
    #[arg(long, value_name = "FILE")]
    ca_file: PathBuf,
    /// The services' configuration.
    #[command(flatten)]
    config: ConfigArgs,
}

pub async fn run(args: KubernetesArgs, environment: &Environment) -> Result<(), CliError> {
    let text = match args.command {
        KubernetesCommand::Gates(args) => gates(args, environment).await?,
        KubernetesCommand::Crds => ringfence_operator::definitions(),
        KubernetesCommand::Webhooks(args) => webhooks(args, environment)?,
    };
    Ok(std::io::Write::write_all(
        &mut std::io::stdout(),
        text.as_bytes(),
    )?)
}

async fn gates(args: GatesArgs, environment: &Environment) -> Result<String, CliError> {
    let cluster = cluster(&args.cluster, &args.config, environment)?;
    let names = cluster.gate_names(args.account).await?;
    Ok(names.policies()?)
}

fn webhooks(args: WebhooksArgs, environment: &Environment) -> Result<String, CliError> {
    let names: GateNames = cluster(&args.cluster, &args.config, environment)?.names("unused");
    if !args.url.starts_with("https://") {
        let why = format!("--url is {:?}; https://HOST:PORT is allowed", args.url);
        return Err(CliError::Usage(why));
    }
    Ok(names.webhooks(&args.url, &authority(&args.ca_file)?)?)
}

fn authority(file: &Path) -> Result<String, CliError> {
    let pem = std::fs::read(file).map_err(|source| CliError::file("read", file, source))?;
    Ok(BASE64_STANDARD.encode(pem))
}

fn cluster(name: &str, config: &ConfigArgs, environment: &Environment) -> Result<Cluster, CliError> {
    let settings = config.settings(environment, Vec::new())?;
    platforms::cluster("CLUSTER", name, &settings)
}
