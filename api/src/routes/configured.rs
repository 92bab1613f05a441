//! What methods, plans and segments have in common: admins configure them, and a change is made only to what its author has read.

use std::collections::BTreeMap;

use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use ringfence_core::{Method, Plan, Segment};
use serde::Serialize;
use utoipa::IntoResponses;
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Response, ResponseBuilder};
use uuid::Uuid;

use crate::ApiError;
use crate::conditional::{is_known, tag};
use crate::view::method::MethodView;
use crate::view::plan::PlanView;
use crate::view::segment::SegmentView;

/// Something that admins configure.
pub(crate) trait Configured: Sized {
    /// What it is called, for errors.
    const KIND: &'static str;
    /// Where it is listed.
    const PATH: &'static str;
    /// How it is shown.
    type View: From<Self> + Serialize;

    fn id(&self) -> Uuid;
    fn revision(&self) -> u64;

    /// As it is shown to the one who has just configured it.
    fn warned(self, warnings: Vec<String>) -> Self::View;
}

impl Configured for Method {
    const KIND: &'static str = "method";
    const PATH: &'static str = "/methods";
    type View = MethodView;

    fn id(&self) -> Uuid {
        self.id.0
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    fn warned(self, warnings: Vec<String>) -> MethodView {
        MethodView {
            warnings,
            ..self.into()
        }
    }
}

impl Configured for Plan {
    const KIND: &'static str = "plan";
    const PATH: &'static str = "/plans";
    type View = PlanView;

    fn id(&self) -> Uuid {
        self.id.0
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    fn warned(self, warnings: Vec<String>) -> PlanView {
        PlanView {
            warnings,
            ..self.into()
        }
    }
}

impl Configured for Segment {
    const KIND: &'static str = "segment";
    const PATH: &'static str = "/segments";
    type View = SegmentView;

    fn id(&self) -> Uuid {
        self.id.0
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    /// Nothing about a segment keeps a host from being fenced.
    fn warned(self, _: Vec<String>) -> SegmentView {
        self.into()
    }
}

/// 201, with the address of what was made.
pub(crate) fn created<T: Configured>(thing: T, warnings: Vec<String>) -> HttpResponse {
    let mut created = HttpResponse::Created();
    created.insert_header(("Location", format!("{}/{}", T::PATH, thing.id())));
    tagged(created, thing, warnings)
}

/// 200, with what was found under `id`, or 304 if the caller has it already; 404 if nothing was.
pub(crate) fn found<T: Configured>(
    thing: Option<T>,
    id: &str,
    request: &HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let thing = thing.ok_or_else(|| ApiError::not_found(T::KIND, id))?;
    if is_known(request, thing.revision()) {
        return Ok(tag(&mut HttpResponse::NotModified(), thing.revision()).finish());
    }
    Ok(replaced(thing, Vec::new()))
}

/// 200, with what is there now.
pub(crate) fn replaced<T: Configured>(thing: T, warnings: Vec<String>) -> HttpResponse {
    tagged(HttpResponse::Ok(), thing, warnings)
}

fn tagged<T: Configured>(mut answer: HttpResponseBuilder, thing: T, warnings: Vec<String>) -> HttpResponse {
    tag(&mut answer, thing.revision()).json(thing.warned(warnings))
}

/// Why nothing is created: for the description of the API.
pub(crate) struct NotCreated;

/// Why nothing is changed.
pub(crate) struct NotChanged;

/// Why nothing is removed.
pub(crate) struct NotRemoved;

impl IntoResponses for NotCreated {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        errors("ErrorList", &[400, 401, 403, 409, 413, 415])
    }
}

impl IntoResponses for NotChanged {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        errors("ErrorList", &[400, 401, 403, 404, 409, 412, 413, 415])
    }
}

impl IntoResponses for NotRemoved {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        errors("ErrorList", &[401, 403, 404, 409, 412])
    }
}

/// These statuses, each with this body.
pub(super) fn errors(body: &'static str, statuses: &[u16]) -> BTreeMap<String, RefOr<Response>> {
    let list = || {
        ContentBuilder::new()
            .schema(Some(Ref::from_schema_name(body)))
            .build()
    };
    let error = || ResponseBuilder::new().content("application/json", list()).build();
    let answers = statuses.iter();
    answers
        .map(|status| (status.to_string(), RefOr::T(error())))
        .collect()
}
