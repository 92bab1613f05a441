//! `ringfence db`.

use std::io::Write;

use ringfence_db::{Database, SchemaState, breaking_migration, newest_schema, schema_state};

use crate::config::Settings;
use crate::error::CliError;

/// Brings the schema of the database to that of this build. A step that would end services which may be running is taken only once
/// somebody has said that none is.
pub async fn migrate(settings: Settings, are_services_stopped: bool) -> Result<(), CliError> {
    let fault = |doing: &'static str| move |e| CliError::service("db", doing, e);
    let url = settings.database_url()?;
    let db = Database::open(url.expose(), settings.database.connections)
        .await
        .map_err(fault("cannot open it"))?;
    let before = schema_state(&db).await.map_err(fault("cannot read the schema"))?;
    let breaking = breaking_migration(&db)
        .await
        .map_err(fault("cannot read the schema"))?;
    if let (Some(version), false) = (breaking, are_services_stopped) {
        return Err(CliError::Usage(format!(
            "nothing was changed: APIs and engines of the build before cannot go on with schema {version}; stop all of them, then run `ringfence db migrate --services-stopped`"
        )));
    }
    ringfence_db::migrate(&db)
        .await
        .map_err(fault("cannot bring the schema up to date"))?;
    writeln!(std::io::stdout(), "{}", told(before, db.address()))?;
    Ok(())
}

/// What has been done to a schema that stood so.
fn told(before: SchemaState, address: &str) -> String {
    let newest = newest_schema();
    match before {
        SchemaState::Missing => format!("{address}: schema {newest} was made"),
        SchemaState::Older { found, .. } => format!("{address}: schema {found} was brought to {newest}"),
        SchemaState::Current => format!("{address}: schema {newest} was there, and nothing was changed"),
        SchemaState::Ahead { found, .. } | SchemaState::Newer { found, .. } => {
            format!("{address}: schema {found} is newer than this build's {newest}, and nothing was changed")
        }
    }
}
