//! Pages of a listing: `limit`, `marker`, `sort`, and the link to the next one.

use std::fmt::Display;

use actix_web::HttpRequest;
use ringfence_db::{Order, Page, SortKey};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::ApiError;
use crate::filter::Parameters;

/// Rows of a page that names no limit.
const DEFAULT_LIMIT: u32 = 100;
/// The most rows of a page.
pub(crate) const MAX_LIMIT: u32 = 1000;

/// A link.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Link {
    /// What it leads to.
    #[schema(example = "next")]
    pub rel: String,
    /// Where.
    pub href: String,
}

/// Which page was asked for: `limit`, `marker` and `sort`. The sort keys are those in `allowed`; `by_default` is the order if none is given.
pub(crate) fn page(
    parameters: &Parameters,
    allowed: &[SortKey],
    by_default: Order,
) -> Result<Page, ApiError> {
    let marker = parameters.once("marker")?.map(|text| {
        Uuid::parse_str(text).map_err(|_| {
            ApiError::bad(
                "marker",
                format!("is {text:?}; the id of the last row of the page before is allowed"),
            )
        })
    });
    Ok(Page {
        limit: limit(parameters.once("limit")?)?,
        marker: marker.transpose()?,
        sort: sort(parameters.once("sort")?, allowed, by_default)?,
    })
}

fn sort(text: Option<&str>, allowed: &[SortKey], by_default: Order) -> Result<Vec<Order>, ApiError> {
    let Some(text) = text else {
        return Ok(vec![by_default]);
    };
    let bad = || {
        let names: Vec<_> = allowed.iter().map(|key| key.as_str()).collect();
        ApiError::bad(
            "sort",
            format!(
                "is {text:?}; one or more of {} with commas between them, each once, with :asc or :desc or nothing, are allowed",
                names.join(", ")
            ),
        )
    };
    let mut orders: Vec<Order> = Vec::new();
    for part in text.split(',') {
        let (name, direction) = part.split_once(':').unwrap_or((part, "asc"));
        let key = allowed.iter().find(|key| key.as_str() == name).ok_or_else(bad)?;
        if orders.iter().any(|order| order.key == *key) {
            return Err(bad());
        }
        orders.push(match direction {
            "asc" => key.ascending(),
            "desc" => key.descending(),
            _ => return Err(bad()),
        });
    }
    Ok(orders)
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
pub(crate) fn next_link<T, I: Display>(
    request: &HttpRequest,
    limit: u32,
    rows: &[T],
    id: impl FnOnce(&T) -> I,
) -> Vec<Link> {
    let Some(last) = rows.last().filter(|_| rows.len() >= limit as usize) else {
        return Vec::new();
    };
    let kept = request.query_string().split('&');
    let kept = kept.filter(|pair| !pair.is_empty() && !pair.starts_with("marker="));
    let mut query: Vec<String> = kept.map(ToOwned::to_owned).collect();
    query.push(format!("marker={}", id(last)));
    vec![Link {
        rel: "next".to_owned(),
        href: format!("{}?{}", request.path(), query.join("&")),
    }]
}
