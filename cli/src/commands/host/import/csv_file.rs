//! Hosts as CSV: a heading, then a host per line.

use csv::{ReaderBuilder, StringRecord, Trim};

use super::MOST_HOSTS;
use super::entry::{Entry, FIELDS, Sheet};

/// The meaning of a column.
enum Column {
    Field(&'static str),
    Label(String),
    /// Method and key.
    Parameter(String, String),
}

/// Reads the whole text. Errors in single lines do not end the reading.
pub fn read(text: &str) -> Sheet {
    let mut sheet = Sheet::default();
    let mut reader = ReaderBuilder::new()
        .trim(Trim::All)
        .comment(Some(b'#'))
        .flexible(true)
        .from_reader(text.as_bytes());
    let heading = match reader.headers() {
        Ok(heading) => heading.clone(),
        Err(error) => {
            sheet.complain(1, format!("is no heading: {error}"));
            return sheet;
        }
    };
    let columns = columns(&heading, &mut sheet);
    for record in reader.records() {
        match record {
            Ok(record) => take(&record, &columns, &mut sheet),
            Err(error) => {
                let line = error.position().map_or(0, csv::Position::line);
                sheet.complain(line, format!("cannot be read: {error}"));
                return sheet;
            }
        }
        if sheet.entries.len() > MOST_HOSTS {
            return sheet;
        }
    }
    sheet
}

fn columns(heading: &StringRecord, sheet: &mut Sheet) -> Vec<Option<Column>> {
    // A table from another program may begin with a byte order mark.
    let names: Vec<&str> = heading
        .iter()
        .map(|name| name.trim_start_matches('\u{feff}'))
        .collect();
    if !names.contains(&"name") {
        let allowed = FIELDS.join(", ");
        sheet.complain(
            1,
            format!(
                "the heading has no column name; {allowed}, labels.NAME and parameters.METHOD.KEY are allowed"
            ),
        );
    }
    for (at, name) in names.iter().enumerate() {
        if names[..at].contains(name) {
            sheet.complain(1, format!("the column {name:?} is there twice"));
        }
    }
    names.iter().map(|name| column(name, sheet)).collect()
}

fn column(name: &str, sheet: &mut Sheet) -> Option<Column> {
    if let Some(field) = FIELDS.into_iter().find(|field| *field == name) {
        return Some(Column::Field(field));
    }
    if let Some(label) = name.strip_prefix("labels.").filter(|label| !label.is_empty()) {
        return Some(Column::Label(label.to_owned()));
    }
    // The name of a method may contain dots, the name of a parameter may not.
    let parameter = name
        .strip_prefix("parameters.")
        .and_then(|rest| rest.rsplit_once('.'));
    match parameter {
        Some((method, key)) if !method.is_empty() && !key.is_empty() => {
            Some(Column::Parameter(method.to_owned(), key.to_owned()))
        }
        Some(_) | None => {
            let allowed = FIELDS.join(", ");
            sheet.complain(
                1,
                format!("the column {name:?} is not known; {allowed}, labels.NAME and parameters.METHOD.KEY are allowed"),
            );
            None
        }
    }
}

fn take(record: &StringRecord, columns: &[Option<Column>], sheet: &mut Sheet) {
    let line = record.position().map_or(0, csv::Position::line);
    if record.iter().any(|value| value.contains('\n')) {
        let why = "has a field that goes over several lines: a quotation mark that begins it is not closed";
        sheet.complain(line, why.to_owned());
        return;
    }
    if record.len() != columns.len() {
        sheet.complain(
            line,
            format!(
                "has {} fields, and the heading has {}",
                record.len(),
                columns.len()
            ),
        );
        return;
    }
    let mut entry = Entry {
        line,
        ..Entry::default()
    };
    for (value, column) in record.iter().zip(columns) {
        match column {
            Some(Column::Field(field)) => entry.put(field, value),
            Some(Column::Parameter(method, key)) if !value.is_empty() => {
                let of_method = entry.parameters.entry(method.clone()).or_default();
                of_method.insert(key.clone(), value.to_owned());
            }
            Some(Column::Label(label)) if !value.is_empty() => {
                entry.labels.insert(label.clone(), value.to_owned());
            }
            Some(Column::Parameter(..) | Column::Label(_)) | None => {}
        }
    }
    sheet.entries.push(entry);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quotation_mark_that_is_not_closed_is_named() {
        let sheet = read("name,zone\n\"node-1,a\nnode-2,b\n");
        let told = format!("{:?}", sheet.complaints);
        assert!(
            told.contains("quotation mark") && sheet.entries.is_empty(),
            "{told}"
        );
        assert_eq!(read("name,zone\n\"node-1\",a\n").entries.len(), 1);
    }

    #[test]
    fn a_label_has_a_column_of_its_own() {
        let sheet = read("name,labels.rack,labels.topology.kubernetes.io/zone\nnode-1,r1,\n");
        assert!(sheet.complaints.is_empty(), "{:?}", sheet.complaints);
        let rack = [("rack".to_owned(), "r1".to_owned())].into();
        assert_eq!(sheet.entries[0].labels, rack);
    }
}
