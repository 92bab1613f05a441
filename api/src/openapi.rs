//! The OpenAPI document, made from the handlers.

use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};

use crate::error::{ErrorBody, ErrorList};
use crate::routes;

#[derive(OpenApi)]
#[openapi(
    info(title = "Ringfence", description = "Host fencing: makes certain that a silent host can neither run nor write, \
        and opens the gates that schedulers and evacuations wait behind.", license(name = "Apache-2.0", identifier = "Apache-2.0")),
    paths(
        routes::root::versions, routes::health::healthcheck, routes::metrics::metrics,
        routes::hosts::list, routes::hosts::create, routes::hosts::show, routes::hosts::update, routes::hosts::remove,
        routes::failure_state::report, routes::fence::fence, routes::confirm::confirm,
        routes::given_back::confirm, routes::rejoin::rejoin,
        routes::gates::gates,
        routes::operations::list, routes::operations::show, routes::operations::cancel, routes::operations::retry,
        routes::events::list, routes::stream::stream, routes::audit::list,
        routes::methods::list, routes::methods::create, routes::methods::show, routes::methods::replace,
        routes::methods::remove, routes::methods::check,
        routes::plans::list, routes::plans::create, routes::plans::show, routes::plans::replace, routes::plans::remove,
        routes::segments::list, routes::segments::create, routes::segments::show, routes::segments::replace,
        routes::segments::remove,
        routes::subscriptions::list, routes::subscriptions::create, routes::subscriptions::show,
        routes::subscriptions::replace, routes::subscriptions::remove, routes::subscriptions::rotate_secret,
        routes::deliveries::test, routes::deliveries::list, routes::deliveries::show, routes::deliveries::redeliver,
    ),
    components(schemas(ErrorBody, ErrorList)),
    security(("token" = []), ("bearer" = [])),
    modifiers(&Tokens),
)]
struct Document;

struct Tokens;

impl Modify for Tokens {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let Some(components) = openapi.components.as_mut() else {
            return;
        };
        let header = SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new("X-Auth-Token")));
        components.add_security_scheme("token", header);
        let bearer = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build());
        components.add_security_scheme("bearer", bearer);
    }
}

/// The document, as it is served and as it is committed.
#[must_use]
pub fn openapi_json() -> String {
    let mut text = Document::openapi().to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
}

/// The page gets the address of the document, not the document.
pub(crate) fn without_documentation() -> serde_json::Value {
    serde_json::Value::Null
}
