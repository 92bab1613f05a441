//! The client and the screen of a command.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::arguments::ListArgs;
use crate::args::RemoteArgs;
use crate::client::{Answer, Client, Place, Request};
use crate::config::{Environment, check_names};
use crate::error::CliError;
use crate::output::{Screen, Table};

/// The client and the screen.
pub struct Session {
    /// The service.
    pub client: Client,
    /// The screen.
    pub screen: Screen,
}

impl Session {
    /// Finds the service; sends nothing.
    pub fn open(remote: &RemoteArgs, environment: &Environment) -> Result<Self, CliError> {
        check_names(environment).into_result()?;
        let client = Client::new(Place::find(remote, environment)?)?;
        Ok(Self {
            client,
            screen: Screen::new(remote.output.format),
        })
    }

    /// Sends a request and shows the answer: as JSON for programs, else by `show`.
    pub async fn show<T: DeserializeOwned>(
        &mut self,
        request: Request<'_>,
        show: impl FnOnce(&mut Screen, T) -> Result<(), CliError>,
    ) -> Result<(), CliError> {
        let answer = self.client.send(request).await?;
        self.answer(&answer, show)
    }

    /// Shows an answer.
    pub fn answer<T: DeserializeOwned>(
        &mut self,
        answer: &Answer,
        show: impl FnOnce(&mut Screen, T) -> Result<(), CliError>,
    ) -> Result<(), CliError> {
        if self.screen.is_for_programs() {
            self.screen.data(&answer.body)
        } else {
            show(&mut self.screen, answer.view()?)?;
            self.tell_warnings(&answer.body);
            Ok(())
        }
    }

    /// Prints the warnings in an answer: what would keep hosts from being fenced with this configuration.
    fn tell_warnings(&self, body: &Value) {
        let warnings = body["warnings"].as_array().into_iter().flatten();
        for warning in warnings.filter_map(Value::as_str) {
            self.screen.warning(warning);
        }
    }

    /// Lists a collection.
    pub async fn list<T: DeserializeOwned>(
        &mut self,
        noun: &str,
        query: Vec<(&str, Option<String>)>,
        args: &ListArgs,
        table: impl FnOnce(&[T]) -> Table,
    ) -> Result<(), CliError> {
        let mut query = query;
        let limit = args.limit as usize;
        if args.sort.is_some() {
            query.push(("sort", args.sort.clone()));
        }
        let all = self.client.collect(noun, &query, limit).await?;
        if self.screen.is_for_programs() {
            return self.screen.data(&all);
        }
        self.screen.table(table(&views(&all, noun)?))
    }

    /// Deletes an object.
    pub async fn delete(&mut self, noun: &str, id: &str) -> Result<(), CliError> {
        self.client.send(Request::delete(&[noun, id])).await?;
        self.screen.done(format!("{id} is deleted"))
    }

    /// The keys of an object that can be written, and its entity tag: for reading, changing and writing it back.
    pub async fn draft(
        &self,
        noun: &str,
        id: &str,
        keys: &[&str],
    ) -> Result<(Map<String, Value>, Option<String>), CliError> {
        let answer = self.client.send(Request::get(&[noun, id])).await?;
        let body = answer.body.as_object().cloned().unwrap_or_default();
        Ok((
            body.into_iter()
                .filter(|(key, _)| keys.contains(&key.as_str()))
                .collect(),
            answer.etag,
        ))
    }
}

/// The objects of a collection.
pub fn views<T: DeserializeOwned>(all: &Value, noun: &str) -> Result<Vec<T>, CliError> {
    Vec::<T>::deserialize(&all[noun]).map_err(|error| CliError::Answer {
        url: noun.to_owned(),
        why: error.to_string(),
    })
}
