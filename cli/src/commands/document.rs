//! Objects in files: JSON or TOML.

use std::io::Read;
use std::path::Path;

use serde_json::{Map, Value};

use crate::error::CliError;

/// Reads an object from a file of 1 MiB at most, `-` for standard input; the API takes less. What does not begin with a brace is TOML.
pub fn read(path: &Path) -> Result<Map<String, Value>, CliError> {
    let text = text(path, 1)?;
    let content = |why: String| CliError::content(path, why);
    let value: Value = if text.trim_start().starts_with('{') {
        serde_json::from_str(&text).map_err(|error| content(format!("is not JSON: {error}")))?
    } else {
        toml::from_str(&text).map_err(|error| content(not_toml(&text, &error)))?
    };
    match value {
        Value::Object(object) => Ok(object),
        _ => Err(content("holds no object".to_owned())),
    }
}

/// What is wrong, and where.
fn not_toml(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let place = before.map_or(String::new(), |before| {
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |rest| rest.chars().count()) + 1;
        format!(" (line {line}, column {column})")
    });
    format!("is not TOML: {}{place}", error.message())
}

/// The text of a file of so many MiB at most, `-` for standard input.
pub fn text(path: &Path, max_mib: u64) -> Result<String, CliError> {
    let fault = |source| CliError::file("read", path, source);
    let reader: Box<dyn Read> = if path == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(path).map_err(fault)?)
    };
    let max_bytes = max_mib * 1024 * 1024;
    let mut text = String::new();
    reader
        .take(max_bytes + 1)
        .read_to_string(&mut text)
        .map_err(fault)?;
    if text.len() as u64 > max_bytes {
        return Err(CliError::content(path, format!("is longer than {max_mib} MiB")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    #[test]
    fn json_and_toml_say_the_same() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let read_as = |text: &str| {
            fs::write(file.path(), text).unwrap();
            read(file.path())
        };
        let json = read_as(r#"{"name": "p", "stages": [{"delay_s": 3}]}"#).unwrap();
        assert_eq!(read_as("name = \"p\"\n[[stages]]\ndelay_s = 3\n").unwrap(), json);
        assert_eq!(
            Value::Object(json),
            json!({"name": "p", "stages": [{"delay_s": 3}]})
        );
        assert!(read_as("{\"name\"").is_err());
        let error = read_as("name = \"p\"\nscope = \n").unwrap_err().to_string();
        assert!(error.contains("(line 2, column 9)"), "{error}");
    }
}
