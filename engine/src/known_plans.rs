//! The plans and methods that fences begin with, remembered for as long as nobody changes one.
//!
//! The database counts their changes, and tells the count with each host that is read to be fenced: what is remembered is used only if
//! it is of that very count. It saves a lone fence two looks at the database.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use ringfence_core::{ByScope, Method, Plan};
use ringfence_db::{Database, DbError};

/// More plans, or more methods, are not remembered: they are looked up for each fence.
const MOST: u32 = 500;

/// What is remembered.
#[derive(Default)]
pub(crate) struct KnownPlans(Mutex<Option<Known>>);

/// After so many changes there were these; none if they are too many.
type Known = (u64, Option<Arc<All>>);

/// All plans and methods.
pub(crate) struct All {
    pub plans: ByScope<Plan>,
    /// By their names.
    pub methods: BTreeMap<String, Method>,
}

impl KnownPlans {
    /// What there is after so many changes; `None` if it is too much to be remembered.
    pub async fn at(&self, db: &Database, revision: u64) -> Result<Option<Arc<All>>, DbError> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, all)) = known.filter(|(known, _)| *known == revision) {
            return Ok(all);
        }
        let all = All::read(db).await?.map(Arc::new);
        // A change while they were read would leave them half old and half new.
        if ringfence_db::configuration_revision(&mut db.reader()).await? == revision {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
        if plans.len().max(methods.len()) > MOST as usize {
            return Ok(None);
        }
        let plans = plans.into_iter().map(|plan| (plan.scope.clone(), plan));
        let methods = methods.into_iter().map(|method| (method.name.clone(), method));
        Ok(Some(Self {
            plans: plans.collect(),
            methods: methods.collect(),
        }))
    }
}
