//! Operations and proofs.

use ringfence_core::{HostId, Operation, OperationKind, OperationStatus, Proof, Timestamp};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use crate::run::{Run, execute, fetch_all, fetch_optional};
use crate::value::{Value, args, pieces, rows_of};
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

/// Adds operations. A second live one for the same host is refused by an index.
pub async fn insert_operations(run: &mut impl Run, operations: &[&Operation]) -> Result<(), DbError> {
    const COLUMNS: usize = 9;
    for operations in pieces(operations) {
        let sql = format!(
            "INSERT INTO operations (id, host_id, kind, status, generation, body, created_at, updated_at, finished_at)
             VALUES {}",
            rows_of(operations.len(), COLUMNS)
        );
        let values = operations.iter().flat_map(|operation| {
            args![
                operation.id.0,
                operation.host_id.0,
                operation.kind.as_str(),
                operation.status.as_str(),
                operation.generation.0,
                Value::json(operation),
                operation.created_at,
                operation.updated_at,
                operation.finished_at
            ]
        });
        execute(run, AssertSqlSafe(sql), values.collect()).await?;
    }
    Ok(())
}

/// Writes operations back.
pub async fn update_operations(run: &mut impl Run, operations: &[&Operation]) -> Result<(), DbError> {
    const COLUMNS: usize = 5;
    for operations in pieces(operations) {
        let sql = format!(
            "UPDATE operations SET status = new.column2, body = new.column3, updated_at = new.column4,
                 finished_at = new.column5
             FROM (VALUES {}) AS new WHERE operations.id = new.column1",
            rows_of(operations.len(), COLUMNS)
        );
        let values = operations.iter().flat_map(|operation| {
            args![
                operation.id.0,
                operation.status.as_str(),
                Value::json(operation),
                operation.updated_at,
                operation.finished_at
            ]
        });
        execute(run, AssertSqlSafe(sql), values.collect()).await?;
    }
    Ok(())
}

/// Adds proofs. Their operations must be there already.
pub async fn insert_proofs(run: &mut impl Run, proofs: &[(HostId, &Proof)]) -> Result<(), DbError> {
    const COLUMNS: usize = 7;
    for proofs in pieces(proofs) {
        let sql = format!(
            "INSERT INTO proofs (host_id, generation, kind, operation_id, source, observed_at, detail) VALUES {}",
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
        execute(run, AssertSqlSafe(sql), values.collect()).await?;
    }
    Ok(())
}

/// Writes a proof that was won anew over the first one of its kind and generation.
pub async fn renew_proof(run: &mut impl Run, host_id: HostId, proof: &Proof) -> Result<(), DbError> {
    let sql = "UPDATE proofs SET source = $4, observed_at = $5, detail = $6
               WHERE host_id = $1 AND generation = $2 AND kind = $3";
    let values = args![
        host_id.0,
        proof.generation.0,
        proof.kind.as_str(),
        &proof.source,
        proof.observed_at,
        &proof.detail
    ];
    execute(run, sql, values).await.map(|_| ())
}

/// The operation with this id.
pub async fn operation(run: &mut impl Run, id: Uuid) -> Result<Option<Operation>, DbError> {
    let row = fetch_optional(run, "SELECT body FROM operations WHERE id = $1", args![id]).await?;
    row.map(|row| row.json("body")).transpose()
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
    let sql = format!("SELECT body FROM operations{}{end}", wanted.conditions());
    let values = wanted.values();
    let rows = fetch_all(run, AssertSqlSafe(sql), values).await?;
    rows.iter().map(|row| row.json("body")).collect()
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
