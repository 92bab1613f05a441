//! Entity tags: a change is made only to what its author has read.

use actix_web::HttpRequest;
use actix_web::HttpResponseBuilder;

use crate::ApiError;

/// Puts the entity tag of a revision into an answer.
pub(crate) fn tag(answer: &mut HttpResponseBuilder, revision: u64) -> &mut HttpResponseBuilder {
    answer.insert_header(("ETag", format!("\"{revision}\"")))
}

/// The revision that `If-Match` demands; `*` and nothing demand none.
pub(crate) fn if_match(request: &HttpRequest) -> Result<Option<u64>, ApiError> {
    let Some(value) = request.headers().get("if-match") else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default().trim();
    if text == "*" {
        return Ok(None);
    }
    let bare = text.strip_prefix('"').and_then(|t| t.strip_suffix('"'));
    let revision = bare.unwrap_or(text).parse().ok();
    revision.map(Some).ok_or_else(|| {
        ApiError::bad(
            "If-Match",
            format!("is {text:?}; the ETag of an earlier answer, such as \"3\", or * is allowed"),
        )
    })
}

/// Whether the caller has this revision already (`If-None-Match`), so that it need not be sent.
pub(crate) fn is_known(request: &HttpRequest, revision: u64) -> bool {
    let tags = request.headers().get_all("if-none-match");
    let mut tags = tags
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    tags.any(|tag| {
        let tag = tag.trim();
        let tag = tag.strip_prefix("W/").unwrap_or(tag);
        tag == "*" || tag == format!("\"{revision}\"")
    })
}
