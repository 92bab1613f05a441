//! The plans and methods that fences begin with, remembered for as long as nobody changes one.
//!
//! The database counts their changes, and tells the count with each host that is read to be fenced: what is remembered is used only if
//! it is of that very count. It saves a lone fence two looks at the database.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use ringfence_core::{Host, Method, Plan, PlanScope};
use ringfence_db::{Database, DbError};

/// More plans, or more methods, are not remembered: they are looked up for each fence.
const MOST: u32 = 500;

/// What is remembered.
#[derive(Default)]
pub(crate) struct Plans(Mutex<Option<Arc<Book>>>);

/// All plans and methods, as they were after so many changes.
pub(crate) struct Book {
    revision: u64,
    /// None if there are too many.
    content: Option<Content>,
}

pub(crate) struct Content {
    by_host: HashMap<String, Plan>,
    by_type: HashMap<String, Plan>,
    default: Option<Plan>,
    /// By their names.
    pub methods: BTreeMap<String, Method>,
}

impl Plans {
    /// What is known after so many changes.
    pub async fn at(&self, db: &Database, revision: u64) -> Result<Arc<Book>, DbError> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(book) = known.filter(|book| book.revision == revision) {
            return Ok(book);
        }
        let content = Content::read(db).await?;
        // A change while they were read would leave them half old and half new.
        let read = ringfence_db::configuration_revision(&mut db.reader()).await?;
        let book = Arc::new(Book { revision, content });
        if read == revision {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            *known = Some(Arc::clone(&book));
        }
        Ok(book)
    }
}

impl Book {
    /// Everything, unless it is too much to be remembered.
    pub fn content(&self) -> Option<&Content> {
        self.content.as_ref()
    }
}

impl Content {
    async fn read(db: &Database) -> Result<Option<Self>, DbError> {
        let mut reader = db.reader();
        let plans = ringfence_db::list_plans(&mut reader, MOST + 1).await?;
        let methods = ringfence_db::list_methods(&mut reader, MOST + 1).await?;
        let is_too_much = |count: usize| u32::try_from(count).map_or(true, |count| count > MOST);
        if is_too_much(plans.len()) || is_too_much(methods.len()) {
            return Ok(None);
        }
        let methods = methods.into_iter().map(|method| (method.name.clone(), method));
        let mut content = Self {
            by_host: HashMap::new(),
            by_type: HashMap::new(),
            default: None,
            methods: methods.collect(),
        };
        for plan in plans {
            match &plan.scope {
                PlanScope::Host(host) => drop(content.by_host.insert(host.clone(), plan)),
                PlanScope::HostType(word) => drop(content.by_type.insert(word.clone(), plan)),
                PlanScope::Default => content.default = Some(plan),
            }
        }
        Ok(Some(content))
    }

    /// The plan for a host: its own, else that of its type, else the default.
    pub fn plan_for(&self, host: &Host) -> Option<&Plan> {
        let of_type = || self.by_type.get(host.host_type.as_deref()?);
        let own = self.by_host.get(&host.name);
        own.or_else(of_type).or(self.default.as_ref())
    }
}
