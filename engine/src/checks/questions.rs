//! What is asked: each method that some host's plan uses, once per host, or once per cloud where one service answers for all of a cloud's hosts; and
//! each other one that is whole without a host.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ringfence_core::{ByScope, Catalogue, FrozenMethod, Host, HostId, Method, MethodId, PlanScope, Problems};
use ringfence_db::{Filters, Page, SortKey};
use uuid::Uuid;

use super::ask::ask_worker;
use crate::devices::MethodCheck;
use crate::host_plan::method_names;
use crate::shared_devices::Sharing;
use crate::{Engine, EngineError};

const MOST_PARTS: u32 = 10_000;
/// Hosts that are looked at between two breaths.
const PAGE: u32 = 200;
/// More questions than this are not put.
const MOST_QUESTIONS: usize = 100_000;

/// A method, and the host if the question differs by host.
pub(super) type Key = (MethodId, Option<HostId>);

/// What is asked, in short, and the device.
pub(super) struct Question {
    pub id: Uuid,
    pub device: Option<String>,
    whom: DeviceQuestion,
}

/// Whom a question is put to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceQuestion {
    /// The name of the method.
    pub method: String,
    /// The name of the host; `None` if no host's plan uses the method.
    pub host: Option<String>,
}

impl Engine {
    /// What has to be asked so that each device is heard, in order; for one host, what its own plan uses.
    pub async fn device_questions(&self, host: Option<&str>) -> Result<Vec<DeviceQuestion>, EngineError> {
        let questions = match host {
            Some(host) => self.questions_for(host).await?,
            None => wanted(self).await?.0,
        };
        let mut whom: Vec<_> = questions.into_values().map(|question| question.whom).collect();
        whom.sort();
        Ok(whom)
    }

    /// Puts one of them. Where no worker has answered a moment ago, none is waited for again.
    pub async fn put_question(&self, question: &DeviceQuestion) -> Result<MethodCheck, EngineError> {
        let method = self.method_of(&question.method).await?;
        let frozen = match &question.host {
            Some(host) => self.filled_in(&method, host).await??,
            None => FrozenMethod::without_host(&self.0.drivers, &method)?,
        };
        ask_worker(self, frozen).await
    }

    async fn questions_for(&self, host: &str) -> Result<HashMap<Key, Question>, EngineError> {
        let host = self.state_of(host).await?.host;
        let configured = Configured::read(self).await?;
        Ok(configured
            .used_by(&host)
            .map(|(scope, method)| ask_for(&self.0.drivers, scope, method, &host).0)
            .collect())
    }
}

/// Methods, and which plans use them.
struct Configured {
    methods: BTreeMap<String, Method>,
    used: ByScope<(PlanScope, BTreeSet<String>)>,
}

impl Configured {
    async fn read(engine: &Engine) -> Result<Self, EngineError> {
        let mut reader = engine.0.db.reader();
        let methods = ringfence_db::list_methods(&mut reader, MOST_PARTS).await?;
        let plans = ringfence_db::list_plans(&mut reader, MOST_PARTS).await?;
        let by_name = methods.into_iter().map(|method| (method.name.clone(), method));
        let used = plans
            .into_iter()
            .map(|plan| (plan.scope.clone(), (plan.scope.clone(), method_names(&plan))));
        Ok(Self {
            methods: by_name.collect(),
            used: used.collect(),
        })
    }

    fn used_by(&self, host: &Host) -> impl Iterator<Item = (&PlanScope, &Method)> {
        let used = self.used.for_host(host).into_iter();
        let named = used.flat_map(|(scope, names)| names.iter().map(move |name| (scope, name)));
        named.filter_map(|(scope, name)| Some((scope, self.methods.get(name)?)))
    }
}

/// Writes down which devices several hosts share, without any question to a device.
pub(crate) async fn note_sharing(engine: &Engine) -> Result<(), EngineError> {
    let (_, sharing) = wanted(engine).await?;
    engine.write_sharing(sharing).await
}

/// The questions, and which devices several hosts share.
pub(super) async fn wanted(engine: &Engine) -> Result<(HashMap<Key, Question>, Sharing), EngineError> {
    let configured = Configured::read(engine).await?;
    let mut reader = engine.0.db.reader();
    let mut wanted = HashMap::new();
    let mut used = BTreeSet::new();
    let drivers = &engine.0.drivers;
    let mut sharing = Sharing::new(drivers);
    let mut clouds = Clouds::default();
    let mut marker = None;
    loop {
        let page = Page {
            limit: PAGE,
            marker,
            sort: vec![SortKey::Name.ascending()],
        };
        let rows = ringfence_db::hosts_page(&mut reader, &Filters::default(), &page).await?;
        marker = rows.last().map(|row| row.host.id.0);
        for host in rows.iter().map(|row| &row.host) {
            for (scope, method) in configured.used_by(host) {
                used.insert(method.id);
                if wanted.len() < MOST_QUESTIONS {
                    let ((key, question), frozen) = ask_for(drivers, scope, method, host);
                    if let Some(frozen) = &frozen {
                        sharing.note(host.id, frozen);
                    }
                    if frozen.is_none_or(|frozen| clouds.is_new(&frozen)) {
                        wanted.insert(key, question);
                    }
                }
            }
        }
        if rows.len() < PAGE as usize {
            break;
        }
        // Thousands of hosts must not keep this thread from a fence.
        tokio::task::yield_now().await;
    }
    for method in configured
        .methods
        .values()
        .filter(|method| !used.contains(&method.id))
    {
        if let Some(question) = ask_unused(drivers, method) {
            wanted.insert((method.id, None), question);
        }
    }
    Ok((wanted, sharing))
}

/// Services of clouds that are asked about one host already. To ask about each of thousands of hosts what each of its servers has would be
/// more than most clouds can bear, and would say nothing else.
#[derive(Default)]
struct Clouds(BTreeSet<(MethodId, String)>);

impl Clouds {
    /// Whether the answer is not had by asking about a host before.
    fn is_new(&mut self, method: &FrozenMethod) -> bool {
        let cloud = method.service_of.as_ref();
        cloud.is_none_or(|cloud| self.0.insert((method.id, cloud.clone())))
    }
}

/// The question for a host, and the method as it was filled in, if it could be.
fn ask_for(
    drivers: &Catalogue,
    scope: &PlanScope,
    method: &Method,
    host: &Host,
) -> ((Key, Question), Option<FrozenMethod>) {
    let frozen = FrozenMethod::in_plan(drivers, scope, method, host);
    let question = question(method, Some(&host.name), frozen.as_ref());
    (((method.id, Some(host.id)), question), frozen.ok())
}

/// A method that no host's plan uses is asked for if it is whole without a host. Where only a worker's machine knows all parameters of the
/// driver, that cannot be told.
fn ask_unused(drivers: &Catalogue, method: &Method) -> Option<Question> {
    let is_known = drivers
        .get(&method.driver)
        .is_none_or(|declared| declared.others.is_none());
    let is_whole = is_known && !names_the_host(method);
    is_whole.then(|| {
        let frozen = FrozenMethod::without_host(drivers, method);
        question(method, None, frozen.as_ref())
    })
}

fn names_the_host(method: &Method) -> bool {
    method.parameters.values().any(|value| value.contains("${"))
}

/// A method that cannot be filled in is asked for too: its answer says what is wrong.
fn question(method: &Method, host: Option<&str>, frozen: Result<&FrozenMethod, &Problems>) -> Question {
    let (text, device) = match frozen {
        Ok(frozen) => (
            serde_json::to_vec(frozen).unwrap_or_default(),
            frozen.device.clone(),
        ),
        Err(problems) => (problems.to_string().into_bytes(), None),
    };
    Question {
        id: Uuid::new_v5(&Uuid::NAMESPACE_OID, &text),
        device,
        whom: DeviceQuestion {
            method: method.name.clone(),
            host: host.map(ToOwned::to_owned),
        },
    }
}

#[cfg(test)]
mod tests {
    use ringfence_core::{MethodTimes, Parameters, Resource};

    use super::*;

    fn method(cloud: Option<&str>) -> FrozenMethod {
        FrozenMethod {
            id: MethodId(Uuid::from_u128(1)),
            name: "m".to_owned(),
            resource: Resource::Storage,
            driver: "d".to_owned(),
            parameters: Parameters::new(),
            secrets: BTreeMap::new(),
            zone: "default".to_owned(),
            device: None,
            service_of: cloud.map(ToOwned::to_owned),
            can_prove: true,
            times: MethodTimes::default(),
        }
    }

    #[test]
    fn a_clouds_service_is_checked_with_one_host_and_a_device_with_its_own_host() {
        let mut clouds = Clouds::default();
        let is_new = ["east", "east", "west", "west"].map(|cloud| clouds.is_new(&method(Some(cloud))));
        assert_eq!(is_new, [true, false, true, false]);
        assert!(clouds.is_new(&method(None)) && clouds.is_new(&method(None)));
    }
}
