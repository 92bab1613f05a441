//! One host of a file, as written there.

use std::collections::BTreeMap;

use ringfence_core::{
    Backend, DEFAULT_ZONE, HostDescription, Labels, Parameters, validate_host, validate_name,
};
use serde_json::{Map, Value, json};

use crate::client::view::Host;

/// The fields of a host beside its labels and parameters.
pub const FIELDS: [&str; 7] = ["name", "segment", "type", "backend", "cloud", "known_as", "zone"];
const BACKENDS: [&str; 3] = ["nova", "kubernetes", "none"];

/// What the import does about a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Wish {
    /// Adds the host, or changes it to the entry.
    #[default]
    Here,
    /// Reports an error for this reason.
    Barred(String),
    /// Deletes the host.
    Gone,
}

/// A host of the file, or of a cloud.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// The line in which the entry begins, from 1; 0 if it is not from a file.
    pub line: u64,
    /// What the import does about the host.
    pub wish: Wish,
    /// The host's name.
    pub name: String,
    /// The segment, type, backend, cloud and zone, as far as the file sets them.
    pub fields: BTreeMap<&'static str, String>,
    /// The labels that the file sets.
    pub labels: Labels,
    /// The parameters by method.
    pub parameters: BTreeMap<String, Parameters>,
}

impl Entry {
    /// Sets a field of [`FIELDS`]; an empty value sets nothing.
    pub fn put(&mut self, field: &'static str, value: &str) {
        let value = value.trim();
        if value.is_empty() {
            return;
        }
        if field == "name" {
            self.name = value.to_owned();
        } else {
            self.fields.insert(field, value.to_owned());
        }
    }

    fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }

    /// The errors that the entry alone shows.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.name.is_empty() {
            problems.push("name: is missing".to_owned());
        } else {
            let zone = self.field("zone").unwrap_or(DEFAULT_ZONE);
            let backend = self.field("backend").and_then(Backend::from_word);
            let checked = validate_host(&HostDescription {
                name: &self.name,
                zone,
                host_type: self.field("type"),
                // A host that exists may have a backend that the file does not name.
                backend: backend.unwrap_or(Backend::Nova),
                cloud: self.field("cloud"),
                known_as: self.field("known_as"),
                labels: &self.labels,
                parameters: &self.parameters,
            });
            problems.extend(
                checked
                    .err()
                    .into_iter()
                    .flat_map(|found| found.0)
                    .map(|p| p.to_string()),
            );
        }
        if let Some(Err(problem)) = self
            .field("segment")
            .map(|segment| validate_name("segment", segment))
        {
            problems.push(problem.to_string());
        }
        if let Some(backend) = self.field("backend").filter(|word| !BACKENDS.contains(word)) {
            problems.push(format!(
                "backend: is {backend:?}; {} is allowed",
                BACKENDS.join(", ")
            ));
        }
        problems
    }

    /// The segment that has to exist.
    pub fn segment(&self) -> Option<&str> {
        self.field("segment")
    }

    /// The body that adds the host.
    pub fn body(&self) -> Value {
        let mut body = Map::new();
        body.insert("name".to_owned(), json!(self.name));
        for (field, value) in &self.fields {
            body.insert((*field).to_owned(), json!(value));
        }
        if !self.labels.is_empty() {
            body.insert("labels".to_owned(), json!(self.labels));
        }
        if !self.parameters.is_empty() {
            body.insert("parameters".to_owned(), json!(self.parameters));
        }
        body.into()
    }

    /// The changes of a host that exists. Fields that the file does not set stay.
    pub fn changes(&self, host: &Host) -> Map<String, Value> {
        let mut changes = Map::new();
        for (field, value) in &self.fields {
            let now = match *field {
                "segment" => Some(host.segment.as_str()),
                "type" => host.host_type.as_deref(),
                "backend" => Some(host.backend.as_str()),
                "cloud" => host.cloud.as_deref(),
                "known_as" => host.known_as.as_deref(),
                _ => Some(host.zone.as_str()),
            };
            if now != Some(value) {
                changes.insert((*field).to_owned(), json!(value));
            }
        }
        let mut labels = host.labels.clone();
        labels.extend(self.labels.clone());
        if labels != host.labels {
            changes.insert("labels".to_owned(), json!(labels));
        }
        let mut parameters = host.parameters.clone();
        for (method, values) in &self.parameters {
            parameters
                .entry(method.clone())
                .or_default()
                .extend(values.clone());
        }
        if parameters != host.parameters {
            changes.insert("parameters".to_owned(), json!(parameters));
        }
        changes
    }
}

/// The hosts of a file, and its errors by line.
#[derive(Debug, Default)]
pub struct Sheet {
    /// The hosts.
    pub entries: Vec<Entry>,
    /// Lines and errors.
    pub complaints: Vec<(u64, String)>,
}

impl Sheet {
    /// Adds an error.
    pub fn complain(&mut self, line: u64, what: impl Into<String>) {
        self.complaints.push((line, what.into()));
    }

    /// Adds all errors that are found without the service.
    pub fn check(&mut self) {
        let mut lines: BTreeMap<&str, u64> = BTreeMap::new();
        let mut found = Vec::new();
        for entry in &self.entries {
            let own = entry.problems().into_iter().map(|problem| (entry.line, problem));
            found.extend(own);
            if entry.name.is_empty() {
                continue;
            }
            if let Some(first) = lines.insert(&entry.name, entry.line) {
                found.push((
                    entry.line,
                    format!("name: {:?} stands in line {first} already", entry.name),
                ));
            }
        }
        self.complaints.extend(found);
    }
}
