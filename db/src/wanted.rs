//! Queries that name only what is asked for, so that either database finds the index for it.

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
}

/// Conditions and their arguments.
#[derive(Default)]
pub(crate) struct Wanted {
    conditions: Vec<String>,
    values: Vec<Value>,
}

impl Wanted {
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
                Test::OneOf(values) => format!("{column} IN ({})", self.list(values)),
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

    /// The same for words of a vocabulary of ours. They stand in the text of the query, so that an index for some of them is found.
    pub fn test_word<T: Copy>(
        &mut self,
        column: &'static str,
        tests: &[Test<T>],
        word: fn(T) -> &'static str,
    ) {
        for test in tests {
            let (is, words) = match test {
                Test::OneOf(words) => ("IN", words.as_slice()),
                Test::NoneOf(words) => ("NOT IN", words.as_slice()),
                Test::Below(word) | Test::AtMost(word) | Test::Above(word) | Test::AtLeast(word) => {
                    ("IN", std::slice::from_ref(word))
                }
            };
            let words = words.iter().map(|&it| format!("'{}'", word(it)));
            let words = words.collect::<Vec<_>>().join(", ");
            self.conditions.push(format!("{column} {is} ({words})"));
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
