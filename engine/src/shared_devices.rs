//! Devices that the plans of several hosts name: such a device's proof for one host would count for the other.
//!
//! The engine that updates the questions to devices resolves every host's methods, and records shared devices. A fence or a check
//! of a host reads these records, and resolves the other host's methods again before it is refused: a device that is no longer shared
//! refuses no fence.

use std::collections::{BTreeMap, HashMap};

use ringfence_core::{
    Catalogue, FrozenMethod, Host, HostId, Method, MethodId, Problems, ResolvedPlan, target_key,
};
use ringfence_db::{SeenHost, SharedDevice};
use uuid::Uuid;

use crate::host_plan::method_names;
use crate::ids::new_id;
use crate::known_plans::All;
use crate::{Engine, EngineError};

/// More are not written down: one is enough to refuse a host, and `ringfence doctor` counts them.
const MOST: usize = 10_000;

/// A host's use of a method.
type Use = (HostId, MethodId);

/// Finds what is shared, use by use.
pub(crate) struct Sharing {
    drivers: Catalogue,
    /// Who was the first to name a device.
    first: HashMap<Uuid, Use>,
    /// With whom each shares.
    found: BTreeMap<Use, Use>,
}

impl Sharing {
    pub fn new(drivers: &Catalogue) -> Self {
        Self {
            drivers: drivers.clone(),
            first: HashMap::new(),
            found: BTreeMap::new(),
        }
    }

    /// Notes that the host's plan uses the method so.
    pub fn note(&mut self, host: HostId, method: &FrozenMethod) {
        let this = (host, method.id);
        let target = Uuid::new_v5(&Uuid::NAMESPACE_OID, target_key(&self.drivers, method).as_bytes());
        let first = *self.first.entry(target).or_insert(this);
        if first.0 != host && self.found.len() < MOST {
            self.found.insert(this, first);
            self.found.entry(first).or_insert(this);
        }
    }

    /// What is shared now, but not written down, and what is written down, but shared no more.
    pub fn changes(mut self, written: &[SharedDevice]) -> (Vec<SharedDevice>, Vec<Uuid>) {
        let mut mended = Vec::new();
        for row in written {
            let with = (row.with_host_id, row.with_method_id);
            if self.found.get(&(row.host_id, row.method_id)) == Some(&with) {
                self.found.remove(&(row.host_id, row.method_id));
            } else {
                mended.push(row.id);
            }
        }
        let new = self
            .found
            .into_iter()
            .map(|((host_id, method_id), with)| SharedDevice {
                id: new_id(),
                host_id,
                method_id,
                with_host_id: with.0,
                with_method_id: with.1,
            });
        (new.collect(), mended)
    }
}

impl Engine {
    /// Writes down what is shared.
    pub(crate) async fn write_sharing(&self, sharing: Sharing) -> Result<(), EngineError> {
        let most = u32::try_from(MOST + 1).unwrap_or(u32::MAX);
        let written = ringfence_db::shared_devices(&mut self.0.db.reader(), most).await?;
        let (new, mended) = sharing.changes(&written);
        ringfence_db::remove_shared_devices(&self.0.db, &mended).await?;
        Ok(ringfence_db::add_shared_devices(&self.0.db, &new).await?)
    }

    /// The methods of a plan that act on another host's device, and why they cannot be used.
    pub(crate) async fn shared(
        &self,
        host: &Host,
        plan: &ResolvedPlan,
        known: Option<&All>,
    ) -> Result<Vec<(String, String)>, EngineError> {
        let rows = match known {
            Some(all) => all.shared.get(&host.id).cloned().unwrap_or_default(),
            None => ringfence_db::shared_devices_of(&mut self.0.db.reader(), host.id).await?,
        };
        let mut shared = Vec::new();
        for row in rows {
            let mut usable = plan.methods().filter_map(|method| method.filled_in.as_ref().ok());
            let Some(method) = usable.find(|method| method.id == row.method_id) else {
                continue;
            };
            if let Some(why) = self.still_shared(method, &row).await? {
                shared.push((method.name.clone(), why));
            }
        }
        Ok(shared)
    }

    /// A method filled in for a host: where the host's plan uses it, only if the device is the host's alone.
    pub(crate) async fn filled_in(
        &self,
        method: &Method,
        host: &str,
    ) -> Result<Result<FrozenMethod, Problems>, EngineError> {
        let SeenHost { state, .. } = self.see(host).await?;
        let host = &state.host;
        let mut reader = self.0.db.reader();
        let plan = ringfence_db::plan_for(&mut reader, &host.name, host.host_type.as_deref()).await?;
        let Some(plan) = plan.filter(|plan| method_names(plan).contains(&method.name)) else {
            return Ok(FrozenMethod::new(&self.0.drivers, method, host));
        };
        let frozen = match FrozenMethod::in_plan(&self.0.drivers, &plan.scope, method, host) {
            Ok(frozen) => frozen,
            Err(problems) => return Ok(Err(problems)),
        };
        let rows = ringfence_db::shared_devices_of(&mut reader, host.id).await?;
        let row = rows.iter().find(|row| row.method_id == method.id);
        let Some(row) = row else {
            return Ok(Ok(frozen));
        };
        let mut problems = Problems::default();
        if let Some(why) = self.still_shared(&frozen, row).await? {
            problems.add("parameters", why);
        }
        Ok(problems.into_result().map(|()| frozen))
    }

    /// Why the method cannot be used, if the other host's plan still acts on this device.
    async fn still_shared(
        &self,
        method: &FrozenMethod,
        row: &SharedDevice,
    ) -> Result<Option<String>, EngineError> {
        let mut reader = self.0.db.reader();
        let other = ringfence_db::see_host(&mut reader, &row.with_host_id.to_string()).await?;
        let Some(other) = other.map(|seen| seen.state.host) else {
            return Ok(None);
        };
        let with = ringfence_db::method(&mut reader, &row.with_method_id.to_string()).await?;
        let plan = ringfence_db::plan_for(&mut reader, &other.name, other.host_type.as_deref()).await?;
        let (Some(with), Some(plan)) = (with, plan) else {
            return Ok(None);
        };
        let is_used = method_names(&plan).contains(&with.name);
        let drivers = &self.0.drivers;
        let is_same = FrozenMethod::in_plan(drivers, &plan.scope, &with, &other)
            .is_ok_and(|theirs| target_key(drivers, &theirs) == target_key(drivers, method));
        Ok((is_used && is_same).then(|| {
            format!(
                "acts on the device that method {} acts on for host {}: its proof for one host would count for the other; \
                 give each host its own parameters",
                with.name, other.name
            )
        }))
    }
}
