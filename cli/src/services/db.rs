//! `ringfence db`.

use std::io::Write;

use ringfence_db::Database;

use crate::config::Settings;
use crate::error::CliError;

/// Brings the schema of the database to that of this build.
pub async fn migrate(settings: Settings) -> Result<(), CliError> {
    let fault = |doing: &'static str| move |e| CliError::service("db", doing, e);
    let url = settings.database_url()?;
    let db = Database::open(url.expose(), settings.database.connections)
        .await
        .map_err(fault("cannot open it"))?;
    ringfence_db::migrate(&db)
        .await
        .map_err(fault("cannot bring the schema up to date"))?;
    writeln!(std::io::stdout(), "the schema of {} is up to date", db.address())?;
    Ok(())
}
