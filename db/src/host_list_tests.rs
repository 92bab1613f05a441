//! How SQLite goes about lists of hosts.

use ringfence_core::Timestamp;
use sqlx::{SqlSafeStr, SqlStr};
use uuid::Uuid;

use super::*;
use crate::listing::Asked;
use crate::run::{Values as Bound, fetch_all, sealed::Sealed};
use crate::table_rows::TableRows;
use crate::{Database, Reader, Test, migrate};

/// Reads, and notes how SQLite goes about it.
struct Explaining<'a> {
    reader: Reader<'a>,
    plans: Vec<String>,
}

impl Sealed for Explaining<'_> {}

impl Run for Explaining<'_> {
    fn dialect(&self) -> Dialect {
        self.reader.dialect()
    }

    async fn rows(&mut self, sql: SqlStr, values: Bound) -> Result<Vec<Row>, DbError> {
        let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {}", sql.as_str()));
        let plan = self
            .reader
            .rows(explain.into_sql_str(), Bound(values.0.clone()))
            .await?;
        for line in plan {
            self.plans.push(line.text("detail")?);
        }
        self.reader.rows(sql, values).await
    }

    async fn change(&mut self, sql: SqlStr, values: Bound) -> Result<u64, DbError> {
        self.reader.change(sql, values).await
    }

    async fn write(&mut self, rows: TableRows) -> Result<(), DbError> {
        self.reader.write(rows).await
    }
}

async fn plan_of(db: &Database, filters: Filters) -> String {
    let page = Page {
        limit: 100,
        marker: None,
        sort: vec![SortKey::Name.ascending()],
    };
    let mut run = Explaining {
        reader: db.reader(),
        plans: Vec::new(),
    };
    assert_eq!(hosts_page(&mut run, &filters, &page).await.unwrap(), []);
    run.plans.join("\n")
}

async fn empty() -> (tempfile::TempDir, Database) {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("t.db").display());
    let db = Database::open(&url, 1).await.unwrap();
    migrate(&db).await.unwrap();
    (folder, db)
}

fn by(name: &str, test: Test<Asked>) -> Filters {
    Filters::default().and(HOSTS.filter(name).unwrap(), test)
}

fn several(texts: [&str; 2]) -> Test<Asked> {
    Test::OneOf(texts.map(Asked::from).to_vec())
}

#[tokio::test]
async fn a_filter_with_one_value_is_read_by_an_index_in_the_order_of_the_list() {
    let (_folder, db) = empty().await;
    let page = Page {
        limit: 100,
        marker: None,
        sort: vec![SortKey::Name.ascending()],
    };
    let name = || Test::is("x".into());
    for (filters, search) in [
        (
            by("name", name()),
            "SEARCH hosts USING INDEX sqlite_autoindex_hosts_2 (name=?)",
        ),
        (
            by("zone", name()),
            "SEARCH hosts USING INDEX hosts_by_zone (zone=?)",
        ),
        (
            by("type", name()),
            "SEARCH hosts USING INDEX hosts_by_host_type (host_type=?)",
        ),
        (
            by("segment", Test::is(Asked::Id(Uuid::nil()))),
            "SEARCH hosts USING INDEX hosts_by_segment (segment_id=?)",
        ),
        (
            by("backend", Test::is("kubernetes".into())),
            "SEARCH hosts USING INDEX hosts_by_backend (backend=?)",
        ),
        (
            by("generation", Test::is(9.into())),
            "SEARCH hosts USING INDEX hosts_by_generation (generation=?)",
        ),
        (
            by("failure_state", Test::is("UNKNOWN".into())),
            "SCAN hosts USING INDEX hosts_unknown_by_name",
        ),
        (
            by("fenced_at", Test::Above(Timestamp::default().into())),
            "SCAN hosts USING INDEX hosts_fenced_by_name",
        ),
    ] {
        let mut run = Explaining {
            reader: db.reader(),
            plans: Vec::new(),
        };
        // The list itself, past the question whether there is such a host.
        let (sql, values) = HOSTS.statement(Dialect::Sqlite, &filters, &page, select);
        fetch_all(&mut run, sql, values).await.unwrap();
        let plan = run.plans.join("\n");
        assert!(plan.contains(search), "{search}:\n{plan}");
        assert!(!plan.contains("TEMP B-TREE"), "{plan}");
    }
}

#[tokio::test]
async fn a_filter_that_no_host_passes_reads_no_host() {
    let (_folder, db) = empty().await;
    let generation = HOSTS.filter("generation").unwrap();
    for filters in [
        by("zone", several(["x", "y"])),
        by("type", several(["x", "y"])),
        by("segment", several(["x", "y"])),
        by("generation", Test::AtLeast(3.into())).and(generation, Test::Below(7.into())),
    ] {
        let plan = plan_of(&db, filters).await;
        assert!(!plan.contains("SCAN hosts"), "{plan}");
    }
}

#[tokio::test]
async fn several_values_are_not_sorted() {
    let (_folder, db) = empty().await;
    let mut run = Explaining {
        reader: db.reader(),
        plans: Vec::new(),
    };
    let page = Page {
        limit: 100,
        marker: None,
        sort: vec![SortKey::Name.ascending()],
    };
    let (sql, values) = HOSTS.statement(Dialect::Sqlite, &by("zone", several(["a", "b"])), &page, select);
    fetch_all(&mut run, sql, values).await.unwrap();
    let plan = run.plans.join("\n");
    assert!(!plan.contains("TEMP B-TREE"), "{plan}");
}
