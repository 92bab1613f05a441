//! Queries that name only what is asked for, so that either database finds the index for it.

use crate::dialect::Dialect;
use crate::value::Value;

/// A condition on one column of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Test<T> {
    /// It is one of these.
    OneOf(Vec<T>),
    /// It is none of these.
    NoneOf(Vec<T>),
    /// It is less or earlier.
    Below(T),
    /// It is not more or later.
    AtMost(T),
    /// It is more or later.
    Above(T),
    /// It is not less or earlier.
    AtLeast(T),
}

impl<T> Test<T> {
    /// It is this.
    pub fn is(value: T) -> Self {
        Self::OneOf(vec![value])
    }

    /// Whether it says what is not wanted.
    #[must_use]
    pub fn is_negative(&self) -> bool {
        matches!(self, Self::NoneOf(_))
    }

    /// Whether a value without an order passes.
    pub(crate) fn takes(&self, value: &T) -> bool
    where
        T: PartialEq,
    {
        match self {
            Self::OneOf(values) => values.contains(value),
            Self::NoneOf(values) => !values.contains(value),
            Self::Below(_) | Self::AtMost(_) | Self::Above(_) | Self::AtLeast(_) => false,
        }
    }

    /// The test on something else.
    pub(crate) fn map<U>(&self, to: impl Fn(&T) -> U) -> Test<U> {
        match self {
            Self::OneOf(values) => Test::OneOf(values.iter().map(to).collect()),
            Self::NoneOf(values) => Test::NoneOf(values.iter().map(to).collect()),
            Self::Below(value) => Test::Below(to(value)),
            Self::AtMost(value) => Test::AtMost(to(value)),
            Self::Above(value) => Test::Above(to(value)),
            Self::AtLeast(value) => Test::AtLeast(to(value)),
        }
    }
}

/// Conditions and their arguments.
#[derive(Default)]
pub(crate) struct Wanted {
    conditions: Vec<String>,
    values: Vec<Value>,
    is_read_in_order: bool,
}

impl Wanted {
    /// Of a list that is read in its order until a page is full. SQLite would look for several values of a column one after the other, and
    /// sort all that it finds: it is kept from that.
    pub fn in_order(dialect: Dialect) -> Self {
        Self {
            is_read_in_order: dialect == Dialect::Sqlite,
            ..Self::default()
        }
    }

    fn is_one_of(&self, column: &str, values: usize, list: &str) -> String {
        match values {
            // By which SQLite finds an index over the rows with one value; by `IN` it does not.
            1 => format!("{column} = {list}"),
            // An expression that no index is over.
            _ if self.is_read_in_order => format!("+{column} IN ({list})"),
            _ => format!("{column} IN ({list})"),
        }
    }

    /// Adds an argument; returns how the text of the query names it.
    pub fn bind(&mut self, value: Value) -> String {
        self.values.push(value);
        format!("${}", self.values.len())
    }

    /// Adds a condition.
    pub fn add(&mut self, condition: String) {
        self.conditions.push(condition);
    }

    /// Adds the comparison of a column with a value, if there is one.
    pub fn compare<T>(&mut self, column: &str, how: &str, value: Option<T>)
    where
        Value: From<T>,
    {
        if let Some(value) = value {
            let value = self.bind(value.into());
            self.add(format!("{column} {how} {value}"));
        }
    }

    /// Adds conditions on a column.
    pub fn test<T: Clone>(&mut self, column: &'static str, tests: &[Test<T>])
    where
        Value: From<T>,
    {
        for test in tests {
            let condition = match test {
                Test::OneOf(values) => {
                    let list = self.list(values);
                    self.is_one_of(column, values.len(), &list)
                }
                // What is not there is not one of them either.
                Test::NoneOf(values) => {
                    format!("({column} IS NULL OR {column} NOT IN ({}))", self.list(values))
                }
                Test::Below(value) => format!("{column} < {}", self.bind(value.clone().into())),
                Test::AtMost(value) => format!("{column} <= {}", self.bind(value.clone().into())),
                Test::Above(value) => format!("{column} > {}", self.bind(value.clone().into())),
                Test::AtLeast(value) => format!("{column} >= {}", self.bind(value.clone().into())),
            };
            self.conditions.push(condition);
        }
    }

    /// Filters by words of an enum. They stand in the text of the query, so that an index for some of them is found.
    pub fn test_word(&mut self, column: &str, test: &Test<&'static str>) {
        let words = match test {
            Test::OneOf(words) | Test::NoneOf(words) => words.as_slice(),
            Test::Below(word) | Test::AtMost(word) | Test::Above(word) | Test::AtLeast(word) => {
                std::slice::from_ref(word)
            }
        };
        let list: Vec<_> = words.iter().map(|word| format!("'{word}'")).collect();
        let list = list.join(", ");
        self.add(if test.is_negative() {
            format!("{column} NOT IN ({list})")
        } else {
            self.is_one_of(column, words.len(), &list)
        });
    }

    /// Filters by whether a column has a value: it may (`true`), or may not, or either.
    pub fn has_value(&mut self, column: &str, allowed: &[bool]) {
        match allowed {
            [] => self.add("1 = 0".to_owned()),
            [true] => self.add(format!("{column} IS NOT NULL")),
            [false] => self.add(format!("{column} IS NULL")),
            _ => {}
        }
    }

    /// The arguments of an `IN`.
    pub fn list<T: Clone>(&mut self, values: &[T]) -> String
    where
        Value: From<T>,
    {
        let names = values.iter().map(|value| self.bind(value.clone().into()));
        names.collect::<Vec<_>>().join(", ")
    }

    /// Whether a row of the table is found for each condition by itself, as an expression; `None` without a condition.
    pub fn each_exists(&self, table: &str) -> Option<String> {
        let each = self.conditions.iter();
        let each: Vec<_> = each
            .map(|condition| format!("EXISTS (SELECT 1 FROM {table} WHERE {condition})"))
            .collect();
        (!each.is_empty()).then(|| each.join(" AND "))
    }

    /// `WHERE` and all conditions, or nothing.
    pub fn conditions(&self) -> String {
        if self.conditions.is_empty() {
            String::new()
        } else {
            format!(" WHERE {}", self.conditions.join(" AND "))
        }
    }

    pub fn values(self) -> Vec<Value> {
        self.values
    }
}
