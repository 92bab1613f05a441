//! Plans.

use ringfence_core::{Plan, PlanId, PlanScope};
use sqlx::AssertSqlSafe;

use crate::DbError;
use crate::columns::table;
use crate::row::Row;
use crate::run::{Run, execute, fetch_all, fetch_optional};
use crate::value::{Value, args, key};

fn scope_words(scope: &PlanScope) -> (&'static str, &str) {
    match scope {
        PlanScope::Default => ("default", ""),
        PlanScope::HostType(value) => ("host_type", value),
        PlanScope::Host(value) => ("host", value),
    }
}

table! {
    "plans":
    id, name, scope_kind, scope_value, stages, sufficient_sets, revision, created_at, updated_at,
}

fn read(row: &Row) -> Result<Plan, DbError> {
    let value = row.text(column::scope_value)?;
    let scope = match row.text(column::scope_kind)?.as_str() {
        "default" => PlanScope::Default,
        "host_type" => PlanScope::HostType(value),
        "host" => PlanScope::Host(value),
        other => {
            return Err(DbError::Unreadable {
                column: column::scope_kind,
                why: format!("unknown word {other:?}"),
            });
        }
    };
    Ok(Plan {
        id: PlanId(row.id(column::id)?),
        name: row.text(column::name)?,
        scope,
        stages: row.json(column::stages)?,
        sufficient_sets: row.json(column::sufficient_sets)?,
        revision: row.count(column::revision)?,
        created_at: row.time(column::created_at)?,
        updated_at: row.time(column::updated_at)?,
    })
}

/// All plans by name, at most `limit`.
pub async fn list_plans(run: &mut impl Run, limit: u32) -> Result<Vec<Plan>, DbError> {
    let sql = concat!("SELECT ", columns!(), " FROM plans ORDER BY name LIMIT $1");
    let rows = fetch_all(run, sql, args![limit]).await?;
    rows.iter().map(read).collect()
}

/// How often plans and methods have been changed.
pub async fn configuration_revision(run: &mut impl Run) -> Result<u64, DbError> {
    let row = fetch_optional(run, "SELECT revision FROM configuration WHERE one = 1", args![]).await?;
    row.map_or(Ok(0), |row| row.count("revision"))
}

/// The plan with this id or name.
pub async fn plan(run: &mut impl Run, id_or_name: &str) -> Result<Option<Plan>, DbError> {
    let (column, key) = key(id_or_name);
    let sql = format!("SELECT {} FROM plans WHERE {column} = $1", columns!());
    let row = fetch_optional(run, AssertSqlSafe(sql), vec![key]).await?;
    row.as_ref().map(read).transpose()
}

/// The plan for a host: its own, else that of its type, else the default.
pub async fn plan_for(
    run: &mut impl Run,
    host: &str,
    host_type: Option<&str>,
) -> Result<Option<Plan>, DbError> {
    let sql = concat!(
        "SELECT ",
        columns!(),
        " FROM plans
               WHERE (scope_kind = 'host' AND scope_value = $1)
                  OR (scope_kind = 'host_type' AND scope_value = $2)
                  OR scope_kind = 'default'
               ORDER BY CASE scope_kind WHEN 'host' THEN 1 WHEN 'host_type' THEN 2 ELSE 3 END
               LIMIT 1"
    );
    let row = fetch_optional(run, sql, args![host, host_type]).await?;
    row.as_ref().map(read).transpose()
}

fn values(plan: &Plan) -> Vec<Value> {
    let (kind, value) = scope_words(&plan.scope);
    args![
        plan.id.0,
        &plan.name,
        kind,
        value,
        Value::json(&plan.stages),
        Value::json(&plan.sufficient_sets),
        plan.revision,
        plan.created_at,
        plan.updated_at
    ]
}

/// Adds a plan.
pub async fn insert_plan(run: &mut impl Run, plan: &Plan) -> Result<(), DbError> {
    let sql = "INSERT INTO plans
                   (id, name, scope_kind, scope_value, stages, sufficient_sets, revision, created_at, updated_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    execute(run, sql, values(plan)).await.map(|_| ())
}

/// Replaces a plan if it is still at `revision`; tells whether it was.
pub async fn update_plan(run: &mut impl Run, plan: &Plan, revision: u64) -> Result<bool, DbError> {
    let sql =
        "UPDATE plans SET name = $2, scope_kind = $3, scope_value = $4, stages = $5, sufficient_sets = $6,
                      revision = $7, created_at = $8, updated_at = $9
               WHERE id = $1 AND revision = $10";
    let values = [values(plan), args![revision]].concat();
    Ok(execute(run, sql, values).await? == 1)
}

/// Removes a plan. Operations that began with it keep their frozen copy.
pub async fn delete_plan(run: &mut impl Run, id: PlanId) -> Result<bool, DbError> {
    Ok(execute(run, "DELETE FROM plans WHERE id = $1", args![id.0]).await? == 1)
}
