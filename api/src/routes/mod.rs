//! The paths, one file each.

pub(crate) mod again;
pub(crate) mod alertmanager;
pub(crate) mod audit;
pub(crate) mod bulk;
pub(crate) mod conditions;
mod configured;
pub(crate) mod confirm;
pub(crate) mod dashboard;
pub(crate) mod deliveries;
pub(crate) mod demo;
pub(crate) mod docs;
pub(crate) mod drivers;
pub(crate) mod evacuate;
pub(crate) mod events;
pub(crate) mod explanation;
pub(crate) mod failure_state;
pub(crate) mod fence;
pub(crate) mod gates;
pub(crate) mod health;
mod host_name;
pub(crate) mod hosts;
pub(crate) mod kubernetes;
pub(crate) mod masakari;
pub(crate) mod method_checks;
pub(crate) mod methods;
pub(crate) mod metrics;
pub(crate) mod nova;
pub(crate) mod operations;
pub(crate) mod overview;
pub(crate) mod plans;
pub(crate) mod problems;
pub(crate) mod reason;
pub(crate) mod rejoin;
pub(crate) mod root;
pub(crate) mod segments;
pub(crate) mod services;
pub(crate) mod sessions;
pub(crate) mod sources;
pub(crate) mod stream;
pub(crate) mod subscriptions;
pub(crate) mod suspensions;

use actix_web::Resource;
use actix_web::web::{self, ServiceConfig};

/// Those of the scheduler hook.
pub(crate) fn configure_hook(service: &mut ServiceConfig) {
    let limit = web::PayloadConfig::new(nova::filter::MAX_BODY_BYTES);
    service
        .service(
            at("/nova/filter")
                .app_data(limit)
                .route(web::post().to(nova::filter::filter)),
        )
        .service(at("/nova/evacuate-check").route(web::post().to(nova::evacuate_check::check)))
        .service(
            at("/kubernetes/filter")
                .app_data(web::PayloadConfig::new(kubernetes::filter::MAX_BODY_BYTES))
                .route(web::post().to(kubernetes::filter::filter)),
        )
        .service(
            at("/kubernetes/admission/{cluster}")
                .app_data(web::PayloadConfig::new(kubernetes::admission::MAX_BODY_BYTES))
                .route(web::post().to(kubernetes::admission::admit)),
        );
}

/// Those of a scheduler hook without the API, beside its own.
pub(crate) fn configure_alone(service: &mut ServiceConfig) {
    service
        .service(at("/healthcheck").route(web::get().to(health::healthcheck)))
        .service(at("/metrics").route(web::get().to(metrics::metrics)));
}

/// That of a process that waits for the lead.
pub(crate) fn configure_waiting(service: &mut ServiceConfig) {
    service.service(at("/healthcheck").route(web::get().to(health::healthcheck_waiting)));
}

fn at(path: &str) -> Resource {
    web::resource(path).default_service(web::to(not_allowed))
}

/// All of the API. A path that is known and a method that is not answer 405, not 404.
pub(crate) fn configure(service: &mut ServiceConfig) {
    service
        .service(at("/").route(web::get().to(root::versions)))
        .service(at("/healthcheck").route(web::get().to(health::healthcheck)))
        .service(at("/metrics").route(web::get().to(metrics::metrics)))
        .service(at("/openapi.json").route(web::get().to(docs::openapi)))
        .service(
            at("/hosts")
                .route(web::get().to(hosts::list))
                .route(web::post().to(hosts::create)),
        )
        .service(
            at("/hosts/{id}")
                .route(web::get().to(hosts::show))
                .route(web::patch().to(hosts::update))
                .route(web::delete().to(hosts::remove)),
        )
        .service(
            at("/bulk/hosts")
                .app_data(web::PayloadConfig::new(bulk::MAX_BODY_BYTES))
                .route(web::post().to(bulk::hosts::create)),
        )
        .service(
            at("/bulk/failure-states")
                .app_data(web::PayloadConfig::new(bulk::MAX_BODY_BYTES))
                .route(web::put().to(bulk::failure_states::report)),
        )
        .service(
            at("/alertmanager")
                .app_data(web::PayloadConfig::new(alertmanager::MAX_BODY_BYTES))
                .route(web::post().to(alertmanager::report)),
        )
        .service(at("/hosts/{id}/failure-state").route(web::put().to(failure_state::report)))
        .service(at("/hosts/{id}/conditions").route(web::put().to(conditions::report)))
        .service(at("/hosts/{id}/sources/{source}").route(web::delete().to(sources::forget)))
        .service(at("/hosts/{id}/fence").route(web::post().to(fence::fence)))
        .service(at("/hosts/{id}/confirm-fenced").route(web::post().to(confirm::confirm)))
        .service(at("/hosts/{id}/confirm-released").route(web::post().to(confirm::confirm_released)))
        .service(at("/hosts/{id}/rejoin").route(web::post().to(rejoin::rejoin)))
        .service(at("/hosts/{id}/evacuate").route(web::post().to(evacuate::evacuate)))
        .service(
            at("/hosts/{id}/suspension")
                .route(web::put().to(suspensions::suspend_host))
                .route(web::delete().to(suspensions::resume_host)),
        )
        .service(at("/hosts/{id}/explanation").route(web::get().to(explanation::explain)))
        .service(at("/hosts/{id}/problems").route(web::get().to(problems::of_host)))
        .service(at("/problems").route(web::get().to(problems::list)))
        .service(at("/hosts/{id}/gates").route(web::get().to(gates::gates)))
        .service(at("/overview").route(web::get().to(overview::show)))
        .service(at("/operations").route(web::get().to(operations::list)))
        .service(at("/operations/{id}").route(web::get().to(operations::show)))
        .service(at("/operations/{id}/moves").route(web::get().to(evacuate::moves)))
        .service(at("/operations/{id}/cancel").route(web::post().to(operations::cancel)))
        .service(at("/operations/{id}/retry").route(web::post().to(operations::retry)))
        .service(at("/audit").route(web::get().to(audit::list)))
        .service(at("/events").route(web::get().to(events::list)))
        .service(at("/events/stream").route(web::get().to(stream::stream)))
        .service(at("/drivers").route(web::get().to(drivers::list)))
        .service(
            at("/methods")
                .route(web::get().to(methods::list))
                .route(web::post().to(methods::create)),
        )
        .service(
            at("/methods/{id}")
                .route(web::get().to(methods::show))
                .route(web::put().to(methods::replace))
                .route(web::delete().to(methods::remove)),
        )
        .service(at("/methods/{id}/checks").route(web::get().to(method_checks::list)))
        .service(at("/methods/{id}/check").route(web::post().to(methods::check)))
        .service(
            at("/plans")
                .route(web::get().to(plans::list))
                .route(web::post().to(plans::create)),
        )
        .service(
            at("/plans/{id}")
                .route(web::get().to(plans::show))
                .route(web::put().to(plans::replace))
                .route(web::delete().to(plans::remove)),
        )
        .service(
            at("/segments")
                .route(web::get().to(segments::list))
                .route(web::post().to(segments::create)),
        )
        .service(at(segments::CHECK).route(web::post().to(segments::check)))
        .service(
            at("/segments/{id}")
                .route(web::get().to(segments::show))
                .route(web::put().to(segments::replace))
                .route(web::delete().to(segments::remove)),
        )
        .service(
            at("/segments/{id}/suspension")
                .route(web::put().to(suspensions::suspend_segment))
                .route(web::delete().to(suspensions::resume_segment)),
        )
        .service(at("/suspensions").route(web::get().to(suspensions::list)))
        .service(
            at("/suspension")
                .route(web::put().to(suspensions::suspend_everything))
                .route(web::delete().to(suspensions::resume_everything)),
        )
        .service(
            at("/subscriptions")
                .route(web::get().to(subscriptions::list))
                .route(web::post().to(subscriptions::create)),
        )
        .service(
            at("/subscriptions/{id}")
                .route(web::get().to(subscriptions::show))
                .route(web::put().to(subscriptions::replace))
                .route(web::delete().to(subscriptions::remove)),
        )
        .service(at("/subscriptions/{id}/rotate-secret").route(web::post().to(subscriptions::rotate_secret)))
        .service(at("/subscriptions/{id}/test").route(web::post().to(deliveries::test)))
        .service(at("/subscriptions/{id}/deliveries").route(web::get().to(deliveries::list)))
        .service(at("/subscriptions/{id}/deliveries/{delivery}").route(web::get().to(deliveries::show)))
        .service(
            at("/subscriptions/{id}/deliveries/{delivery}/redeliver")
                .route(web::post().to(deliveries::redeliver)),
        )
        .service(at("/services").route(web::get().to(services::list)))
        .service(at("/sessions/ways").route(web::get().to(sessions::ways)))
        .service(
            at(sessions::PATH)
                .route(web::get().to(sessions::list))
                .route(web::post().to(sessions::sign_in)),
        )
        .service(
            at("/sessions/{id}")
                .route(web::get().to(sessions::show))
                .route(web::delete().to(sessions::end)),
        )
        .service(at("/v1/notifications").route(web::post().to(masakari::notify)))
        .service(at("/v1/{project_id}/notifications").route(web::post().to(masakari::notify_in_project)))
        .service(at("/clouds/{cloud}/v1/notifications").route(web::post().to(masakari::notify_of_cloud)))
        .service(
            at("/clouds/{cloud}/v1/{project_id}/notifications")
                .route(web::post().to(masakari::notify_of_cloud_in_project)),
        )
        .service(at("/demo").route(web::get().to(demo::show)))
        .service(at("/demo/{host}").route(web::put().to(demo::change)))
        .service(at("/demo/{host}/{resource}/fault").route(web::put().to(demo::break_device)))
        .service(at("/dashboard").route(web::get().to(dashboard::page)))
        .service(at("/dashboard/{file:.*}").route(web::get().to(dashboard::page)))
        .service(web::redirect("/docs", "/docs/"))
        .service(at("/docs/{file:.*}").route(web::get().to(docs::page)));
}

async fn not_allowed(request: actix_web::HttpRequest) -> Result<&'static str, crate::ApiError> {
    Err(method_not_allowed(&request))
}

/// What a path says to a method that it does not take: those that it takes.
pub(crate) fn method_not_allowed(request: &actix_web::HttpRequest) -> crate::ApiError {
    crate::ApiError::MethodNotAllowed {
        method: request.method().to_string(),
        allowed: crate::openapi::methods_at(request.match_pattern().as_deref().unwrap_or_default()),
    }
}
