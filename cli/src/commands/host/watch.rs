//! `ringfence host list --watch`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use tokio::time::sleep;

use super::super::arguments::ListArgs;
use super::super::session::{Session, views};
use super::show;
use crate::client::view::Host;
use crate::error::CliError;

/// The pause between two looks; larger lists are read less often.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_FOR_MANY: Duration = Duration::from_secs(5);
const MANY: usize = 1000;

/// Lists hosts again and again until the command is stopped.
pub async fn watch(
    query: Vec<(&str, Option<String>)>,
    args: &ListArgs,
    session: &mut Session,
) -> Result<(), CliError> {
    let mut query = query;
    query.push(("sort", args.sort.clone()));
    let mut seen = Seen::default();
    let mut is_away = false;
    loop {
        let count = match session.client.collect("hosts", &query, args.limit as usize).await {
            Ok(all) => {
                is_away = false;
                seen.show(&all, session)?;
                all["hosts"].as_array().map_or(0, Vec::len)
            }
            Err(error) if !seen.is_new() && error.is_passing() => {
                if !is_away {
                    session.screen.note("the service does not answer; trying again");
                }
                is_away = true;
                0
            }
            Err(error) => return Err(error),
        };
        sleep(if count > MANY { PAUSE_FOR_MANY } else { PAUSE }).await;
    }
}

/// The list that was shown last.
#[derive(Default)]
struct Seen {
    /// By id.
    rows: BTreeMap<String, String>,
    /// The list as a whole, as text.
    list: String,
    has_shown: bool,
}

impl Seen {
    fn is_new(&self) -> bool {
        !self.has_shown
    }

    fn show(&mut self, all: &Value, session: &mut Session) -> Result<(), CliError> {
        let hosts = views::<Host>(all, "hosts")?;
        let is_first = self.is_new();
        self.has_shown = true;
        if session.screen.is_live() {
            let list = session.screen.rendered(&show::table(&hosts));
            if list != self.list {
                session.screen.table_anew(show::table(&hosts))?;
            }
            self.list = list;
            return Ok(());
        }
        for (host, value) in hosts.iter().zip(all["hosts"].as_array().into_iter().flatten()) {
            let row = session.screen.rendered(&show::table(std::slice::from_ref(host)));
            let is_known = self.rows.get(&host.id) == Some(&row);
            if !is_known && session.screen.is_for_programs() {
                session.screen.data_line(value)?;
            } else if !is_known && !is_first {
                session
                    .screen
                    .text(row.split_once('\n').map_or("", |(_, row)| row))?;
            }
            self.rows.insert(host.id.clone(), row);
        }
        if is_first && !session.screen.is_for_programs() {
            session.screen.table(show::table(&hosts))?;
        }
        self.tell_gone(&hosts, session);
        Ok(())
    }

    fn tell_gone(&mut self, hosts: &[Host], session: &Session) {
        let listed: BTreeSet<&str> = hosts.iter().map(|host| host.id.as_str()).collect();
        let is_gone = |id: &String, _: &mut String| !listed.contains(id.as_str());
        for (id, _) in self.rows.extract_if(.., is_gone) {
            session.screen.note(format!("host {id} is in the list no more"));
        }
    }
}
