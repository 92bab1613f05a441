//! `ringfence config check`.

use std::fs::File;

use serde_json::{Value, json};

use crate::args::{ConfigArgs, Format};
use crate::config::{Effective, Environment, load};
use crate::error::CliError;
use crate::output::{Screen, Table};

/// Prints every setting and its source.
pub fn check(args: &ConfigArgs, output: Format, environment: &Environment) -> Result<(), CliError> {
    let (_, effective) = load(&args.sources(environment, Vec::new()))?;
    let mut screen = Screen::new(output);
    let notes: Vec<_> = effective.iter().filter_map(unreadable).collect();
    if screen.is_for_programs() {
        return screen.data(&json!({"settings": effective, "notes": notes}));
    }
    let mut table = Table::new(&["KEY", "VALUE", "FROM"]);
    for setting in effective {
        table.row([
            setting.key.into(),
            shown(&setting.value).into(),
            setting.from.into(),
        ]);
    }
    screen.table(table)?;
    for note in notes {
        screen.note(format!("note: {note}"));
    }
    Ok(())
}

/// The warning about a file that a setting names. An unreadable file does not make the configuration wrong: the service may run as another
/// user.
fn unreadable(setting: &Effective) -> Option<String> {
    let path = setting
        .value
        .as_str()
        .filter(|_| setting.key.ends_with("_file"))?;
    let error = File::open(path).err()?;
    Some(format!(
        "{} names {path}, which cannot be read here: {error}",
        setting.key
    ))
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}
