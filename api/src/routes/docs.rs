//! `GET /openapi.json` and `GET /docs`: what the API is, out of the binary.

use std::sync::Arc;

use actix_web::http::header::{ContentEncoding, ContentType};
use actix_web::{HttpRequest, HttpResponse, web};
use utoipa_swagger_ui::Config;

use crate::ApiError;
use crate::openapi::openapi_json;

pub(crate) async fn openapi() -> HttpResponse {
    HttpResponse::Ok()
        .insert_header(ContentType::json())
        .body(openapi_json())
}

/// A file of the page, which reads `/openapi.json`.
pub(crate) async fn page(request: HttpRequest, file: web::Path<String>) -> Result<HttpResponse, ApiError> {
    let config = Arc::new(Config::from("/openapi.json"));
    let found = utoipa_swagger_ui::serve(&file, config).unwrap_or_else(|error| {
        tracing::error!(%error, "a file of the page at /docs could not be made");
        None
    });
    let found = found.ok_or_else(|| ApiError::NoSuchPath(request.path().to_owned()))?;
    let mut answer = HttpResponse::Ok();
    if found.gzpipped {
        answer.insert_header(ContentEncoding::Gzip);
    }
    Ok(answer
        .content_type(found.content_type)
        .body(found.bytes.into_owned()))
}
