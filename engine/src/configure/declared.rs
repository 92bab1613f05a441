//! Methods and a plan that are declared together in a place outside of the API: they replace all that the place declared before, or nothing
//! changes.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_core::{Method, MethodId, Plan, PlanId, Problem, Problems, validate_name, validate_plan};
use ringfence_db::{DbError, Tx};
use serde_json::Value;

use super::methods::method_detail;
use super::plans::{plan_detail, plan_of};
use super::{MethodDraft, PlanDraft};
use crate::host_plan::method_names;
use crate::ids::new_id;
use crate::{Context, Engine, EngineError};

/// The most plans and methods that are looked through.
const MOST: u32 = 100_000;

/// What one place declares. All names begin with the name of the place: by that they are told from what was configured through the API.
#[derive(Clone, Debug)]
pub struct Declaration {
    /// The name of the place. A method of it is named `PLACE_METHOD`, and its plan `PLACE`.
    pub place: String,
    /// Its methods.
    pub methods: Vec<MethodDraft>,
    /// Its plan.
    pub plan: Option<PlanDraft>,
}

impl Declaration {
    /// A place that declares nothing any more.
    #[must_use]
    pub fn nothing(place: &str) -> Self {
        Self {
            place: place.to_owned(),
            methods: Vec::new(),
            plan: None,
        }
    }

    /// The name of a method of a place.
    #[must_use]
    pub fn method_name(place: &str, method: &str) -> String {
        format!("{place}_{method}")
    }

    fn has(&self, name: &str) -> bool {
        let rest = name.strip_prefix(&self.place);
        rest.is_some_and(|rest| rest.starts_with('_'))
    }
}

/// What differs from what the place declared before.
#[derive(Default)]
struct Difference {
    /// Methods, each with its revision before; 0 where it is new.
    methods: Vec<(Method, u64)>,
    obsolete: Vec<Method>,
    plan: Option<(Plan, u64)>,
    obsolete_plan: Option<Plan>,
}

impl Difference {
    fn is_none(&self) -> bool {
        self.methods.is_empty()
            && self.obsolete.is_empty()
            && self.plan.is_none()
            && self.obsolete_plan.is_none()
    }
}

/// All plans and methods, as they were read before a place is looked at, and with what places have changed since.
#[derive(Clone, Debug)]
pub struct Configured {
    methods: BTreeMap<String, Method>,
    plans: BTreeMap<String, Plan>,
}

impl Configured {
    /// The places that have declared something, of those whose names begin so.
    #[must_use]
    pub fn places(&self, prefix: &str) -> BTreeSet<String> {
        let names = self.plans.keys().chain(self.methods.keys());
        let own = names.filter_map(|name| {
            let place = name.strip_prefix(prefix)?.split('_').next()?;
            Some(format!("{prefix}{place}"))
        });
        own.collect()
    }

    /// The methods of a place.
    fn of_place<'a>(&'a self, declared: &'a Declaration) -> impl Iterator<Item = &'a Method> {
        let from = self.methods.range(format!("{}_", declared.place)..);
        from.map(|(_, method)| method)
            .take_while(|method| declared.has(&method.name))
    }

    fn take(&mut self, difference: Difference) {
        if let Some(plan) = difference.obsolete_plan {
            self.plans.remove(&plan.name);
        }
        for method in difference.obsolete {
            self.methods.remove(&method.name);
        }
        let methods = difference
            .methods
            .into_iter()
            .map(|(method, _)| (method.name.clone(), method));
        self.methods.extend(methods);
        if let Some((plan, _)) = difference.plan {
            self.plans.insert(plan.name.clone(), plan);
        }
    }
}

impl Engine {
    /// All plans and methods.
    pub async fn configured(&self) -> Result<Configured, EngineError> {
        let mut reader = self.0.db.reader();
        let plans = ringfence_db::list_plans(&mut reader, MOST).await?.into_iter();
        let methods = ringfence_db::list_methods(&mut reader, MOST).await?.into_iter();
        Ok(Configured {
            methods: methods.map(|method| (method.name.clone(), method)).collect(),
            plans: plans.map(|plan| (plan.name.clone(), plan)).collect(),
        })
    }

    /// Puts what a place declares in the place of what it declared before, in one transaction. Everything is checked before, also by
    /// workers where only their machines know the parameters of a driver. Live operations keep their frozen plans. Says whether anything
    /// was changed; `known` is brought up to date.
    ///
    /// # Errors
    /// Something is wrong with it, a plan of the API has its scope, or a plan of another place names a method that would go. Nothing is
    /// changed then.
    pub async fn declare(
        &self,
        known: &mut Configured,
        declared: Declaration,
        by: &Context,
    ) -> Result<bool, EngineError> {
        let difference = self.difference(known, declared).await?;
        if difference.is_none() {
            return Ok(false);
        }
        let mut tx = self.0.db.begin().await?;
        self.write(&mut tx, &difference, by).await?;
        tx.commit().await?;
        known.take(difference);
        Ok(true)
    }

    async fn difference(&self, known: &Configured, declared: Declaration) -> Result<Difference, EngineError> {
        check_names(&declared)?;
        let wanted: BTreeSet<&str> = declared.methods.iter().map(|draft| draft.name.as_str()).collect();
        let before = known.of_place(&declared);
        let obsolete = before.filter(|method| !wanted.contains(method.name.as_str()));
        let mut difference = Difference {
            obsolete: obsolete.cloned().collect(),
            ..Difference::default()
        };
        let mut problems = Problems::default();
        let mut methods = BTreeMap::new();
        for draft in declared.methods.clone() {
            let (method, revision) = self.method_to_be(known, draft);
            methods.insert(method.name.clone(), method.clone());
            if known.methods.get(&method.name) == Some(&method) {
                continue;
            }
            match self.check_method_draft(&method).await {
                Err(EngineError::Invalid(found)) => problems.0.extend(of_method(&declared, &method, found)),
                other => other?,
            }
            difference.methods.push((method, revision));
        }
        self.plan_difference(known, &declared, methods, (&mut difference, &mut problems))?;
        problems.into_result()?;
        refuse_if_named_elsewhere(known, &declared, &difference)?;
        Ok(difference)
    }

    fn plan_difference(
        &self,
        known: &Configured,
        declared: &Declaration,
        mut methods: BTreeMap<String, Method>,
        (difference, problems): (&mut Difference, &mut Problems),
    ) -> Result<(), EngineError> {
        let before = known.plans.get(&declared.place);
        let Some(draft) = declared.plan.clone() else {
            difference.obsolete_plan = before.cloned();
            return Ok(());
        };
        let (plan, revision) = self.plan_to_be(before, draft);
        let is_own = |name: &String| {
            name.strip_prefix(&declared.place)
                .is_some_and(|rest| rest.starts_with('_'))
        };
        for name in method_names(&plan).into_iter().filter(|name| !is_own(name)) {
            if let Some(method) = known.methods.get(&name) {
                methods.insert(name, method.clone());
            }
        }
        if let Err(found) = validate_plan(&self.0.drivers, &plan, &methods) {
            problems.0.extend(found.0);
        }
        if before != Some(&plan) {
            refuse_scope(known, &plan)?;
            difference.plan = Some((plan, revision));
        }
        Ok(())
    }

    /// The method as it is to be: one that stays as it is keeps its revision and its times.
    fn method_to_be(&self, known: &Configured, draft: MethodDraft) -> (Method, u64) {
        let now = self.0.clock.now();
        let Some(before) = known.methods.get(&draft.name) else {
            return (draft.method(MethodId(new_id()), 1, now, now), 0);
        };
        let kept = draft.method(before.id, before.revision, before.created_at, before.updated_at);
        let method = match kept == *before {
            true => kept,
            false => Method {
                revision: before.revision + 1,
                updated_at: now,
                ..kept
            },
        };
        (method, before.revision)
    }

    fn plan_to_be(&self, before: Option<&Plan>, draft: PlanDraft) -> (Plan, u64) {
        let now = self.0.clock.now();
        let Some(before) = before else {
            return (plan_of(draft, PlanId(new_id()), 1, now, now), 0);
        };
        let kept = plan_of(
            draft,
            before.id,
            before.revision,
            before.created_at,
            before.updated_at,
        );
        let plan = match kept == *before {
            true => kept,
            false => Plan {
                revision: before.revision + 1,
                updated_at: now,
                ..kept
            },
        };
        (plan, before.revision)
    }

    async fn write(&self, tx: &mut Tx, difference: &Difference, by: &Context) -> Result<(), EngineError> {
        if let Some(plan) = &difference.obsolete_plan {
            ringfence_db::delete_plan(tx, plan.id).await?;
            self.record(tx, "plan.deleted", &plan.name, Value::Null, by)
                .await?;
        }
        for method in &difference.obsolete {
            ringfence_db::delete_method(tx, method.id).await?;
            self.record(tx, "method.deleted", &method.name, Value::Null, by)
                .await?;
        }
        for (method, revision) in &difference.methods {
            let action = match *revision {
                0 => {
                    ringfence_db::insert_method(tx, method).await.map_err(overtaken)?;
                    "method.created"
                }
                known => {
                    let is_written = ringfence_db::update_method(tx, method, known).await?;
                    super::require_written(is_written, known)?;
                    "method.updated"
                }
            };
            self.record(tx, action, &method.name, method_detail(method), by)
                .await?;
        }
        let Some((plan, revision)) = &difference.plan else {
            return Ok(());
        };
        let action = match *revision {
            0 => {
                ringfence_db::insert_plan(tx, plan).await.map_err(overtaken)?;
                "plan.created"
            }
            known => {
                let is_written = ringfence_db::update_plan(tx, plan, known).await?;
                super::require_written(is_written, known)?;
                "plan.updated"
            }
        };
        self.record(tx, action, &plan.name, plan_detail(plan), by).await
    }

    async fn record(
        &self,
        tx: &mut Tx,
        action: &str,
        target: &str,
        detail: Value,
        by: &Context,
    ) -> Result<(), EngineError> {
        let entry = by.line(self.0.clock.now(), action, Some(target), None, detail);
        Ok(ringfence_db::append_audit(tx, &entry).await?)
    }
}

fn check_names(declared: &Declaration) -> Result<(), Problems> {
    let mut problems = Problems::default();
    let mut seen = BTreeSet::new();
    for method in &declared.methods {
        if let Err(problem) = validate_name("name", &method.name) {
            problems.0.push(problem);
        }
        if !declared.has(&method.name) || !seen.insert(method.name.as_str()) {
            problems.add(
                "name",
                format!(
                    "is {:?}; {}_NAME is allowed, each name once",
                    method.name, declared.place
                ),
            );
        }
    }
    if let Some(plan) = declared.plan.as_ref().filter(|plan| plan.name != declared.place) {
        problems.add(
            "name",
            format!("is {:?}; {} is allowed", plan.name, declared.place),
        );
    }
    problems.into_result()
}

/// The faults of a method, by its own name in the place.
fn of_method<'a>(
    declared: &'a Declaration,
    method: &'a Method,
    found: Problems,
) -> impl Iterator<Item = Problem> + use<'a> {
    let own = method.name.strip_prefix(&declared.place).unwrap_or(&method.name);
    let own = own.trim_start_matches('_');
    let told = move |problem: Problem| Problem::new(format!("{own}: {}", problem.field), problem.detail);
    found.0.into_iter().map(told)
}

fn refuse_scope(known: &Configured, plan: &Plan) -> Result<(), EngineError> {
    let is_taken = |other: &&Plan| other.scope == plan.scope && other.name != plan.name;
    match known.plans.values().find(is_taken) {
        None => Ok(()),
        Some(other) => Err(EngineError::Duplicate(format!(
            "plan {:?} is for these hosts already, and was not declared here; delete it: ringfence plan delete {}",
            other.name, other.name
        ))),
    }
}

fn refuse_if_named_elsewhere(
    known: &Configured,
    declared: &Declaration,
    difference: &Difference,
) -> Result<(), EngineError> {
    let others = || known.plans.values().filter(|plan| plan.name != declared.place);
    let gone = difference.obsolete.iter().map(|method| &method.name);
    let is_another = |method: &Method| {
        let before = known.methods.get(&method.name);
        before.is_some_and(|before| before.resource != method.resource)
    };
    let others_now = difference.methods.iter().map(|(method, _)| method);
    let others_now = others_now
        .filter(|method| is_another(method))
        .map(|method| &method.name);
    for name in gone.chain(others_now) {
        if let Some(plan) = others().find(|plan| method_names(plan).contains(name)) {
            return Err(EngineError::InUse(format!(
                "method {name:?} is named by plan {:?}",
                plan.name
            )));
        }
    }
    Ok(())
}

/// What was read before is not so any more: all of it is done anew.
fn overtaken(error: DbError) -> EngineError {
    EngineError::or_duplicate(error, || {
        "a method or a plan of that name, or a plan with that scope, was made meanwhile".to_owned()
    })
}
