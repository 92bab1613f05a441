//! Operations and proofs.

use ringfence_core::{FrozenMethod, HostId, Operation, OperationKind, OperationStatus, Proof, Task};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use crate::columns::table;
use crate::listing::{Filter, Filters, Listing, Values, words};
use crate::row::Row;
use crate::run::{Run, fetch_optional};
use crate::table_rows::TableRows;
use crate::value::{Value, args};
use crate::{DbError, Page, SortKey};

/// The status, by which operations that wait for a person are found.
pub const STATUS: Filter = Filter::new(
    "status",
    "The status",
    "operations.status",
    Values::Words(|| words(OperationStatus::ALL, OperationStatus::as_str)),
);

/// The list of operations.
pub static OPERATIONS: Listing = Listing {
    noun: "operation",
    table: "operations",
    filters: &[
        Filter::new("id", "The id", "operations.id", Values::Ids),
        Filter::new(
            "host",
            "The id or name of a host",
            "operations.host_id",
            Values::Rows("hosts"),
        ),
        Filter::new(
            "kind",
            "The kind",
            "operations.kind",
            Values::Words(|| words(OperationKind::ALL, OperationKind::as_str)),
        ),
        STATUS,
        Filter::new(
            "generation",
            "The generation",
            "operations.generation",
            Values::Numbers,
        ),
        Filter::new(
            "created_at",
            "When it began",
            "operations.created_at",
            Values::Times,
        ),
        Filter::new(
            "updated_at",
            "When it was last changed",
            "operations.updated_at",
            Values::Times,
        ),
        Filter::new(
            "finished_at",
            "When it was over",
            "operations.finished_at",
            Values::Times,
        ),
    ],
    sort_keys: &[SortKey::CreatedAt, SortKey::UpdatedAt],
    by_default: SortKey::CreatedAt.descending(),
    is_read_in_order: false,
};

/// The methods of each fencing task, by level.
type Methods = Vec<Vec<Vec<FrozenMethod>>>;

/// What changes at every step, and what hardly ever does and is the greater part: the methods of its tasks.
fn apart(operation: &Operation) -> (Operation, Methods) {
    let mut body = operation.clone();
    let fencing = body.tasks_mut().filter_map(Task::as_fencing_mut);
    let methods = fencing.map(|task| std::mem::take(&mut task.levels)).collect();
    (body, methods)
}

fn have_same_methods(one: &Operation, other: &Operation) -> bool {
    one.tasks().map(Task::levels).eq(other.tasks().map(Task::levels))
}

table! { pub "operations": body, methods }

/// The operation in these columns; none where an outer join has found none.
pub(crate) fn read_operation(row: &Row) -> Result<Option<Operation>, DbError> {
    let Some(mut operation) = row.opt_document::<Operation>(column::body)? else {
        return Ok(None);
    };
    let methods: Methods = row.document(column::methods)?;
    let fencing = operation.tasks_mut().filter_map(Task::as_fencing_mut);
    for (task, levels) in fencing.zip(methods) {
        task.levels = levels;
    }
    Ok(Some(operation))
}

/// Operations that are new. A second live operation for a host is refused by an index; `end` stands at the end of the statement.
pub(crate) fn new_operation_rows(operations: &[&Operation], end: &'static str) -> TableRows {
    let rows = operations.iter().map(|operation| {
        let (body, methods) = apart(operation);
        args![
            operation.id.0,
            operation.host_id.0,
            operation.kind().as_str(),
            operation.status.as_str(),
            operation.is_in_line(),
            operation.generation.0,
            Value::document(&body),
            Value::document(&methods),
            moves(operation),
            operation.created_at,
            operation.updated_at,
            operation.finished_at
        ]
    });
    let columns = "id, host_id, kind, status, is_in_line, generation, body, methods, moves, created_at, updated_at, finished_at";
    TableRows::insert("operations", columns, rows.collect(), end)
}

fn moves(operation: &Operation) -> Option<String> {
    let queue = operation.move_queue()?;
    serde_json::to_string(&queue).ok()
}

/// Operations that have changed, each with what is known of it in the database. Columns that none of them has changed are left alone.
pub(crate) fn changed_operation_rows(operations: &[(&Operation, &Operation)]) -> TableRows {
    let any = |differ: fn(&Operation, &Operation) -> bool| {
        let mut operations = operations.iter();
        operations.any(|(operation, known)| differ(operation, known))
    };
    let has_status = any(|one, other| {
        one.status != other.status
            || one.finished_at != other.finished_at
            || one.is_in_line() != other.is_in_line()
            || one.move_queue() != other.move_queue()
    });
    let has_methods = any(|one, other| !have_same_methods(one, other));
    let columns = match (has_methods, has_status) {
        (false, false) => "id, body, updated_at",
        (true, false) => "id, body, updated_at, methods",
        (false, true) => "id, body, updated_at, status, is_in_line, moves, finished_at",
        (true, true) => "id, body, updated_at, methods, status, is_in_line, moves, finished_at",
    };
    let rows = operations.iter().map(|(operation, _)| {
        let (body, methods) = apart(operation);
        let mut values = args![operation.id.0, Value::document(&body), operation.updated_at];
        if has_methods {
            values.push(Value::document(&methods));
        }
        if has_status {
            values.extend(args![
                operation.status.as_str(),
                operation.is_in_line(),
                moves(operation),
                operation.finished_at
            ]);
        }
        values
    });
    TableRows::update("operations", columns, rows.collect(), 1, "")
}

/// Proofs, one that was won anew in the place of the first one of its kind and generation. Their operations must be there already,
/// and each kind be named once for a host and generation.
pub(crate) fn proof_rows(proofs: &[(HostId, &Proof)]) -> TableRows {
    let rows = proofs.iter().map(|(host_id, proof)| {
        args![
            host_id.0,
            proof.generation.0,
            proof.kind.as_str(),
            proof.operation_id.0,
            &proof.source,
            proof.observed_at,
            &proof.detail
        ]
    });
    let columns = "host_id, generation, kind, operation_id, source, observed_at, detail";
    let end = " ON CONFLICT (host_id, generation, kind) DO UPDATE
        SET operation_id = excluded.operation_id, source = excluded.source, observed_at = excluded.observed_at,
            detail = excluded.detail";
    TableRows::insert("proofs", columns, rows.collect(), end)
}

/// The operation with this id.
pub async fn operation(run: &mut impl Run, id: Uuid) -> Result<Option<Operation>, DbError> {
    let row = fetch_optional(
        run,
        concat!("SELECT ", columns!(), " FROM operations WHERE id = $1"),
        args![id],
    )
    .await?;
    Ok(row.map(|row| read_operation(&row)).transpose()?.flatten())
}

/// How many operations are running, counted up to `most`.
pub async fn count_running_operations(run: &mut impl Run, most: u32) -> Result<u64, DbError> {
    // The first condition is that of the index over the few that are live.
    let sql = "SELECT count(*) AS n FROM
                   (SELECT 1 AS one FROM operations
                    WHERE status IN ('running', 'held', 'needs_operator') AND status = 'running' LIMIT $1) AS running";
    let row = fetch_optional(run, sql, args![most]).await?;
    row.map_or(Ok(0), |row| row.count("n"))
}

/// A page of operations.
pub async fn operations_page(
    run: &mut impl Run,
    filters: &Filters,
    page: &Page,
) -> Result<Vec<Operation>, DbError> {
    let select = |_, rest: &str| AssertSqlSafe(format!("SELECT {} FROM operations{rest}", columns!()));
    let rows = OPERATIONS.page(run, filters, page, select).await?;
    rows.iter()
        .filter_map(|row| read_operation(row).transpose())
        .collect()
}
