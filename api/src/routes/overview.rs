//! `GET /overview`: all hosts at once, for pages and walls.

use actix_web::HttpResponse;

use crate::ApiError;
use crate::call::Call;
use crate::error::ErrorList;
use crate::paging::MAX_LIMIT;
use crate::role::Role;
use crate::view::overview::OverviewView;

/// Shows all hosts by segment, briefly; at most 100,000 hosts.
#[utoipa::path(get, path = "/overview", operation_id = "show_overview", tag = "fencing",
    responses((status = 200, body = OverviewView), (status = 401, body = ErrorList)))]
pub(crate) async fn show(call: Call) -> Result<HttpResponse, ApiError> {
    call.require(Role::Reader)?;
    let db = call.engine.db();
    // Read first: what happens meanwhile is told by the stream once more, and nothing is left out.
    let sequence = ringfence_db::last_sequence(&mut db.reader()).await?;
    let segments = ringfence_db::list_segments(&mut db.reader(), MAX_LIMIT).await?;
    let suspended = call.engine.suspended(MAX_LIMIT).await?;
    let hosts = ringfence_db::brief_hosts(&mut db.reader()).await?;
    let now = call.front.clock.now();
    Ok(HttpResponse::Ok().json(OverviewView::new(sequence, now, segments, hosts, &suspended)))
}
