//! Lists with filters, each declared once: the API reads a query by the declaration and describes the list by it, and the statement is made
//! of it here.

use ringfence_core::Timestamp;
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use crate::dialect::Dialect;
use crate::row::Row;
use crate::run::{Run, fetch_all, fetch_optional};
use crate::value::{Value, args};
use crate::wanted::Wanted;
use crate::{DbError, Order, Page, SortKey, Test};

/// A list.
#[derive(Debug)]
pub struct Listing {
    /// What one of its rows is called.
    pub noun: &'static str,
    pub(crate) table: &'static str,
    /// What it can be filtered by.
    pub filters: &'static [Filter],
    /// What it can be sorted by.
    pub sort_keys: &'static [SortKey],
    /// The order where none is asked for.
    pub by_default: Order,
    /// Whether SQLite is kept from indexes over several values of a column: it would sort all rows that it finds, where a page is full soon.
    pub(crate) is_read_in_order: bool,
}

/// Something that a list can be filtered by.
#[derive(Clone, Copy, Debug)]
pub struct Filter {
    /// Its name in a query.
    pub name: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
    /// What it is compared with.
    pub values: Values,
    column: &'static str,
    /// A word of another column that each row has which passes, by which an index over the few rows with it is found.
    implied: Option<(&'static str, &'static str)>,
    /// Whether SQLite first looks for one row that passes. It keeps no statistics that would tell it that there is none, and would read all.
    is_looked_for: bool,
}

/// What a filter is compared with.
#[derive(Clone, Copy, Debug)]
pub enum Values {
    /// Words of a vocabulary.
    Words(fn() -> Vec<&'static str>),
    /// Names.
    Names,
    /// Ids or names of the rows of another table.
    Rows(&'static str),
    /// Whole numbers.
    Numbers,
    /// Moments.
    Times,
    /// Ids.
    Ids,
    /// `true` or `false`: whether the column has a value.
    Flag,
}

/// A value of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A word, a name, or an id as text.
    Text(String),
    /// An id.
    Id(Uuid),
    /// A number.
    Number(u64),
    /// A moment.
    Time(Timestamp),
}

impl From<&str> for Asked {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<u64> for Asked {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<Timestamp> for Asked {
    fn from(time: Timestamp) -> Self {
        Self::Time(time)
    }
}

impl From<Asked> for Value {
    fn from(asked: Asked) -> Self {
        match asked {
            Asked::Text(text) => text.into(),
            Asked::Id(id) => id.into(),
            Asked::Number(number) => number.into(),
            Asked::Time(time) => time.into(),
        }
    }
}

/// Which rows: those for which all of it holds.
#[derive(Clone, Debug, Default)]
pub struct Filters(Vec<(Filter, Test<Asked>)>);

impl Filters {
    /// These, and one more.
    #[must_use]
    pub fn and(mut self, filter: Filter, test: Test<Asked>) -> Self {
        self.0.push((filter, test));
        self
    }

    /// Whether every row passes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The tests on the filter of this name.
    pub fn of(&self, name: &str) -> impl Iterator<Item = &Test<Asked>> {
        let named = self.0.iter().filter(move |(filter, _)| filter.name == name);
        named.map(|(_, test)| test)
    }
}

/// The words of a vocabulary.
pub(crate) fn words<T: Copy>(all: &[T], word: fn(T) -> &'static str) -> Vec<&'static str> {
    all.iter().map(|&it| word(it)).collect()
}

/// How a flag is written in a query.
fn word(flag: bool) -> &'static str {
    if flag { "true" } else { "false" }
}

impl Filter {
    pub(crate) const fn new(
        name: &'static str,
        about: &'static str,
        column: &'static str,
        values: Values,
    ) -> Self {
        Self {
            name,
            about,
            values,
            column,
            implied: None,
            is_looked_for: false,
        }
    }

    pub(crate) const fn implying(self, column: &'static str, word: &'static str) -> Self {
        Self {
            implied: Some((column, word)),
            ..self
        }
    }

    pub(crate) const fn looked_for(self) -> Self {
        Self {
            is_looked_for: true,
            ..self
        }
    }

    fn add_to(&self, wanted: &mut Wanted, test: &Test<Asked>) {
        match self.values {
            Values::Words(words) => {
                let words = words();
                let known = |asked: &Asked| {
                    let word = words.iter().find(|word| Asked::from(**word) == *asked);
                    word.copied().unwrap_or_default()
                };
                wanted.test_word(self.column, &test.map(known));
            }
            Values::Flag => {
                let has = [true, false]
                    .into_iter()
                    .filter(|has| test.takes(&Asked::from(word(*has))));
                wanted.has_value(self.column, &has.collect::<Vec<_>>());
            }
            Values::Names | Values::Rows(_) | Values::Numbers | Values::Times | Values::Ids => {
                wanted.test(self.column, std::slice::from_ref(test));
            }
        }
        if let Some((column, word)) = self.implied.filter(|_| !test.is_negative()) {
            wanted.test_word(column, &Test::is(word));
        }
    }
}

impl Listing {
    /// Its filter of this name.
    #[must_use]
    pub fn filter(&self, name: &str) -> Option<Filter> {
        self.filters.iter().find(|filter| filter.name == name).copied()
    }

    /// Whether it has a row with this id.
    pub async fn has(&self, run: &mut impl Run, id: Uuid) -> Result<bool, DbError> {
        let sql = AssertSqlSafe(format!("SELECT 1 AS found FROM {} WHERE id = $1", self.table));
        Ok(fetch_optional(run, sql, args![id]).await?.is_some())
    }

    /// A page of it. `select` makes the statement of its end.
    pub(crate) async fn page(
        &self,
        run: &mut impl Run,
        filters: &Filters,
        page: &Page,
        select: impl Fn(Dialect, &str) -> AssertSqlSafe<String> + Send,
    ) -> Result<Vec<Row>, DbError> {
        let Some(filters) = by_ids(run, filters).await? else {
            return Ok(Vec::new());
        };
        if !self.may_be_found(run, &filters).await? {
            return Ok(Vec::new());
        }
        let (sql, values) = self.statement(run.dialect(), &filters, page, select);
        fetch_all(run, sql, values).await
    }

    /// How many of its rows pass.
    pub(crate) async fn count(&self, run: &mut impl Run, filters: &Filters) -> Result<u64, DbError> {
        let Some(filters) = by_ids(run, filters).await? else {
            return Ok(0);
        };
        let mut wanted = Wanted::default();
        add_all(&mut wanted, &filters);
        let (table, conditions) = (self.table, wanted.conditions());
        let sql = AssertSqlSafe(format!("SELECT count(*) AS n FROM {table}{conditions}"));
        let row = fetch_optional(run, sql, wanted.values()).await?;
        row.map_or(Ok(0), |row| row.count("n"))
    }

    pub(crate) fn statement(
        &self,
        dialect: Dialect,
        filters: &Filters,
        page: &Page,
        select: impl Fn(Dialect, &str) -> AssertSqlSafe<String>,
    ) -> (AssertSqlSafe<String>, Vec<Value>) {
        let mut wanted = if self.is_read_in_order {
            Wanted::in_order(dialect)
        } else {
            Wanted::default()
        };
        add_all(&mut wanted, filters);
        let end = page.close(&mut wanted, self.table);
        let sql = select(dialect, &format!("{}{end}", wanted.conditions()));
        (sql, wanted.values())
    }

    /// Whether some row passes each test by itself, where SQLite has to look.
    async fn may_be_found(&self, run: &mut impl Run, filters: &Filters) -> Result<bool, DbError> {
        if run.dialect() == Dialect::Postgres {
            return Ok(true);
        }
        let mut each = Wanted::default();
        // Most rows pass a test that says what is not wanted.
        let looked_for = filters.0.iter();
        for (filter, test) in looked_for.filter(|(filter, test)| filter.is_looked_for && !test.is_negative())
        {
            filter.add_to(&mut each, test);
        }
        let Some(found) = each.each_exists(self.table) else {
            return Ok(true);
        };
        let sql = AssertSqlSafe(format!("SELECT 1 AS found WHERE {found}"));
        Ok(fetch_optional(run, sql, each.values()).await?.is_some())
    }
}

fn add_all(wanted: &mut Wanted, filters: &Filters) {
    for (filter, test) in &filters.0 {
        filter.add_to(wanted, test);
    }
}

/// The filters with the ids of the rows that they name, so that the indexes over ids are used; `None` if no row can pass them.
async fn by_ids(run: &mut impl Run, filters: &Filters) -> Result<Option<Filters>, DbError> {
    let mut of_ids = Filters::default();
    for (filter, test) in &filters.0 {
        let Values::Rows(table) = filter.values else {
            of_ids.0.push((*filter, test.clone()));
            continue;
        };
        let named = match test {
            Test::OneOf(named) | Test::NoneOf(named) => named,
            // Rows have no order.
            Test::Below(_) | Test::AtMost(_) | Test::Above(_) | Test::AtLeast(_) => return Ok(None),
        };
        match (ids(run, table, named).await?, test.is_negative()) {
            (ids, true) if ids.is_empty() => {}
            (ids, false) if ids.is_empty() => return Ok(None),
            (ids, true) => of_ids.0.push((*filter, Test::NoneOf(ids))),
            (ids, false) => of_ids.0.push((*filter, Test::OneOf(ids))),
        }
    }
    Ok(Some(of_ids))
}

/// The ids of rows that are named by id or by name.
async fn ids(run: &mut impl Run, table: &'static str, rows: &[Asked]) -> Result<Vec<Asked>, DbError> {
    let (mut ids, mut names) = (Vec::new(), Vec::new());
    for row in rows {
        match row {
            Asked::Text(text) => match Uuid::parse_str(text) {
                Ok(id) => ids.push(Asked::Id(id)),
                Err(_) => names.push(text.clone()),
            },
            other => ids.push(other.clone()),
        }
    }
    if !names.is_empty() {
        let mut wanted = Wanted::default();
        wanted.test("name", &[Test::OneOf(names)]);
        let sql = AssertSqlSafe(format!("SELECT id FROM {table}{}", wanted.conditions()));
        for row in fetch_all(run, sql, wanted.values()).await? {
            ids.push(Asked::Id(row.id("id")?));
        }
    }
    Ok(ids)
}
