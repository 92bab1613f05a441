//! What is asked: each method that some host's plan uses, once per host where the question differs by host, and once for all where it
//! does not.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use ringfence_core::{ByScope, DEFAULT_ZONE, Driver, FrozenMethod, Host, HostId, Method, MethodId, Problems};
use ringfence_db::{CheckTarget, HostFilter, Page, SortKey};
use uuid::Uuid;

use super::{later, part_of};
use crate::devices::without_host;
use crate::ids::new_id;
use crate::requests::method_names;
use crate::{Engine, EngineError};

const MOST_PARTS: u32 = 10_000;
/// Hosts that are looked at between two breaths.
const PAGE: u32 = 200;
/// More questions than this are not put.
const MOST_TARGETS: usize = 100_000;
/// New questions are spread over so much time each, and over the whole interval at most.
const SPREAD: Duration = Duration::from_millis(250);

/// A method, and the host if the question differs by host.
type Key = (MethodId, Option<HostId>);

/// What is asked, in short, and the device.
struct Question {
    id: Uuid,
    device: Option<String>,
}

/// Brings the table of checks up to date.
pub(super) async fn refresh(engine: &Engine, every: Duration) -> Result<(), EngineError> {
    let mut wanted = wanted(engine).await?;
    let mut stale = Vec::new();
    let mut after = None;
    loop {
        let rows = ringfence_db::check_targets(&mut engine.0.db.reader(), after, MOST_PARTS).await?;
        after = rows.last().map(|row| row.id);
        let is_last = rows.len() < MOST_PARTS as usize;
        for row in rows {
            let key = (row.method_id, row.host_id);
            if wanted
                .get(&key)
                .is_some_and(|question| question.id == row.question)
            {
                wanted.remove(&key);
            } else {
                stale.push(row.id);
            }
        }
        if is_last {
            break;
        }
    }
    ringfence_db::remove_check_targets(&engine.0.db, &stale).await?;
    let now = engine.0.clock.now();
    let count = u32::try_from(wanted.len()).unwrap_or(u32::MAX);
    let spread = SPREAD.saturating_mul(count).min(every);
    let new: Vec<CheckTarget> = wanted
        .into_iter()
        .map(|((method_id, host_id), question)| CheckTarget {
            id: new_id(),
            method_id,
            host_id,
            question: question.id,
            device: question.device,
            next_at: later(now, part_of(spread)),
            missed: 0,
        })
        .collect();
    Ok(ringfence_db::add_check_targets(&engine.0.db, &new).await?)
}

async fn wanted(engine: &Engine) -> Result<HashMap<Key, Question>, EngineError> {
    let mut reader = engine.0.db.reader();
    let methods = ringfence_db::list_methods(&mut reader, MOST_PARTS).await?;
    let plans = ringfence_db::list_plans(&mut reader, MOST_PARTS).await?;
    let names = plans
        .into_iter()
        .map(|plan| (plan.scope.clone(), method_names(&plan)));
    let names: ByScope<BTreeSet<String>> = names.collect();
    let by_name: BTreeMap<_, _> = methods.iter().map(|method| (&*method.name, method)).collect();
    let mut wanted = HashMap::new();
    let mut used = BTreeSet::new();
    let mut marker = None;
    loop {
        let page = Page {
            limit: PAGE,
            marker,
            sort: vec![SortKey::Name.ascending()],
        };
        let rows = ringfence_db::hosts_page(&mut reader, &HostFilter::default(), &page).await?;
        marker = rows.last().map(|row| row.host.id.0);
        for host in rows.iter().map(|row| &row.host) {
            let names = names.for_host(host).into_iter().flatten();
            for method in names.filter_map(|name| by_name.get(name.as_str())) {
                used.insert(method.id);
                if wanted.len() < MOST_TARGETS {
                    let (key, question) = ask_for(method, host);
                    wanted.entry(key).or_insert(question);
                }
            }
        }
        if rows.len() < PAGE as usize {
            break;
        }
        // Thousands of hosts must not keep this thread from a fence.
        tokio::task::yield_now().await;
    }
    for method in methods.iter().filter(|method| !used.contains(&method.id)) {
        if let Some(question) = ask_unused(method) {
            wanted.insert((method.id, None), question);
        }
    }
    Ok(wanted)
}

/// The question for a host: its own, if anything of it comes from the host.
fn ask_for(method: &Method, host: &Host) -> (Key, Question) {
    let differs = names_the_host(method)
        || host.parameters.contains_key(&method.name)
        || (method.zone.is_none() && host.zone != DEFAULT_ZONE);
    if differs {
        let frozen = FrozenMethod::new(method, host);
        ((method.id, Some(host.id)), question(frozen))
    } else {
        ((method.id, None), question(without_host(method)))
    }
}

/// A method that no host's plan uses is asked for if it is whole without a host. What an agent needs beside, nobody knows here.
fn ask_unused(method: &Method) -> Option<Question> {
    let is_whole = !names_the_host(method) && method.driver != Driver::FenceAgent;
    is_whole.then(|| question(without_host(method)))
}

fn names_the_host(method: &Method) -> bool {
    method.parameters.values().any(|value| value.contains("${"))
}

/// One that cannot be filled in is asked for all the same: its answer says what is wrong.
fn question(frozen: Result<FrozenMethod, Problems>) -> Question {
    let (text, device) = match frozen {
        Ok(frozen) => (serde_json::to_vec(&frozen).unwrap_or_default(), frozen.device),
        Err(problems) => (problems.to_string().into_bytes(), None),
    };
    Question {
        id: Uuid::new_v5(&Uuid::NAMESPACE_OID, &text),
        device,
    }
}
