//! Operations and proofs.

use ringfence_core::{
    FrozenMethod, HostId, Operation, OperationKind, OperationStatus, Proof, Task, Timestamp,
};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use crate::columns::table;
use crate::row::Row;
use crate::run::{Run, Write, cut, fetch_all, fetch_optional, write};
use crate::value::{NewValues, Value, args, pieces, rows_of};
use crate::wanted::Wanted;
use crate::{DbError, Order, Page, SortKey, Test};

/// Which operations: those for which all of it holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperationFilter {
    /// The host.
    pub host_id: Vec<Test<Uuid>>,
    /// The kind.
    pub kind: Vec<Test<OperationKind>>,
    /// The status.
    pub status: Vec<Test<OperationStatus>>,
    /// The generation.
    pub generation: Vec<Test<u64>>,
    /// When it began.
    pub created_at: Vec<Test<Timestamp>>,
    /// When it was last changed.
    pub updated_at: Vec<Test<Timestamp>>,
    /// When it was over; one that is not was not at any time.
    pub finished_at: Vec<Test<Timestamp>>,
}

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

/// Adds operations. A second live one for the same host is refused by an index.
pub async fn insert_operations(to: &mut impl Write, operations: &[&Operation]) -> Result<(), DbError> {
    const COLUMNS: usize = 10;
    for operations in pieces(operations) {
        let sql = format!(
            "INSERT INTO operations (id, host_id, kind, status, generation, body, methods, created_at, updated_at,
                 finished_at)
             VALUES {}",
            rows_of(operations.len(), COLUMNS)
        );
        let values = operations.iter().flat_map(|operation| {
            let (body, methods) = apart(operation);
            args![
                operation.id.0,
                operation.host_id.0,
                operation.kind().as_str(),
                operation.status.as_str(),
                operation.generation.0,
                Value::document(&body),
                Value::document(&methods),
                operation.created_at,
                operation.updated_at,
                operation.finished_at
            ]
        });
        write(to, AssertSqlSafe(sql), values.collect()).await?;
    }
    Ok(())
}

/// Writes operations back. Each comes with what is known of it in the database.
pub async fn update_operations(
    to: &mut impl Write,
    operations: &[(&Operation, &Operation)],
) -> Result<(), DbError> {
    const COLUMNS: usize = 4;
    for operations in pieces(operations) {
        // Left alone if it is as it was, as the columns of a host.
        let has_other_status = operations.iter().any(|(operation, known)| {
            operation.status != known.status || operation.finished_at != known.finished_at
        });
        let new = NewValues::of(operations.len());
        let [id, body, updated_at, methods, status, finished_at] =
            [1, 2, 3, 4, 5, 6].map(|number| new.name(number));
        let (status, columns) = if has_other_status {
            let assigned = format!(", status = {status}, finished_at = {finished_at}");
            (assigned, COLUMNS + 2)
        } else {
            (String::new(), COLUMNS)
        };
        let sql = format!(
            "UPDATE operations SET body = {body}, updated_at = {updated_at},
                 methods = coalesce({methods}, operations.methods){status}{} WHERE operations.id = {id}",
            new.from(operations.len(), columns)
        );
        let values = operations.iter().flat_map(|(operation, known)| {
            let (body, methods) = apart(operation);
            let mut values = args![
                operation.id.0,
                Value::document(&body),
                operation.updated_at,
                (!have_same_methods(operation, known)).then(|| Value::document(&methods))
            ];
            if has_other_status {
                values.extend(args![operation.status.as_str(), operation.finished_at]);
            }
            values
        });
        write(to, AssertSqlSafe(sql), values.collect()).await?;
    }
    Ok(())
}

/// Puts proofs on record, one that was won anew in the place of the first one of its kind and generation. Their operations must be there
/// already, and each kind be named once for a host and generation.
pub async fn save_proofs(to: &mut impl Write, proofs: &[(HostId, &Proof)]) -> Result<(), DbError> {
    const COLUMNS: usize = 7;
    for proofs in cut(to, proofs) {
        let sql = format!(
            "INSERT INTO proofs (host_id, generation, kind, operation_id, source, observed_at, detail) VALUES {}
             ON CONFLICT (host_id, generation, kind) DO UPDATE
                 SET operation_id = excluded.operation_id, source = excluded.source, observed_at = excluded.observed_at,
                     detail = excluded.detail",
            rows_of(proofs.len(), COLUMNS)
        );
        let values = proofs.iter().flat_map(|(host_id, proof)| {
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
        write(to, AssertSqlSafe(sql), values.collect()).await?;
    }
    Ok(())
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
                    WHERE status IN ('running', 'needs_operator') AND status = 'running' LIMIT $1) AS running";
    let row = fetch_optional(run, sql, args![most]).await?;
    row.map_or(Ok(0), |row| row.count("n"))
}

/// A page of operations. They have no name: sorted by name means by the time of creation.
pub async fn operations_page(
    run: &mut impl Run,
    filter: &OperationFilter,
    page: &Page,
) -> Result<Vec<Operation>, DbError> {
    let page = Page {
        sort: page.sort.iter().map(without_name).collect(),
        ..*page
    };
    let mut wanted = Wanted::default();
    wanted.test("operations.host_id", &filter.host_id);
    wanted.test_word("operations.kind", &filter.kind, OperationKind::as_str);
    wanted.test_word("operations.status", &filter.status, OperationStatus::as_str);
    wanted.test("operations.generation", &filter.generation);
    wanted.test("operations.created_at", &filter.created_at);
    wanted.test("operations.updated_at", &filter.updated_at);
    wanted.test("operations.finished_at", &filter.finished_at);
    let end = page.close(&mut wanted, "operations");
    let (columns, conditions) = (columns!(), wanted.conditions());
    let sql = format!("SELECT {columns} FROM operations{conditions}{end}");
    let values = wanted.values();
    let rows = fetch_all(run, AssertSqlSafe(sql), values).await?;
    rows.iter()
        .filter_map(|row| read_operation(row).transpose())
        .collect()
}

fn without_name(order: &Order) -> Order {
    match order.key {
        SortKey::Name => Order {
            key: SortKey::CreatedAt,
            ..*order
        },
        SortKey::CreatedAt | SortKey::UpdatedAt => *order,
    }
}
