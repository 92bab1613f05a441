//! The OpenAPI document, made from the handlers.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Content, Ref, RefOr, Response, ResponseBuilder};
use utoipa::{Modify, OpenApi};

use crate::common_responses::CommonResponses;
use crate::error::{ErrorBody, ErrorList};
use crate::routes;
use crate::routes::masakari::FaultBody;

#[derive(OpenApi)]
#[openapi(
    info(title = "Ringfence", description = "Host fencing: makes certain that a silent host can neither run nor write, \
        and opens the gates that schedulers and evacuations wait behind.", license(name = "Apache-2.0", identifier = "Apache-2.0")),
    paths(
        routes::root::versions, routes::health::healthcheck, routes::metrics::metrics,
        routes::hosts::list, routes::hosts::create, routes::hosts::show, routes::hosts::update, routes::hosts::remove,
        routes::bulk::hosts::create, routes::bulk::failure_states::report,
        routes::masakari::notify, routes::masakari::notify_in_project,
        routes::masakari::notify_of_cloud, routes::masakari::notify_of_cloud_in_project,
        routes::failure_state::report, routes::conditions::report, routes::alertmanager::report, routes::sources::forget, routes::fence::fence, routes::confirm::confirm,
        routes::confirm::confirm_released, routes::rejoin::rejoin,
        routes::evacuate::evacuate, routes::evacuate::moves,
        routes::gates::gates, routes::explanation::explain, routes::problems::of_host, routes::problems::list, routes::nova::filter::filter, routes::nova::evacuate_check::check, routes::kubernetes::filter::filter, routes::kubernetes::admission::admit,
        routes::operations::list, routes::operations::show, routes::operations::cancel, routes::operations::retry,
        routes::overview::show, routes::services::list, routes::events::list, routes::stream::stream, routes::audit::list,
        routes::drivers::list, routes::methods::list, routes::methods::create, routes::methods::show, routes::methods::replace,
        routes::methods::remove, routes::methods::check, routes::method_checks::list,
        routes::plans::list, routes::plans::create, routes::plans::show, routes::plans::replace, routes::plans::remove,
        routes::segments::list, routes::segments::create, routes::segments::show, routes::segments::replace,
        routes::segments::remove, routes::segments::check,
        routes::suspensions::list, routes::suspensions::suspend_host, routes::suspensions::resume_host,
        routes::suspensions::suspend_segment, routes::suspensions::resume_segment,
        routes::suspensions::suspend_everything, routes::suspensions::resume_everything,
        routes::subscriptions::list, routes::subscriptions::create, routes::subscriptions::show,
        routes::subscriptions::replace, routes::subscriptions::remove, routes::subscriptions::rotate_secret,
        routes::sessions::ways, routes::sessions::sign_in, routes::sessions::list, routes::sessions::show, routes::sessions::end,
        routes::deliveries::test, routes::deliveries::list, routes::deliveries::show, routes::deliveries::redeliver,
    ),
    components(schemas(ErrorBody, ErrorList, FaultBody)),
    security(("token" = []), ("bearer" = [])),
    modifiers(&Tokens, &CommonResponses),
)]
struct Document;

struct Tokens;

impl Modify for Tokens {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let Some(components) = openapi.components.as_mut() else {
            return;
        };
        let header = ApiKeyValue::with_description(
            "X-Auth-Token",
            "A static token, or one of Keystone v3 where the service is configured so. A service that asks on a user's behalf \
             may add its own as X-Service-Token.",
        );
        components.add_security_scheme("token", SecurityScheme::ApiKey(ApiKey::Header(header)));
        let bearer = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("A token as in X-Auth-Token"));
        components.add_security_scheme("bearer", SecurityScheme::Http(bearer.build()));
        let operations = openapi.paths.paths.values_mut().flat_map(operations);
        for operation in operations.filter(|operation| operation.responses.responses.contains_key("401")) {
            let more = [
                (
                    "429",
                    "More requests than a caller, or than tokens that do not work an address, may send; see Retry-After",
                ),
                ("503", "Something that it takes is away; see Retry-After"),
            ];
            for (status, why) in more {
                let responses = &mut operation.responses.responses;
                responses
                    .entry(status.to_owned())
                    .or_insert_with(|| RefOr::T(error_answer(why)));
            }
        }
    }
}

fn operations(path: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let all = [
        &mut path.get,
        &mut path.put,
        &mut path.post,
        &mut path.delete,
        &mut path.patch,
    ];
    all.into_iter().flatten()
}

fn error_answer(why: &str) -> Response {
    let body = Content::new(Some(Ref::from_schema_name("ErrorList")));
    ResponseBuilder::new()
        .description(why)
        .content("application/json", body)
        .build()
}

/// The document, as it is served and as it is committed.
#[must_use]
pub fn openapi_json() -> String {
    let mut text = Document::openapi().to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
}

/// The methods that the document names for a path, with commas between them; GET where it does not name the path.
pub(crate) fn methods_at(path: &str) -> String {
    static METHODS: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
        let document = serde_json::to_value(Document::openapi()).unwrap_or_default();
        let paths = document["paths"].as_object().cloned().unwrap_or_default();
        let methods = |calls: &serde_json::Value| {
            let names = calls.as_object().into_iter().flat_map(|calls| calls.keys());
            names
                .map(|name| name.to_uppercase())
                .collect::<Vec<_>>()
                .join(", ")
        };
        paths
            .iter()
            .map(|(path, calls)| (path.clone(), methods(calls)))
            .collect()
    });
    METHODS.get(path).cloned().unwrap_or_else(|| "GET".to_owned())
}
