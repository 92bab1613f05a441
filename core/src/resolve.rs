//! Freezing a plan for one host: after this nothing is left to choose, and later edits change nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::driver::{Catalogue, Declaration, Place};
use crate::method::check_use;
use crate::own_device::check_own_device;
use crate::template::expand;
use crate::{
    DEFAULT_ZONE, FencingKind, Host, Method, MethodId, MethodTimes, Parameters, Plan, PlanScope, Problems,
    ResolvedPlan, Resource, SecretReference, SufficientSet,
};

/// What a device may still carry out where it is not said: as long as the slowest controller.
const LINGERS_S: u32 = 30;

/// A method with everything filled in for one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrozenMethod {
    /// The method.
    pub id: MethodId,
    /// Its name then.
    pub name: String,
    /// What it acts on.
    pub resource: Resource,
    /// The name of the driver that speaks to the device.
    pub driver: String,
    /// The method's parameters, the host's own values put over them.
    pub parameters: Parameters,
    /// References to secrets.
    pub secrets: BTreeMap<String, SecretReference>,
    /// The zone whose workers reach the device.
    pub zone: String,
    /// The device, where it takes one command at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The platform whose one service is asked, where it answers for all of its hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_of: Option<String>,
    /// Whether what is observed with it may count as a proof.
    pub can_prove: bool,
    /// Limits.
    pub times: MethodTimes,
}

/// A task with its methods by level, lowest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrozenTask {
    /// What to make true.
    pub kind: FencingKind,
    /// Methods by level.
    pub levels: Vec<Vec<FrozenMethod>>,
}

/// A stage of a frozen plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrozenStage {
    /// Seconds to wait before it begins.
    pub delay_s: u32,
    /// Its tasks.
    pub tasks: Vec<FrozenTask>,
}

/// A plan for one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrozenPlan {
    /// The plan's name then.
    pub name: String,
    /// What is done, in order.
    pub stages: Vec<FrozenStage>,
    /// The proofs that make the host FENCED.
    pub sufficient_sets: Vec<SufficientSet>,
}

/// Freezes `plan` for `host`. `methods` are by name.
///
/// # Errors
/// A method is missing, cannot be filled in for the host, or is filled in alike for all hosts that the plan is for.
pub fn resolve(
    drivers: &Catalogue,
    plan: &Plan,
    methods: &BTreeMap<String, Method>,
    host: &Host,
) -> Result<FrozenPlan, Problems> {
    ResolvedPlan::new(drivers, plan, methods, host).freeze()
}

impl FrozenMethod {
    /// Seconds for which the device may still carry out a command that was given up.
    #[must_use]
    pub fn lingers_s(&self) -> u32 {
        self.times.lingers_s.unwrap_or(LINGERS_S)
    }

    /// Fills a method in for one host, as a plan for `scope` uses it.
    ///
    /// # Errors
    /// It cannot be filled in, or names one device for every host that the plan is for.
    pub fn in_plan(
        drivers: &Catalogue,
        scope: &PlanScope,
        method: &Method,
        host: &Host,
    ) -> Result<Self, Problems> {
        let frozen = Self::new(drivers, method, host)?;
        let mut problems = Problems::default();
        if let Some(declared) = drivers.get(&method.driver) {
            check_own_device(declared, scope, method, host, &mut problems);
        }
        problems.into_result()?;
        Ok(frozen)
    }

    /// Fills a method in for one host, to ask its device and no more: whether the device is the host's alone is not looked at.
    ///
    /// # Errors
    /// It cannot be filled in.
    pub fn new(drivers: &Catalogue, method: &Method, host: &Host) -> Result<Self, Problems> {
        let declared = drivers.of(method).map_err(|problem| Problems(vec![problem]))?;
        let own = host.parameters.get(&method.name);
        let merged = method.parameters.iter().chain(own.into_iter().flatten());
        let mut parameters = Parameters::new();
        let mut problems = Problems::default();
        for (name, value) in merged {
            match fill_in(value, host) {
                Ok(value) => {
                    parameters.insert(name.clone(), value);
                }
                Err(why) => problems.add(format!("parameters.{name}"), why),
            }
        }
        if let Some(place) = declared.place {
            add_place(place, host, &mut parameters, &mut problems);
        }
        problems.into_result()?;
        let filled = Method {
            parameters,
            ..method.clone()
        };
        // The host's values have to keep the rules of the driver too: none may smuggle in an action.
        let mut problems = Problems::default();
        check_use(declared, &filled, true, &mut problems);
        problems.into_result()?;
        Ok(Self::of(declared, filled, &host.zone))
    }

    /// A method as it is, where it needs nothing of a host.
    ///
    /// # Errors
    /// It takes something from its hosts.
    pub fn without_host(drivers: &Catalogue, method: &Method) -> Result<Self, Problems> {
        let declared = drivers.of(method).map_err(|problem| Problems(vec![problem]))?;
        let mut problems = Problems::default();
        if let Some((name, _)) = method.parameters.iter().find(|(_, value)| value.contains("${")) {
            problems.add(
                "host",
                format!("is missing; parameter {name:?} of the method takes its value from a host"),
            );
        }
        let of_place = declared.place.map(|place| [place.platform, place.host]);
        let left = declared
            .parameters
            .iter()
            .filter(|p| p.is_required && p.may_come_from_host);
        let mut of_a_host = of_place.into_iter().flatten().chain(left.map(|p| p.name));
        if let Some(name) = of_a_host.find(|name| !method.parameters.contains_key(*name)) {
            problems.add(
                "host",
                format!("is missing; the method leaves parameter {name:?} to its hosts"),
            );
        }
        problems.into_result()?;
        Ok(Self::of(declared, method.clone(), DEFAULT_ZONE))
    }

    fn of(declared: &Declaration, method: Method, zone: &str) -> Self {
        let one_service = declared.place.filter(|place| place.answers_for_all);
        Self {
            device: (declared.device)(&method.parameters),
            service_of: one_service.and_then(|place| method.parameters.get(place.platform).cloned()),
            can_prove: (declared.can_prove)(&method.parameters),
            id: method.id,
            name: method.name,
            resource: method.resource,
            driver: method.driver,
            parameters: method.parameters,
            secrets: method.secrets,
            zone: method.zone.unwrap_or_else(|| zone.to_owned()),
            times: MethodTimes {
                lingers_s: method.times.lingers_s.or(Some(declared.lingers_s)),
                ..method.times
            },
        }
    }
}

/// A driver that speaks to a platform finds the host in the host's own one, under the name that it has there, unless it is told otherwise.
fn add_place(place: Place, host: &Host, parameters: &mut Parameters, problems: &mut Problems) {
    if !parameters.contains_key(place.platform) {
        match &host.cloud {
            Some(own) => {
                parameters.insert(place.platform.to_owned(), own.clone());
            }
            None => problems.add(
                format!("parameters.{}", place.platform),
                format!(
                    "is missing, and host {} names no cloud; the name of one of openstack.clouds is allowed",
                    host.name
                ),
            ),
        }
    }
    parameters
        .entry(place.host.to_owned())
        .or_insert_with(|| host.known_as().to_owned());
}

/// Replaces `${host.name}`, `${host.id}` and `${host.zone}`.
fn fill_in(value: &str, host: &Host) -> Result<String, String> {
    expand(value, |name| match name {
        "host.name" => Some(host.name.clone()),
        "host.id" => Some(host.id.to_string()),
        "host.zone" => Some(host.zone.clone()),
        _ => None,
    })
}
