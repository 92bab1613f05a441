//! Pages of a listing: `limit`, `marker`, `sort`, and the link to the next one.

use std::fmt::Display;

use ringfence_db::{Page, SortKey};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::ApiError;

/// Rows of a page that names no limit.
const DEFAULT_LIMIT: u32 = 100;
/// The most rows of a page.
pub(crate) const MAX_LIMIT: u32 = 1000;

/// Which page.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageQuery {
    /// The most rows, 1 to 1000; 100 if absent.
    pub limit: Option<String>,
    /// The id of the last row of the page before.
    pub marker: Option<String>,
    /// `name`, `created_at` or `updated_at`, with `:asc` or `:desc`.
    pub sort: Option<String>,
}

/// A link.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Link {
    /// What it leads to.
    #[schema(example = "next")]
    pub rel: String,
    /// Where.
    pub href: String,
}

impl PageQuery {
    /// Checks what was asked for.
    pub fn page(&self, default: SortKey) -> Result<Page, ApiError> {
        let limit = limit(self.limit.as_deref())?;
        let marker = match &self.marker {
            None => None,
            Some(text) => Some(Uuid::parse_str(text).map_err(|_| {
                ApiError::bad(
                    "marker",
                    format!("is {text:?}; the id of the last row of the page before is allowed"),
                )
            })?),
        };
        let (sort, descending) = self.sort(default)?;
        Ok(Page {
            limit,
            marker,
            sort,
            descending,
        })
    }

    fn sort(&self, default: SortKey) -> Result<(SortKey, bool), ApiError> {
        let Some(text) = &self.sort else {
            return Ok((default, false));
        };
        let bad = || {
            ApiError::bad(
                "sort",
                format!("is {text:?}; name, created_at or updated_at, with :asc or :desc, is allowed"),
            )
        };
        let (key, direction) = text.split_once(':').unwrap_or((text, "asc"));
        let key = match key {
            "name" => SortKey::Name,
            "created_at" => SortKey::CreatedAt,
            "updated_at" => SortKey::UpdatedAt,
            _ => return Err(bad()),
        };
        match direction {
            "asc" => Ok((key, false)),
            "desc" => Ok((key, true)),
            _ => Err(bad()),
        }
    }
}

/// The most rows that a page may have.
pub(crate) fn limit(text: Option<&str>) -> Result<u32, ApiError> {
    let Some(text) = text else {
        return Ok(DEFAULT_LIMIT);
    };
    text.parse()
        .ok()
        .filter(|n| (1..=MAX_LIMIT).contains(n))
        .ok_or_else(|| ApiError::bad("limit", format!("is {text:?}; 1 to {MAX_LIMIT} is allowed")))
}

/// The link to the next page, if this one is full.
pub(crate) fn next_link(
    path: &str,
    query: &str,
    limit: u32,
    rows: usize,
    last: Option<impl Display>,
) -> Vec<Link> {
    let Some(last) = last.filter(|_| rows >= limit as usize) else {
        return Vec::new();
    };
    let kept = query
        .split('&')
        .filter(|pair| !pair.is_empty() && !pair.starts_with("marker="));
    let mut query: Vec<String> = kept.map(ToOwned::to_owned).collect();
    query.push(format!("marker={last}"));
    vec![Link {
        rel: "next".to_owned(),
        href: format!("{path}?{}", query.join("&")),
    }]
}
