//! `GET /`: the version document, without a token.

use actix_web::{HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;

use crate::paging::Link;
use crate::request::{MAX_VERSION, MIN_VERSION};

/// The versions of the API.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Versions {
    versions: Vec<Version>,
}

/// One version.
#[derive(Debug, Serialize, ToSchema)]
struct Version {
    id: String,
    status: String,
    min_version: String,
    max_version: String,
    links: Vec<Link>,
}

/// The versions of the API.
#[utoipa::path(get, path = "/", operation_id = "show_versions", tag = "service", security(()), responses((status = 200, body = Versions)))]
pub(crate) async fn versions() -> HttpResponse {
    let text = |(major, minor): (u32, u32)| format!("{major}.{minor}");
    let version = Version {
        id: "v1".to_owned(),
        status: "CURRENT".to_owned(),
        min_version: text(MIN_VERSION),
        max_version: text(MAX_VERSION),
        links: vec![Link {
            rel: "self".to_owned(),
            href: "/".to_owned(),
        }],
    };
    HttpResponse::Ok().json(web::Json(Versions {
        versions: vec![version],
    }))
}
