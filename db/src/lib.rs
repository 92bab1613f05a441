//! All SQL and all migrations: PostgreSQL, and SQLite for standalone.
//!
//! One text for a statement wherever both databases understand it; what differs is in [`value`](self) and `dialect`. Only `engine`
//! writes; `api` and `scheduler-hook` read.

mod announcements;
mod audit;
mod compatible;
mod database;
mod deliveries;
mod devices;
mod dialect;
mod error;
mod events;
mod hosts;
mod methods;
mod operations;
mod outbox;
mod outlets;
mod page;
mod plans;
mod row;
mod run;
mod schema;
mod segments;
mod subscriptions;
mod survey;
mod value;

pub use announcements::Announcements;
pub use audit::{
    AuditEntry, AuditFilter, AuditRow, append_audit, append_audit_lines, audit_page, audit_row, removed_host,
};
pub use database::{Database, Reader, Tx};
pub use deliveries::{
    DeliveryFilter, DeliveryKind, DeliveryRow, DeliveryStatus, delete_old_deliveries, deliveries_after,
    deliveries_page, delivery, restart_deliveries, save_deliveries, take_deliveries,
};
pub use devices::{DeviceClaim, claim_devices, release_devices};
pub use error::DbError;
pub use events::{
    EventHost, EventRow, NUMBERED_AT_ONCE, NewEvent, append_events, event_numbered, events_after,
    last_sequence, number_events,
};
pub use hosts::{
    HostFilter, HostRow, HostWrite, count_hosts, delete_host, due_hosts, host_row, hosts_page, insert_host,
    load_state, lock_host, lock_hosts, segment_has_hosts, stranded_hosts, update_hosts,
};
pub use methods::{delete_method, insert_method, list_methods, method, methods_by_name, update_method};
pub use operations::{
    OperationFilter, insert_operations, insert_proofs, operation, operations_page, renew_proof,
    update_operations,
};
pub use outbox::{OutboxRow, append_outbox, delete_outbox, postpone_outbox, take_outbox};
pub use outlets::{free_outlet, has_outlet, hold_outlet, insert_outlet, keep_outlet, list_outlets};
pub use page::{Page, SortKey};
pub use plans::{delete_plan, insert_plan, list_plans, plan, plan_for, update_plan};
pub use run::Run;
pub use schema::{SchemaState, breaking_migration, migrate, schema_state};
pub use segments::{delete_segment, insert_segment, list_segments, segment, update_segment};
pub use subscriptions::{
    Progress, count_subscriptions, delete_subscription, free_subscription, free_subscriptions,
    hold_subscription, insert_subscription, keep_subscription, list_subscriptions, subscription,
    subscription_progress, update_subscription,
};
pub use survey::{Survey, survey};
