//! The configuration file: TOML, sections of keys.

use std::io::Read;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeInteger, DeString, DeTable, DeValue};

use super::field::{FIELDS, Field, find};
use super::nearest::nearest;
use super::value::Raw;
use crate::error::{CliError, Complaints};

/// The file that is read if none is named.
pub const DEFAULT_FILE: &str = "/etc/ringfence/ringfence.toml";

/// The longest configuration; a longer file was named by mistake.
const MAX_BYTES: u64 = 1024 * 1024;

/// One value of the file.
#[derive(Debug)]
pub struct Entry {
    /// The key.
    pub field: &'static Field,
    /// The value.
    pub raw: Raw,
    /// Its line, counted from 1.
    pub line: usize,
}

/// The text of the named file, which has to exist, or else of the default file if it exists.
pub fn read(named: Option<&Path>) -> Result<Option<(PathBuf, String)>, CliError> {
    let path = named.unwrap_or(Path::new(DEFAULT_FILE));
    match read_text(path) {
        Ok(text) => Ok(Some((path.to_owned(), text))),
        Err(CliError::File { source, .. })
            if named.is_none() && source.kind() == std::io::ErrorKind::NotFound =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn read_text(path: &Path) -> Result<String, CliError> {
    let fault = |source| CliError::file("read the configuration", path, source);
    let file = std::fs::File::open(path).map_err(fault)?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(fault)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(CliError::content(
            path,
            "is longer than 1 MiB; this is no configuration",
        ));
    }
    String::from_utf8(bytes).map_err(|_| CliError::content(path, "is not UTF-8 text"))
}

/// All values of the text; all other content becomes complaints.
pub fn entries(path: &Path, text: &str, complaints: &mut Complaints) -> Vec<Entry> {
    let at = |offset: usize| format!("{}:{}", path.display(), line_of(text, offset));
    let table = match DeTable::parse(text) {
        Ok(table) => table,
        Err(error) => {
            let start = error.span().map_or(0, |span| span.start);
            let message = error.message().replace('\n', "; ");
            complaints.add(format!(
                "{}: not TOML, or only the first part of it: {message}",
                at(start)
            ));
            return Vec::new();
        }
    };
    let mut entries = Vec::new();
    for (section, value) in table.get_ref() {
        if let Err(complaint) = read_section(section, value, &mut entries) {
            complaints.add(format!("{}: {complaint}", at(section.span().start)));
        }
    }
    entries.retain(|entry: &Found<'_>| {
        if find(&entry.key).is_none() {
            let nearest = nearest(&entry.key, FIELDS.iter().map(|field| field.key));
            complaints.add(format!(
                "{}: {} is not a known key; did you mean {nearest}?",
                at(entry.at),
                entry.key
            ));
        }
        find(&entry.key).is_some()
    });
    entries
        .into_iter()
        .filter_map(|found| found.entry(text))
        .collect()
}

struct Found<'a> {
    key: String,
    value: &'a DeValue<'a>,
    at: usize,
}

impl Found<'_> {
    fn entry(self, text: &str) -> Option<Entry> {
        Some(Entry {
            field: find(&self.key)?,
            raw: raw(self.value),
            line: line_of(text, self.at),
        })
    }
}

fn read_section<'a>(
    section: &Spanned<DeString<'a>>,
    value: &'a Spanned<DeValue<'a>>,
    found: &mut Vec<Found<'a>>,
) -> Result<(), String> {
    let name = section.get_ref();
    let sections = || FIELDS.iter().map(Field::section);
    if !sections().any(|known| known == name) {
        return Err(format!(
            "{name} is not a known section; did you mean [{}]?",
            nearest(name, sections())
        ));
    }
    let DeValue::Table(keys) = value.get_ref() else {
        return Err(format!("{name} is a section: write [{name}] and its keys below"));
    };
    for (key, value) in keys {
        found.push(Found {
            key: format!("{name}.{}", key.get_ref()),
            value: value.get_ref(),
            at: key.span().start,
        });
    }
    Ok(())
}

fn raw(value: &DeValue<'_>) -> Raw {
    match value {
        DeValue::String(text) => Raw::Text(text.to_string()),
        DeValue::Integer(number) => {
            integer(number).map_or(Raw::Other("a number that is too large"), Raw::Integer)
        }
        DeValue::Array(items) => {
            let texts: Option<Vec<String>> = items
                .iter()
                .map(|item| item.get_ref().as_str().map(str::to_owned))
                .collect();
            texts.map_or(Raw::Other("a list of other things than strings"), Raw::List)
        }
        DeValue::Float(_) => Raw::Other("a fraction"),
        DeValue::Boolean(flag) => Raw::Flag(*flag),
        DeValue::Datetime(_) => Raw::Other("a time"),
        DeValue::Table(_) => Raw::Other("a table"),
    }
}

fn integer(number: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(&number.as_str().replace('_', ""), number.radix()).ok()
}

fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(text: &str) -> String {
        let mut complaints = Complaints::default();
        entries(Path::new("r.toml"), text, &mut complaints);
        complaints.to_string()
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line_and_the_nearest_known_one() {
        let text = "[engine]\nname = \"e1\"\n\n[api]\nlisen = \"127.0.0.1:1\"\n";
        assert_eq!(
            complaints(text),
            "r.toml:5: api.lisen is not a known key; did you mean api.listen?"
        );
    }

    #[test]
    fn an_unknown_section_is_named_with_the_nearest_known_one() {
        assert_eq!(
            complaints("[enigne]\n"),
            "r.toml:1: enigne is not a known section; did you mean [engine]?"
        );
        assert!(complaints("bus = 3\n").contains("write [bus]"));
    }

    #[test]
    fn half_a_file_is_refused_with_the_line_where_it_ends() {
        let complaint = complaints("[database]\nurl = \"postgres://u:hush@h/d");
        assert!(complaint.starts_with("r.toml:2: not TOML"), "{complaint}");
        assert!(!complaint.contains("hush"), "{complaint}");
    }

    #[test]
    fn values_keep_their_lines() {
        let text = "[worker]\nzones = [\"a\", \"b\"]\nconcurrency = 1_0\n";
        let entries = entries(Path::new("r.toml"), text, &mut Complaints::default());
        assert_eq!(entries[0].raw, Raw::Integer(10));
        assert_eq!(
            (entries[1].line, &entries[1].raw),
            (2, &Raw::List(vec!["a".to_owned(), "b".to_owned()]))
        );
    }
}
