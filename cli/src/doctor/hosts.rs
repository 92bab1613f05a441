//! Hosts and their plans: whether each host has a plan that can be carried out.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_core::{FrozenPlan, Host, Method, Plan, PlanScope, Resource, Segment, resolve};
use ringfence_db::{
    Database, DbError, Filters, Page, SortKey, hosts_page, list_methods, list_plans, list_segments,
};
use ringfence_workers::catalogue;

use super::names::{NAMED, some_of};
use super::verdict::{Judged, Served, Silences, Verdict};
use super::{Report, one_device};
use crate::error::error_chain;

const PAGE: u32 = 1000;
/// How many hosts are looked at one by one at most.
const MOST_HOSTS: usize = 100_000;
const MOST_PARTS: u32 = 10_000;

/// A host with its resolved plan.
struct Planned {
    host: String,
    plan: FrozenPlan,
    has_watchdog: bool,
}

/// The hosts, plans and methods of the database.
#[derive(Default)]
pub(super) struct Site {
    hosts: Vec<Planned>,
    /// Hosts that cannot be fenced even if all queues are served and all devices answer: the host, and why.
    helpless: BTreeMap<String, String>,
    /// The zones whose workers reach the clouds of hosts.
    workloads: Served,
    /// The methods, by name.
    pub methods: BTreeMap<String, Method>,
}

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
        helpless: BTreeMap::new(),
        workloads: Served::new(),
        methods,
    };
    for host in all_hosts(db).await? {
        site.workloads.extend(workloads_of(&host, &segments));
        match plan_of(&host, &plans).map(|plan| resolve(&drivers, plan, &site.methods, &host)) {
            None => faults.unplanned.push(host.name),
            Some(Err(problems)) => faults.broken.push((host.name, problems.to_string())),
            Some(Ok(plan)) => site.hosts.push(Planned {
                has_watchdog: has_watchdog(&host, &segments),
                host: host.name,
                plan,
            }),
        }
    }
    let plans = site
        .hosts
        .iter()
        .map(|planned| (planned.host.as_str(), &planned.plan));
    let shared = one_device::look(&drivers, plans, report).into_iter();
    let shared =
        shared.map(|(host, method)| (host, format!("{method}: its device is used for another host too")));
    site.helpless = shared.chain(faults.helpless()).collect();
    faults.tell(site.hosts.len(), report);
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

/// The host's plan, as the service finds it: for the host, for its type, or the default.
fn plan_of<'a>(host: &Host, plans: &'a [Plan]) -> Option<&'a Plan> {
    let own = PlanScope::Host(host.name.clone());
    let of_type = host.host_type.clone().map(PlanScope::HostType);
    [Some(own), of_type, Some(PlanScope::Default)]
        .into_iter()
        .flatten()
        .find_map(|scope| plans.iter().find(|plan| plan.scope == scope))
}

/// What a worker has to serve so that the host's cloud is told of a fence.
fn workloads_of(host: &Host, segments: &[Segment]) -> Option<(Resource, String)> {
    if !host.backend.is_asked() || host.cloud.is_none() {
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
    /// The host, and why its plan cannot be carried out.
    broken: Vec<(String, String)>,
}

impl Faults {
    /// The hosts that cannot be fenced because of their plans, and why.
    fn helpless(&self) -> impl Iterator<Item = (String, String)> + use<> {
        let unplanned = self.unplanned.clone().into_iter();
        let broken = self.broken.clone().into_iter();
        unplanned
            .map(|host| (host, "no plan applies to it".to_owned()))
            .chain(broken.map(|(host, why)| (host, format!("its plan cannot be carried out: {why}"))))
    }

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
        for (host, why) in self.broken.iter().take(NAMED) {
            report.failure(
                "plans",
                format!("{host}: {why}"),
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
                "mend the first ones, then: ringfence doctor",
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

    /// What workers have to serve for all plans.
    pub fn needs(&self) -> Served {
        self.hosts
            .iter()
            .flat_map(|planned| planned.plan.needs())
            .chain(self.workloads.iter().cloned())
            .collect()
    }

    /// The clouds whose services some plan fences by, and the drivers.
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

    /// Reports whether each host can be fenced now without a person, and by what.
    pub fn judge(&self, served: &Served, silences: &Silences, report: &mut Report) {
        let mut alike: BTreeMap<Verdict, Vec<String>> = BTreeMap::new();
        for (host, why) in &self.helpless {
            let of = alike.entry(Verdict::none(why)).or_default();
            of.push(host.clone());
        }
        for planned in self
            .hosts
            .iter()
            .filter(|planned| !self.helpless.contains_key(&planned.host))
        {
            let host = (planned.host.as_str(), &planned.plan, planned.has_watchdog);
            let of = alike.entry(Verdict::new(host, served, silences)).or_default();
            of.push(planned.host.clone());
        }
        let judged = alike
            .into_iter()
            .map(|(verdict, hosts)| Judged { verdict, hosts });
        report.hosts = judged.collect();
        tell_helpless(report);
    }
}

fn tell_helpless(report: &mut Report) {
    let helpless = report.hosts.iter().filter(|judged| !judged.verdict.can_be_fenced);
    let mut names: Vec<String> = helpless.flat_map(|judged| judged.hosts.clone()).collect();
    names.sort_unstable();
    let all: usize = report.hosts.iter().map(|judged| judged.hosts.len()).sum();
    if !names.is_empty() {
        report.failure(
            "hosts",
            format!(
                "{} of {all} cannot be fenced without a person: {}",
                names.len(),
                some_of(&names)
            ),
            "see the table of hosts for the reasons, and the other findings for what to do",
        );
    } else if all > 0 {
        report.good("hosts", format!("each of {all} can be fenced without a person"));
    }
}
