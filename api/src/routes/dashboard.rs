//! `/dashboard`: the operator's page, out of the binary.

use actix_web::http::header::{CacheControl, CacheDirective, ETag, EntityTag, IfNoneMatch};
use actix_web::{HttpRequest, HttpResponse, web};
use ringfence_dashboard::File;
use sha2::{Digest, Sha256};

use crate::ApiError;

/// Nothing but files of this service is loaded, run or asked, and no page shows this one inside itself.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// What names of the page's files end with; a host's name may have dots, too.
const ENDINGS: [&str; 4] = [".js", ".css", ".svg", ".html"];

/// A file of the page. Every other path below it is one of its views, which it finds by itself.
pub(crate) async fn page(
    request: HttpRequest,
    seen: web::Header<IfNoneMatch>,
) -> Result<HttpResponse, ApiError> {
    let path = request.match_info().query("file");
    let is_file = ENDINGS.iter().any(|ending| path.ends_with(ending));
    let found = ringfence_dashboard::file(if is_file { path } else { "" });
    let file = found.ok_or_else(|| ApiError::NoSuchPath(request.path().to_owned()))?;
    Ok(answer(file, &seen.into_inner()))
}

fn answer(file: File, seen: &IfNoneMatch) -> HttpResponse {
    let tag = EntityTag::new_strong(hex::encode(Sha256::digest(file.bytes)));
    let is_known = match seen {
        IfNoneMatch::Any => true,
        IfNoneMatch::Items(tags) => tags.iter().any(|seen| seen.weak_eq(&tag)),
    };
    let mut answer = if is_known {
        HttpResponse::NotModified()
    } else {
        HttpResponse::Ok()
    };
    answer
        .insert_header(ETag(tag))
        .insert_header(CacheControl(vec![CacheDirective::NoCache]))
        .insert_header(("Content-Security-Policy", POLICY))
        .insert_header(("X-Content-Type-Options", "nosniff"))
        .insert_header(("X-Frame-Options", "DENY"))
        .insert_header(("Referrer-Policy", "no-referrer"))
        .insert_header(("Cross-Origin-Opener-Policy", "same-origin"))
        .content_type(file.content_type);
    if is_known {
        answer.finish()
    } else {
        answer.body(file.bytes)
    }
}
