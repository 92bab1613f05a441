//! Pages of a listing.

use uuid::Uuid;

use crate::wanted::Wanted;

/// What a listing is sorted by. Ties after the last key are broken by id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortKey {
    /// By name, which is unique.
    #[default]
    Name,
    /// By the time of creation.
    CreatedAt,
    /// By the time of the last change.
    UpdatedAt,
}

/// A key, and in which direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// The key.
    pub key: SortKey,
    /// Whether the last comes first.
    pub descending: bool,
}

/// Which page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The most rows.
    pub limit: u32,
    /// The id of the last row of the page before. After one that has been removed comes nothing: the client has to see that it
    /// is still there.
    pub marker: Option<Uuid>,
    /// What it is sorted by, the first key first.
    pub sort: Vec<Order>,
}

/// A column of the order and its direction.
#[derive(Clone, Copy)]
struct Column {
    name: &'static str,
    descending: bool,
}

impl SortKey {
    /// The word for it, which is the name of its column.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::CreatedAt => "created_at",
            Self::UpdatedAt => "updated_at",
        }
    }

    /// Ascending.
    #[must_use]
    pub const fn ascending(self) -> Order {
        Order {
            key: self,
            descending: false,
        }
    }

    /// Descending.
    #[must_use]
    pub const fn descending(self) -> Order {
        Order {
            key: self,
            descending: true,
        }
    }
}

impl Page {
    /// Adds to a query over `table` what comes after the marker; returns the end of the query.
    pub(crate) fn close(&self, wanted: &mut Wanted, table: &'static str) -> String {
        let columns = self.columns();
        if let Some(marker) = self.marker {
            after(wanted, table, &columns, marker);
        }
        let order = columns.iter().map(|column| {
            let direction = if column.descending { "DESC" } else { "ASC" };
            format!("{table}.{} {direction}", column.name)
        });
        let order = order.collect::<Vec<_>>().join(", ");
        let limit = wanted.bind(self.limit.into());
        format!(" ORDER BY {order} LIMIT {limit}")
    }

    /// What decides the order of any two rows, and no more: each key once, up to one that is unique.
    fn columns(&self) -> Vec<Column> {
        let mut columns: Vec<Column> = Vec::new();
        for order in &self.sort {
            let name = order.key.as_str();
            if columns.iter().all(|column| column.name != name) {
                columns.push(Column {
                    name,
                    descending: order.descending,
                });
            }
            if order.key == SortKey::Name {
                return columns;
            }
        }
        columns.push(Column {
            name: "id",
            descending: columns.last().is_some_and(|column| column.descending),
        });
        columns
    }
}

fn after(wanted: &mut Wanted, table: &'static str, columns: &[Column], marker: Uuid) {
    let compare = |column: &Column| if column.descending { "<" } else { ">" };
    let names = |of: &str| {
        let names = columns.iter().map(|column| format!("{of}.{}", column.name));
        names.collect::<Vec<_>>().join(", ")
    };
    let Some(first) = columns.first() else { return };
    let marker = wanted.bind(marker.into());
    if columns.iter().all(|column| column.descending == first.descending) {
        // One comparison of rows, which an index over the columns answers.
        let condition = format!(
            "({}) {} (SELECT {} FROM {table} m WHERE m.id = {marker})",
            names(table),
            compare(first),
            names("m")
        );
        return wanted.add(condition);
    }
    let at = |column: &Column| format!("(SELECT m.{} FROM {table} m WHERE m.id = {marker})", column.name);
    // What the first key alone says, so that an index over it finds where to begin.
    let mut condition = format!("{table}.{} {}= {} AND (", first.name, compare(first), at(first));
    for (i, column) in columns.iter().enumerate() {
        let same = columns.iter().take(i);
        let same = same.map(|same| format!("{table}.{} = {} AND ", same.name, at(same)));
        let or = if i == 0 { "" } else { " OR " };
        condition.push_str(&format!(
            "{or}({}{table}.{} {} {})",
            same.collect::<String>(),
            column.name,
            compare(column),
            at(column)
        ));
    }
    condition.push(')');
    wanted.add(condition);
}
