//! `ringfence db`.

use std::io::Write;

use ringfence_db::{Database, SchemaState, newest_schema, schema_state};

use crate::config::Settings;
use crate::error::CliError;

/// Migrates the schema of the database to that of this build. APIs and engines of another build cannot use the schema afterwards, so an
/// older schema is migrated only if the caller confirms that all of them are stopped.
pub async fn migrate(settings: Settings, are_services_stopped: bool) -> Result<(), CliError> {
    let fault = |doing: &'static str| move |e| CliError::service("db", doing, e);
    let url = settings.database_url()?;
    let db = Database::open(url.expose(), settings.database.connections)
        .await
        .map_err(fault("cannot open it"))?;
    let before = schema_state(&db).await.map_err(fault("cannot read the schema"))?;
    if let (SchemaState::Older { found, needed }, false) = (before, are_services_stopped) {
        return Err(CliError::Usage(format!(
            "nothing was changed: APIs and engines that run with schema {found} cannot use schema {needed}; stop all of them, then run `ringfence db migrate --services-stopped`"
        )));
    }
    ringfence_db::migrate(&db)
        .await
        .map_err(fault("cannot bring the schema up to date"))?;
    writeln!(std::io::stdout(), "{}", told(before, db.address()))?;
    Ok(())
}

/// The message about a schema that was in the state `before`.
fn told(before: SchemaState, address: &str) -> String {
    let newest = newest_schema();
    match before {
        SchemaState::Missing => format!("{address}: schema {newest} was created"),
        SchemaState::Older { found, .. } => format!("{address}: schema {found} was migrated to {newest}"),
        SchemaState::Current => format!("{address}: the schema already is {newest}, and nothing was changed"),
        SchemaState::Newer { found, .. } => {
            format!("{address}: schema {found} is newer than this build's {newest}, and nothing was changed")
        }
    }
}
