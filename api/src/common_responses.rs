//! What holds for every call, added to the description of each: refusals that any of them can answer with, and headers that any
//! of them takes.

use utoipa::Modify;
use utoipa::openapi::path::{HttpMethod, Operation, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};
use utoipa::openapi::{Content, Ref, RefOr, Required, Response, ResponseBuilder};

use crate::idempotency::takes_no_key;

/// Adds it.
pub(crate) struct CommonResponses;

impl Modify for CommonResponses {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        for (path, item) in &mut openapi.paths.paths {
            for (method, operation) in operations(item) {
                describe(path, &method, operation);
            }
        }
    }
}

fn operations(path: &mut PathItem) -> impl Iterator<Item = (HttpMethod, &mut Operation)> {
    let all = [
        (HttpMethod::Get, &mut path.get),
        (HttpMethod::Put, &mut path.put),
        (HttpMethod::Post, &mut path.post),
        (HttpMethod::Delete, &mut path.delete),
        (HttpMethod::Patch, &mut path.patch),
    ];
    all.into_iter()
        .filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}

fn describe(path: &str, method: &HttpMethod, operation: &mut Operation) {
    let knows = |operation: &Operation, status: &str| operation.responses.responses.contains_key(status);
    if path != "/" {
        add(operation, "400", "Something of the request is malformed");
        add(
            operation,
            "406",
            "The version of the API that was asked for is not there",
        );
    }
    if *method == HttpMethod::Post {
        add(operation, "413", "The body is too large");
    }
    if *method == HttpMethod::Post && !takes_no_key(path) {
        add(
            operation,
            "409",
            "The state of things, or the key's earlier use, is against it",
        );
        header(
            operation,
            "Idempotency-Key",
            "Sent again with this key within a day, the request is answered again and not carried out again.",
            Some("^[!-~]{1,255}$"),
        );
    }
    if knows(operation, "412") {
        header(
            operation,
            "If-Match",
            "The ETag of what was read: the change is made only if it is still so.",
            Some(r#"^("[0-9]{1,18}"|[0-9]{1,18}|\*)$"#),
        );
    }
    if knows(operation, "304") {
        header(
            operation,
            "If-None-Match",
            "The ETag of what the caller has: 304 if it is still so.",
            None,
        );
    }
}

fn add(operation: &mut Operation, status: &str, why: &str) {
    let responses = &mut operation.responses.responses;
    responses
        .entry(status.to_owned())
        .or_insert_with(|| RefOr::T(refusal(why)));
}

fn refusal(why: &str) -> Response {
    let body = Content::new(Some(Ref::from_schema_name("ErrorList")));
    ResponseBuilder::new()
        .description(why)
        .content("application/json", body)
        .build()
}

fn header(operation: &mut Operation, name: &str, why: &str, pattern: Option<&str>) {
    let text = ObjectBuilder::new()
        .schema_type(SchemaType::Type(Type::String))
        .pattern(pattern);
    let header = ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(why))
        .schema(Some(Schema::Object(text.build())))
        .build();
    operation
        .parameters
        .get_or_insert_default()
        .push(RefOr::T(header));
}
