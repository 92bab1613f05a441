//! Hosts as they are listed: filtered, in order, with their live operations.

use ringfence_core::{
    Backend, FailureState, FencingState, Host, OperationId, OperationKind, OperationStatus, Timestamp,
};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use crate::dialect::Dialect;
use crate::hosts;
use crate::row::Row;
use crate::run::{Run, fetch_all, fetch_optional};
use crate::value::args;
use crate::wanted::Wanted;
use crate::{DbError, Page, Test};

/// A host as it is listed: with its segment's name and its live operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRow {
    /// The host.
    pub host: Host,
    /// Its segment's name.
    pub segment: String,
    /// Its live operation.
    pub operation: Option<(OperationId, OperationKind, OperationStatus)>,
}

/// Which hosts: those for which all of it holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostFilter {
    /// The fencing state.
    pub fencing_state: Vec<Test<FencingState>>,
    /// The failure state.
    pub failure_state: Vec<Test<FailureState>>,
    /// The backend.
    pub backend: Vec<Test<Backend>>,
    /// The id or name of the segment; no order.
    pub segment: Vec<Test<String>>,
    /// The name.
    pub name: Vec<Test<String>>,
    /// The type; a host without one is not any.
    pub host_type: Vec<Test<String>>,
    /// The zone.
    pub zone: Vec<Test<String>>,
    /// The generation.
    pub generation: Vec<Test<u64>>,
    /// When it was fenced; a host that is not was not at any time.
    pub fenced_at: Vec<Test<Timestamp>>,
    /// When it was added.
    pub created_at: Vec<Test<Timestamp>>,
    /// When it was last changed.
    pub updated_at: Vec<Test<Timestamp>>,
}

/// Hosts as they are listed; `rest` says which.
fn select(dialect: Dialect, rest: &str) -> AssertSqlSafe<String> {
    let (columns, live) = (hosts::columns!(), dialect.live_operation());
    AssertSqlSafe(format!(
        "SELECT {columns}, segments.name AS segment_name,
             operations.id AS live_id, operations.kind AS live_kind, operations.status AS live_status
         FROM hosts
         JOIN segments ON segments.id = hosts.segment_id
         {live}{rest}"
    ))
}

fn read_listed(row: &Row) -> Result<HostRow, DbError> {
    let operation = match row.opt_id("live_id")? {
        Some(id) => Some((
            OperationId(id),
            row.word("live_kind", OperationKind::from_word)?,
            row.word("live_status", OperationStatus::from_word)?,
        )),
        None => None,
    };
    Ok(HostRow {
        host: hosts::read(row)?,
        segment: row.text("segment_name")?,
        operation,
    })
}

/// The host with this id or name, as it is listed.
pub async fn host_row(run: &mut impl Run, id_or_name: &str) -> Result<Option<HostRow>, DbError> {
    let row = match Uuid::parse_str(id_or_name) {
        Ok(id) => {
            let sql = select(run.dialect(), " WHERE hosts.id = $1");
            fetch_optional(run, sql, args![id]).await?
        }
        Err(_) => {
            let sql = select(run.dialect(), " WHERE hosts.name = $1");
            fetch_optional(run, sql, args![id_or_name]).await?
        }
    };
    row.as_ref().map(read_listed).transpose()
}

/// A page of hosts.
pub async fn hosts_page(
    run: &mut impl Run,
    filter: &HostFilter,
    page: &Page,
) -> Result<Vec<HostRow>, DbError> {
    let Some(segments) = segments(run, &filter.segment).await? else {
        return Ok(Vec::new());
    };
    if !may_be_found(run, filter).await? {
        return Ok(Vec::new());
    }
    let mut wanted = wanted(Wanted::in_order(run.dialect()), filter, &segments);
    let end = page.close(&mut wanted, "hosts");
    let conditions = wanted.conditions();
    let sql = select(run.dialect(), &format!("{conditions}{end}"));
    let values = wanted.values();
    let rows = fetch_all(run, sql, values).await?;
    rows.iter().map(read_listed).collect()
}

/// The number of hosts, for metrics and limits.
pub async fn count_hosts(run: &mut impl Run, filter: &HostFilter) -> Result<u64, DbError> {
    let Some(segments) = segments(run, &filter.segment).await? else {
        return Ok(0);
    };
    let wanted = wanted(Wanted::default(), filter, &segments);
    let sql = format!("SELECT count(*) AS n FROM hosts{}", wanted.conditions());
    let row = fetch_optional(run, AssertSqlSafe(sql), wanted.values()).await?;
    row.map_or(Ok(0), |row| row.count("n"))
}

/// Whether each condition on a column that has an index holds for a host. SQLite keeps no statistics that would tell it, and would read all
/// hosts in order to find none.
async fn may_be_found(run: &mut impl Run, filter: &HostFilter) -> Result<bool, DbError> {
    if run.dialect() == Dialect::Postgres {
        return Ok(true);
    }
    let mut each = Wanted::default();
    each.test_word("backend", &positive(&filter.backend), Backend::as_str);
    each.test("host_type", &positive(&filter.host_type));
    each.test("zone", &positive(&filter.zone));
    each.test("generation", &positive(&filter.generation));
    let Some(found) = each.each_exists("hosts") else {
        return Ok(true);
    };
    let sql = AssertSqlSafe(format!("SELECT 1 AS found WHERE {found}"));
    Ok(fetch_optional(run, sql, each.values()).await?.is_some())
}

/// Without those that say what is not wanted, which most hosts are not.
fn positive<T: Clone>(tests: &[Test<T>]) -> Vec<Test<T>> {
    let positive = tests.iter().filter(|test| !matches!(test, Test::NoneOf(_)));
    positive.cloned().collect()
}

fn wanted(mut wanted: Wanted, filter: &HostFilter, segments: &[Test<Uuid>]) -> Wanted {
    wanted.test_word("hosts.fencing_state", &filter.fencing_state, FencingState::as_str);
    wanted.test_word("hosts.failure_state", &filter.failure_state, FailureState::as_str);
    wanted.test_word("hosts.backend", &filter.backend, Backend::as_str);
    wanted.test("hosts.segment_id", segments);
    wanted.test("hosts.name", &filter.name);
    wanted.test("hosts.host_type", &filter.host_type);
    wanted.test("hosts.zone", &filter.zone);
    wanted.test("hosts.generation", &filter.generation);
    wanted.test("hosts.fenced_at", &filter.fenced_at);
    if filter
        .fenced_at
        .iter()
        .any(|test| !matches!(test, Test::NoneOf(_)))
    {
        // A host that is not FENCED was not fenced at any time. There is an index over the few that are.
        wanted.test_word(
            "hosts.fencing_state",
            &[Test::is(FencingState::Fenced)],
            FencingState::as_str,
        );
    }
    wanted.test("hosts.created_at", &filter.created_at);
    wanted.test("hosts.updated_at", &filter.updated_at);
    wanted
}

/// The tests by the ids of segments, so that the index over these is used; `None` if no segment can pass them.
async fn segments(run: &mut impl Run, tests: &[Test<String>]) -> Result<Option<Vec<Test<Uuid>>>, DbError> {
    let mut of_ids = Vec::with_capacity(tests.len());
    for test in tests {
        match test {
            Test::NoneOf(segments) => match ids(run, segments).await? {
                ids if ids.is_empty() => {}
                ids => of_ids.push(Test::NoneOf(ids)),
            },
            Test::OneOf(segments) => match ids(run, segments).await? {
                ids if ids.is_empty() => return Ok(None),
                ids => of_ids.push(Test::OneOf(ids)),
            },
            // They have no order.
            Test::Below(_) | Test::AtMost(_) | Test::Above(_) | Test::AtLeast(_) => return Ok(None),
        }
    }
    Ok(Some(of_ids))
}

/// The ids of segments that are named by id or by name.
async fn ids(run: &mut impl Run, segments: &[String]) -> Result<Vec<Uuid>, DbError> {
    let (mut ids, mut names) = (Vec::new(), Vec::new());
    for segment in segments {
        match Uuid::parse_str(segment) {
            Ok(id) => ids.push(id),
            Err(_) => names.push(segment.clone()),
        }
    }
    if !names.is_empty() {
        let mut wanted = Wanted::default();
        wanted.test("name", &[Test::OneOf(names)]);
        let sql = format!("SELECT id FROM segments{}", wanted.conditions());
        for row in fetch_all(run, AssertSqlSafe(sql), wanted.values()).await? {
            ids.push(row.id("id")?);
        }
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use sqlx::{SqlSafeStr, SqlStr};

    use super::*;
    use crate::run::{Values, sealed::Sealed};
    use crate::table_rows::TableRows;
    use crate::{Database, Reader, SortKey, migrate};

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

        async fn rows(&mut self, sql: SqlStr, values: Values) -> Result<Vec<Row>, DbError> {
            let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {}", sql.as_str()));
            let plan = self
                .reader
                .rows(explain.into_sql_str(), Values(values.0.clone()))
                .await?;
            for line in plan {
                self.plans.push(line.text("detail")?);
            }
            self.reader.rows(sql, values).await
        }

        async fn change(&mut self, sql: SqlStr, values: Values) -> Result<u64, DbError> {
            self.reader.change(sql, values).await
        }

        async fn write(&mut self, rows: TableRows) -> Result<(), DbError> {
            self.reader.write(rows).await
        }
    }

    async fn plan_of(db: &Database, filter: HostFilter) -> String {
        let page = Page {
            limit: 100,
            marker: None,
            sort: vec![SortKey::Name.ascending()],
        };
        let mut run = Explaining {
            reader: db.reader(),
            plans: Vec::new(),
        };
        assert_eq!(hosts_page(&mut run, &filter, &page).await.unwrap(), []);
        run.plans.join("\n")
    }

    async fn empty() -> (tempfile::TempDir, Database) {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", folder.path().join("t.db").display());
        let db = Database::open(&url, 1).await.unwrap();
        migrate(&db).await.unwrap();
        (folder, db)
    }

    /// Each filter with one value, and how the hosts with it are found.
    fn filters() -> [(HostFilter, &'static str); 8] {
        let text = |text: &str| vec![Test::is(text.to_owned())];
        let all = HostFilter::default;
        [
            (
                HostFilter {
                    name: text("x"),
                    ..all()
                },
                "SEARCH hosts USING INDEX sqlite_autoindex_hosts_2 (name=?)",
            ),
            (
                HostFilter {
                    zone: text("x"),
                    ..all()
                },
                "SEARCH hosts USING INDEX hosts_by_zone (zone=?)",
            ),
            (
                HostFilter {
                    host_type: text("x"),
                    ..all()
                },
                "SEARCH hosts USING INDEX hosts_by_host_type (host_type=?)",
            ),
            (
                HostFilter {
                    segment: text(&Uuid::nil().to_string()),
                    ..all()
                },
                "SEARCH hosts USING INDEX hosts_by_segment (segment_id=?)",
            ),
            (
                HostFilter {
                    backend: vec![Test::is(Backend::Kubernetes)],
                    ..all()
                },
                "SEARCH hosts USING INDEX hosts_by_backend (backend=?)",
            ),
            (
                HostFilter {
                    generation: vec![Test::is(9)],
                    ..all()
                },
                "SEARCH hosts USING INDEX hosts_by_generation (generation=?)",
            ),
            (
                HostFilter {
                    failure_state: vec![Test::is(FailureState::Unknown)],
                    ..all()
                },
                "SCAN hosts USING INDEX hosts_unknown_by_name",
            ),
            (
                HostFilter {
                    fenced_at: vec![Test::Above(Timestamp::default())],
                    ..all()
                },
                "SCAN hosts USING INDEX hosts_fenced_by_name",
            ),
        ]
    }

    #[tokio::test]
    async fn a_filter_with_one_value_is_read_by_an_index_in_the_order_of_the_list() {
        let (_folder, db) = empty().await;
        // The list itself, past the question whether there is such a host.
        for (filter, search) in filters() {
            let mut run = Explaining {
                reader: db.reader(),
                plans: Vec::new(),
            };
            let segments = segments(&mut run, &filter.segment).await.unwrap().unwrap();
            let mut wanted = wanted(Wanted::in_order(Dialect::Sqlite), &filter, &segments);
            let page = Page {
                limit: 100,
                marker: None,
                sort: vec![SortKey::Name.ascending()],
            };
            let end = page.close(&mut wanted, "hosts");
            let sql = select(Dialect::Sqlite, &format!("{}{end}", wanted.conditions()));
            fetch_all(&mut run, sql, wanted.values()).await.unwrap();
            let plan = run.plans.join("\n");
            assert!(plan.contains(search), "{search}:\n{plan}");
            assert!(!plan.contains("TEMP B-TREE"), "{plan}");
        }
    }

    #[tokio::test]
    async fn a_filter_that_no_host_passes_reads_no_host() {
        let (_folder, db) = empty().await;
        let several = |texts: &[&str]| vec![Test::OneOf(texts.iter().map(|t| (*t).to_owned()).collect())];
        for filter in [
            HostFilter {
                zone: several(&["x", "y"]),
                ..HostFilter::default()
            },
            HostFilter {
                host_type: several(&["x", "y"]),
                ..HostFilter::default()
            },
            HostFilter {
                generation: vec![Test::AtLeast(3), Test::Below(7)],
                ..HostFilter::default()
            },
            HostFilter {
                segment: several(&["x", "y"]),
                ..HostFilter::default()
            },
        ] {
            let plan = plan_of(&db, filter).await;
            assert!(!plan.contains("SCAN hosts"), "{plan}");
        }
    }

    #[tokio::test]
    async fn several_values_are_not_sorted() {
        let mut wanted = Wanted::in_order(Dialect::Sqlite);
        wanted.test("hosts.zone", &[Test::OneOf(vec!["a".to_owned(), "b".to_owned()])]);
        let (_folder, db) = empty().await;
        let mut run = Explaining {
            reader: db.reader(),
            plans: Vec::new(),
        };
        let sql = select(
            Dialect::Sqlite,
            &format!("{} ORDER BY hosts.name", wanted.conditions()),
        );
        fetch_all(&mut run, sql, wanted.values()).await.unwrap();
        let plan = run.plans.join("\n");
        assert!(!plan.contains("TEMP B-TREE"), "{plan}");
    }
}
