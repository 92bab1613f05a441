//! The plans and methods that fences begin with, remembered until one is changed.
//!
//! With them goes what is known of hosts that share a device. The database counts the changes of all three, and tells the count with each host that is read to be fenced: what is remembered is used only if
//! it is of that very count. It saves a lone fence two looks at the database.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use ringfence_core::{ByScope, HostId, Method, Plan};
use ringfence_db::{Database, DbError, SharedDevice};

/// More plans, more methods or more shared devices are not remembered: they are looked up for each fence.
const MOST: u32 = 500;

/// What is remembered.
#[derive(Default)]
pub(crate) struct KnownPlans(Mutex<Option<Known>>);

/// After so many changes there were these; none if they are too many.
type Known = (u64, Option<Arc<All>>);

/// All plans and methods, and what is shared.
pub(crate) struct All {
    pub plans: ByScope<Plan>,
    /// By their names.
    pub methods: BTreeMap<String, Method>,
    /// By the host that is to be fenced.
    pub shared: HashMap<HostId, Vec<SharedDevice>>,
}

impl KnownPlans {
    /// What there is after so many changes; `None` if it is too much to be remembered.
    pub async fn at(&self, db: &Database, revision: u64) -> Result<Option<Arc<All>>, DbError> {
        let known = self.0.lock().clone();
        if let Some((_, all)) = known.filter(|(known, _)| *known == revision) {
            return Ok(all);
        }
        let all = All::read(db).await?.map(Arc::new);
        // A change while they were read would leave them half old and half new.
        if ringfence_db::configuration_revision(&mut db.reader()).await? == revision {
            let mut known = self.0.lock();
            *known = Some((revision, all.clone()));
        }
        Ok(all)
    }
}

impl All {
    async fn read(db: &Database) -> Result<Option<Self>, DbError> {
        let mut reader = db.reader();
        let plans = ringfence_db::list_plans(&mut reader, MOST + 1).await?;
        let methods = ringfence_db::list_methods(&mut reader, MOST + 1).await?;
        let rows = ringfence_db::shared_devices(&mut reader, MOST + 1).await?;
        if plans.len().max(methods.len()).max(rows.len()) > MOST as usize {
            return Ok(None);
        }
        let mut shared: HashMap<_, Vec<_>> = HashMap::new();
        for row in rows {
            shared.entry(row.host_id).or_default().push(row);
        }
        let plans = plans.into_iter().map(|plan| (plan.scope.clone(), plan));
        let methods = methods.into_iter().map(|method| (method.name.clone(), method));
        Ok(Some(Self {
            plans: plans.collect(),
            methods: methods.collect(),
            shared,
        }))
    }
}
