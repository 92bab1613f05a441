//! Hosts and their plans: whether each has one, and whether it can be carried out.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_core::{FrozenPlan, Host, Method, Plan, PlanScope, Resource, Segment, resolve};
use ringfence_db::{
    Database, DbError, Filters, Page, SortKey, hosts_page, list_methods, list_plans, list_segments,
};
use ringfence_workers::catalogue;

use super::{Report, one_device};
use crate::error::error_chain;

const PAGE: u32 = 1000;
/// More hosts than this are not looked at one by one.
const MOST_HOSTS: usize = 100_000;
const MOST_PARTS: u32 = 10_000;
/// Hosts that are named in one finding.
const NAMED: usize = 5;

/// A host whose plan could be filled in.
struct Planned {
    host: String,
    plan: FrozenPlan,
    has_watchdog: bool,
}

/// What the database says is to be fenced, and how.
#[derive(Default)]
pub(super) struct Site {
    hosts: Vec<Planned>,
    /// From where the workloads of hosts are reached.
    workloads: Served,
    /// The methods, by name.
    pub methods: BTreeMap<String, Method>,
}

/// Zones by resource that some worker serves.
pub(super) type Served = BTreeSet<(Resource, String)>;

pub(super) async fn look(db: &Database, report: &mut Report) -> Site {
    match read(db, report).await {
        Ok(site) => site,
        Err(error) => {
            report.failure("hosts", error_chain(&error), "see the database's own log");
            Site::default()
        }
    }
}

async fn read(db: &Database, report: &mut Report) -> Result<Site, DbError> {
    let mut reader = db.reader();
    let plans = list_plans(&mut reader, MOST_PARTS).await?;
    let methods = list_methods(&mut reader, MOST_PARTS).await?;
    let segments = list_segments(&mut reader, MOST_PARTS).await?;
    let methods: BTreeMap<_, _> = methods.into_iter().map(|m| (m.name.clone(), m)).collect();
    let drivers = catalogue();
    let mut faults = Faults::default();
    let mut site = Site {
        hosts: Vec::new(),
        workloads: Served::new(),
        methods,
    };
    for host in all_hosts(db).await? {
        site.workloads.extend(workloads_of(&host, &segments));
        match plan_of(&host, &plans).map(|plan| resolve(&drivers, plan, &site.methods, &host)) {
            None => faults.unplanned.push(host.name),
            Some(Err(problems)) => faults.broken.push(format!("{}: {problems}", host.name)),
            Some(Ok(plan)) => site.hosts.push(Planned {
                has_watchdog: has_watchdog(&host, &segments),
                host: host.name,
                plan,
            }),
        }
    }
    faults.tell(site.hosts.len(), report);
    let plans = site
        .hosts
        .iter()
        .map(|planned| (planned.host.as_str(), &planned.plan));
    one_device::look(&drivers, plans, report);
    Ok(site)
}

async fn all_hosts(db: &Database) -> Result<Vec<Host>, DbError> {
    let mut hosts: Vec<Host> = Vec::new();
    loop {
        let page = Page {
            limit: PAGE,
            marker: hosts.last().map(|host| host.id.0),
            sort: vec![SortKey::Name.ascending()],
        };
        let rows = hosts_page(&mut db.reader(), &Filters::default(), &page).await?;
        let is_last = rows.len() < PAGE as usize;
        hosts.extend(rows.into_iter().map(|row| row.host));
        if is_last || hosts.len() >= MOST_HOSTS {
            return Ok(hosts);
        }
    }
}

/// As the service finds it: the host's own, else its type's, else the default.
fn plan_of<'a>(host: &Host, plans: &'a [Plan]) -> Option<&'a Plan> {
    let own = PlanScope::Host(host.name.clone());
    let of_type = host.host_type.clone().map(PlanScope::HostType);
    [Some(own), of_type, Some(PlanScope::Default)]
        .into_iter()
        .flatten()
        .find_map(|scope| plans.iter().find(|plan| plan.scope == scope))
}

/// What a worker has to serve so that the cloud of a host is told.
fn workloads_of(host: &Host, segments: &[Segment]) -> Option<(Resource, String)> {
    if host.backend.abilities().is_none() || host.cloud.is_none() {
        return None;
    }
    let segment = segments.iter().find(|segment| segment.id == host.segment_id);
    let zone = segment.and_then(|segment| segment.policy.workloads_zone.clone());
    Some((Resource::Workloads, zone.unwrap_or(host.zone.clone())))
}

fn has_watchdog(host: &Host, segments: &[Segment]) -> bool {
    segments
        .iter()
        .any(|s| s.id == host.segment_id && s.policy.self_fencing_timeout_s.is_some())
}

#[derive(Default)]
struct Faults {
    unplanned: Vec<String>,
    broken: Vec<String>,
}

impl Faults {
    fn tell(self, planned: usize, report: &mut Report) {
        let all = planned + self.unplanned.len() + self.broken.len();
        if all == 0 {
            report.warning("hosts", "there are none", "ringfence host add NAME");
            return;
        }
        if self.unplanned.is_empty() && self.broken.is_empty() {
            report.good(
                "plans",
                format!("each of {all} hosts has a plan that can be carried out"),
            );
        }
        if !self.unplanned.is_empty() {
            report.failure(
                "plans",
                format!("no plan for {}", some_of(&self.unplanned)),
                "add one for the hosts, their type, or by default: ringfence plan add",
            );
        }
        for fault in self.broken.iter().take(NAMED) {
            report.failure(
                "plans",
                fault.clone(),
                "mend the plan, its methods, or the host's parameters",
            );
        }
        if self.broken.len() > NAMED {
            report.failure(
                "plans",
                format!(
                    "{} more plans cannot be carried out for their hosts",
                    self.broken.len() - NAMED
                ),
                "mend the first ones and look again",
            );
        }
    }
}

impl Site {
    /// Whether some host's plan uses the method of this name.
    pub fn uses(&self, method: &str) -> bool {
        let mut plans = self.hosts.iter().map(|planned| &planned.plan);
        plans.any(|plan| plan.methods().any(|one| one.name == method))
    }

    /// Everything that some plan needs a worker for.
    pub fn needs(&self) -> Served {
        self.hosts
            .iter()
            .flat_map(|planned| planned.plan.needs())
            .chain(self.workloads.iter().cloned())
            .collect()
    }

    /// The services of clouds by which some plan fences: the cloud, and the driver.
    pub fn cloud_drivers(&self) -> BTreeSet<(String, String)> {
        let drivers = catalogue();
        let methods = self.hosts.iter().flat_map(|planned| planned.plan.methods());
        methods
            .filter_map(|method| {
                let place = drivers.get(&method.driver)?.place?;
                let cloud = method.parameters.get(place.platform)?;
                Some((cloud.clone(), method.driver.clone()))
            })
            .collect()
    }

    /// Which hosts could not be fenced now without a person.
    pub fn judge(&self, served: &Served, report: &mut Report) {
        let is_served = |resource: Resource, zone: &str| served.contains(&(resource, zone.to_owned()));
        let helpless: Vec<String> = self
            .hosts
            .iter()
            .filter(|planned| !planned.plan.can_prove_alone(planned.has_watchdog, is_served))
            .map(|planned| planned.host.clone())
            .collect();
        if !helpless.is_empty() {
            report.failure(
                "plans",
                format!("only a person could prove a fence now for {}", some_of(&helpless)),
                "have the zones above served, or give the plan tasks that complete a sufficient set",
            );
        } else if !self.hosts.is_empty() {
            report.good("plans", "each can prove a fence with the workers that are there");
        }
    }
}

pub(super) fn some_of(names: &[String]) -> String {
    let shown = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
