//! `ringfence backup` and `ringfence restore`, for standalone.

use std::path::PathBuf;

use clap::Args;

use crate::args::{ConfigArgs, flag};
use crate::backup;
use crate::clock::now;
use crate::config::{Environment, Settings};
use crate::error::CliError;
use crate::output::{Screen, time};

/// `ringfence backup`, `ringfence restore`
#[derive(Debug, Args)]
pub struct BackupArgs {
    /// The file of the backup
    file: PathBuf,
    /// Data directory of the standalone service
    #[arg(long, value_name = "DIR")]
    data_dir: Option<String>,
    /// The configuration.
    #[command(flatten)]
    config: ConfigArgs,
}

impl BackupArgs {
    fn settings(&self, environment: &Environment) -> Result<Settings, CliError> {
        let data_dir = flag("standalone.data_dir", "--data-dir", self.data_dir.clone());
        self.config.settings(environment, vec![data_dir])
    }
}

/// Makes a backup.
pub async fn take(args: BackupArgs, environment: &Environment) -> Result<(), CliError> {
    let settings = args.settings(environment)?;
    let manifest = backup::take(settings.data_dir()?, &args.file, now()).await?;
    let mut screen = Screen::new(crate::args::Format::Table);
    let files: Vec<_> = manifest.files.iter().map(|part| part.name.as_str()).collect();
    screen.line(format!(
        "{}: schema {}, {}",
        args.file.display(),
        manifest.schema,
        files.join(", ")
    ))?;
    if let Some(keys) = &settings.webhooks.keys_file {
        screen.note(format!(
            "not in it: {}, which webhooks.keys_file names",
            keys.display()
        ));
    }
    Ok(())
}

/// Restores a backup.
pub async fn restore(args: BackupArgs, environment: &Environment) -> Result<(), CliError> {
    let settings = args.settings(environment)?;
    let data_dir = settings.data_dir()?;
    let restored = backup::restore(&args.file, data_dir, now()).await?;
    let mut screen = Screen::new(crate::args::Format::Table);
    let at = time(restored.manifest.created_at);
    screen.line(format!("{} is as it was on {at}", data_dir.display()))?;
    if let Some(before) = restored.before {
        screen.line(format!("the directory from before is now {}", before.display()))?;
    }
    screen.note(
        "hosts may have been fenced or rejoined since the backup, which the restored state does not show: compare each with what its \
         devices say before you rely on it (docs/operations.md, \"After a restore\")",
    );
    Ok(())
}
