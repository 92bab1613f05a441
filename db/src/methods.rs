//! Methods.

use std::collections::BTreeMap;

use ringfence_core::{Method, MethodId, Resource};
use sqlx::AssertSqlSafe;

use crate::columns::table;
use crate::row::Row;
use crate::run::{Run, execute, fetch_all, fetch_optional};
use crate::value::{Value, args, key};
use crate::wanted::Wanted;
use crate::{DbError, Test};

table! {
    "methods":
    id, name, resource, driver, parameters, secrets, zone, times, revision, created_at, updated_at,
}

fn read(row: &Row) -> Result<Method, DbError> {
    Ok(Method {
        id: MethodId(row.id(column::id)?),
        name: row.text(column::name)?,
        resource: row.word(column::resource, Resource::from_word)?,
        driver: row.text(column::driver)?,
        parameters: row.json(column::parameters)?,
        secrets: row.json(column::secrets)?,
        zone: row.opt_text(column::zone)?,
        times: row.json(column::times)?,
        revision: row.count(column::revision)?,
        created_at: row.time(column::created_at)?,
        updated_at: row.time(column::updated_at)?,
    })
}

/// All methods by name, at most `limit`.
pub async fn list_methods(run: &mut impl Run, limit: u32) -> Result<Vec<Method>, DbError> {
    let sql = concat!("SELECT ", columns!(), " FROM methods ORDER BY name LIMIT $1");
    let rows = fetch_all(run, sql, args![limit]).await?;
    rows.iter().map(read).collect()
}

/// The methods of these names.
pub async fn methods_by_name(
    run: &mut impl Run,
    names: impl IntoIterator<Item = String> + Send,
) -> Result<BTreeMap<String, Method>, DbError> {
    let names: Vec<String> = names.into_iter().collect();
    if names.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut wanted = Wanted::default();
    wanted.test("methods.name", &[Test::OneOf(names)]);
    let (columns, conditions) = (columns!(), wanted.conditions());
    let sql = format!("SELECT {columns} FROM methods{conditions}");
    let rows = fetch_all(run, AssertSqlSafe(sql), wanted.values()).await?;
    let methods = rows.iter().map(read);
    methods
        .map(|method| method.map(|method| (method.name.clone(), method)))
        .collect()
}

/// The method with this id or name.
pub async fn method(run: &mut impl Run, id_or_name: &str) -> Result<Option<Method>, DbError> {
    let (column, key) = key(id_or_name);
    let sql = format!("SELECT {} FROM methods WHERE {column} = $1", columns!());
    let row = fetch_optional(run, AssertSqlSafe(sql), vec![key]).await?;
    row.as_ref().map(read).transpose()
}

fn values(method: &Method) -> Vec<Value> {
    args![
        method.id.0,
        &method.name,
        method.resource.as_str(),
        &method.driver,
        Value::json(&method.parameters),
        Value::json(&method.secrets),
        method.zone.clone(),
        Value::json(&method.times),
        method.revision,
        method.created_at,
        method.updated_at
    ]
}

/// Adds a method.
pub async fn insert_method(run: &mut impl Run, method: &Method) -> Result<(), DbError> {
    let sql = "INSERT INTO methods
                   (id, name, resource, driver, parameters, secrets, zone, times, revision, created_at, updated_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
    execute(run, sql, values(method)).await.map(|_| ())
}

/// Replaces a method if it is still at `revision`; tells whether it was.
pub async fn update_method(run: &mut impl Run, method: &Method, revision: u64) -> Result<bool, DbError> {
    let sql =
        "UPDATE methods SET name = $2, resource = $3, driver = $4, parameters = $5, secrets = $6, zone = $7,
                      times = $8, revision = $9, created_at = $10, updated_at = $11
               WHERE id = $1 AND revision = $12";
    let values = [values(method), args![revision]].concat();
    Ok(execute(run, sql, values).await? == 1)
}

/// Removes a method.
pub async fn delete_method(run: &mut impl Run, id: MethodId) -> Result<bool, DbError> {
    Ok(execute(run, "DELETE FROM methods WHERE id = $1", args![id.0]).await? == 1)
}
