//! Pages of a listing.

/// What a listing is sorted by; ties are broken by id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortKey {
    /// By name.
    #[default]
    Name,
    /// By the time of creation.
    CreatedAt,
    /// By the time of the last change.
    UpdatedAt,
}

/// Which page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// The most rows.
    pub limit: u32,
    /// The id of the last row of the page before. After one that has been removed comes nothing: whoever asks has to see that it
    /// is still there.
    pub marker: Option<uuid::Uuid>,
    /// What it is sorted by.
    pub sort: SortKey,
    /// Whether the last comes first.
    pub descending: bool,
}

impl SortKey {
    pub(crate) fn column(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::CreatedAt => "created_at",
            Self::UpdatedAt => "updated_at",
        }
    }
}

impl Page {
    /// The end of a query over `table`: what comes after the marker (bound as `$n`), in order.
    pub(crate) fn tail(&self, table: &'static str, marker: u32, limit: u32) -> String {
        let column = self.sort.column();
        let (order, compare) = if self.descending {
            ("DESC", "<")
        } else {
            ("ASC", ">")
        };
        let after = if self.marker.is_some() {
            format!(
                " AND ({table}.{column}, {table}.id) {compare} (SELECT m.{column}, m.id FROM {table} m WHERE m.id = ${marker})"
            )
        } else {
            // The argument is bound in either case; a comparison that is always true keeps its type known.
            format!(" AND (CAST(${marker} AS text) IS NULL OR {table}.id IS NOT NULL)")
        };
        format!("{after} ORDER BY {table}.{column} {order}, {table}.id {order} LIMIT ${limit}")
    }
}
