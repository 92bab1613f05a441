//! `ringfence config check`.

use serde_json::{Value, json};

use crate::args::{ConfigArgs, Format};
use crate::config::{Environment, load};
use crate::error::CliError;
use crate::output::{Screen, Table};

/// Prints every setting and where it came from.
pub fn check(args: &ConfigArgs, output: Format, environment: &Environment) -> Result<(), CliError> {
    let (_, effective) = load(&args.sources(environment, Vec::new()))?;
    let mut screen = Screen::new(output);
    if screen.is_json() {
        return screen.json(&json!({"settings": effective}));
    }
    let mut table = Table::new(&["KEY", "VALUE", "FROM"]);
    for setting in effective {
        table.row([
            setting.key.into(),
            shown(&setting.value).into(),
            setting.from.into(),
        ]);
    }
    screen.table(table)
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}
