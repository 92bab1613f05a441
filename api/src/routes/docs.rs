//! `GET /openapi.json` and `GET /docs`: what the API is, out of the binary.

use actix_web::HttpResponse;
use actix_web::http::header::ContentType;
use utoipa_swagger_ui::SwaggerUi;

use crate::openapi::{openapi_json, without_documentation};

pub(crate) async fn openapi() -> HttpResponse {
    HttpResponse::Ok()
        .insert_header(ContentType::json())
        .body(openapi_json())
}

/// The page, which reads `/openapi.json`.
pub(crate) fn swagger() -> SwaggerUi {
    SwaggerUi::new("/docs/{_:.*}").external_url_unchecked("/openapi.json", without_documentation())
}
