//! `GET /events/stream`: server-sent events.

use std::time::Duration;

use actix_web::{HttpResponse, web};
use futures_util::{StreamExt, stream};
use ringfence_engine::{EngineError, Listener};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use utoipa::IntoParams;

use crate::ApiError;
use crate::call::Call;
use crate::error::ErrorList;
use crate::role::Role;
use crate::routes::events::{host_id, refuse_gap, sequence};
use crate::streams::OpenStream;
use crate::view::event::EventView;
use crate::watch::Watch;

/// A comment is sent when nothing else was for so long, so that a dead connection is noticed by either side.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long to wait before the events are read again when they could not be.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Where to begin.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct StreamQuery {
    /// Only with a number above this one. The header Last-Event-ID goes before it; without either the stream begins now.
    #[param(value_type = Option<u64>, minimum = 0, maximum = 9_223_372_036_854_775_807_u64)]
    after: Option<String>,
    /// Only of the host with this id or name.
    host: Option<String>,
}

/// Streams events as they happen.
///
/// The stream ends when the token does not work any more, within half a minute of that.
///
/// Where events after the number to begin with have been removed, the answer is 410; should that happen to a stream that is far
/// behind, it ends with an event `events.gone`.
#[utoipa::path(get, path = "/events/stream", operation_id = "stream_events", tag = "events",
    params(StreamQuery, ("Last-Event-ID" = Option<String>, Header, description = "where the stream goes on")),
    responses((status = 200, description = "Events, each with its number as id", content_type = "text/event-stream", body = String),
        (status = 400, body = ErrorList), (status = 401, body = ErrorList), (status = 404, body = ErrorList),
        (status = 410, body = ErrorList)))]
pub(crate) async fn stream(call: Call, query: web::Query<StreamQuery>) -> Result<HttpResponse, ApiError> {
    let actor = call.require(Role::Reader)?.actor;
    let last = call
        .request
        .headers()
        .get("last-event-id")
        .map(|value| value.to_str().unwrap_or_default());
    let after = match (last, query.after.as_deref()) {
        (Some(text), _) => sequence("Last-Event-ID", text)?,
        (None, Some(text)) => sequence("after", text)?,
        (None, None) => ringfence_db::last_sequence(&mut call.engine.db().reader()).await?,
    };
    let open = call.streams.open(actor)?;
    let removed = ringfence_db::events_removed_up_to(&mut call.engine.db().reader()).await?;
    refuse_gap(after, removed)?;
    let host_id = host_id(&call, query.host.as_deref()).await?;
    let listener = Stream {
        listener: call.engine.listen(after, host_id),
        stop: call.stop.clone(),
        watch: call.caller.watch(&call.state),
        is_over: false,
        _open: open,
    };
    // A block without data sets the listener's last id: should the stream break before the first event, it goes on from here.
    let first = stream::iter([Ok(web::Bytes::from(format!("id: {after}\n\n")))]);
    let chunks = stream::unfold(listener, |mut listener| async move {
        let chunk = listener.next().await?;
        Some((Ok::<_, ApiError>(web::Bytes::from(chunk)), listener))
    });
    Ok(HttpResponse::Ok()
        .content_type("text/event-stream")
        .insert_header(("Cache-Control", "no-store"))
        .insert_header(("X-Accel-Buffering", "no"))
        .streaming(first.chain(chunks)))
}

struct Stream {
    listener: Listener,
    stop: CancellationToken,
    watch: Watch,
    is_over: bool,
    _open: OpenStream,
}

impl Stream {
    /// The next piece of text; `None` when the service stops, the token does not work any more, or nothing can follow.
    async fn next(&mut self) -> Option<String> {
        if self.is_over {
            return None;
        }
        tokio::select! {
            () = self.stop.cancelled() => None,
            () = self.watch.ended() => None,
            () = tokio::time::sleep(HEARTBEAT) => Some(": still here\n\n".to_owned()),
            item = self.listener.next() => match item {
                Ok(item) => {
                    let event = EventView::from(&*item);
                    let data = serde_json::to_string(&event).unwrap_or_default();
                    Some(format!("id: {}\nevent: {}\ndata: {data}\n\n", event.sequence, event.kind))
                }
                Err(EngineError::EventsGone { after, up_to }) => {
                    self.is_over = true;
                    let data = serde_json::json!({ "after": after, "removed_up_to": up_to });
                    Some(format!("event: events.gone\ndata: {data}\n\n"))
                }
                Err(error) => {
                    tracing::warn!(%error, "a stream of events could not be read; it goes on when the database is back");
                    tokio::time::sleep(AGAIN_AFTER).await;
                    Some(": the database is away\n\n".to_owned())
                }
            },
        }
    }
}
