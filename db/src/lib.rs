//! All SQL and all migrations: PostgreSQL, and SQLite for standalone.
//!
//! One text for a statement wherever both databases understand it; what differs is in [`value`](self) and `dialect`. Only `engine`
//! writes; `api` and `scheduler-hook` read.

mod announcements;
mod audit;
mod begin;
mod changes;
mod columns;
mod copy;
mod database;
mod deliveries;
mod devices;
mod dialect;
mod engines;
mod error;
mod evacuating;
mod event_sinks;
mod events;
mod host_list;
mod host_parameters;
mod host_write;
mod hosts;
mod idempotency;
mod leases;
mod listing;
mod method_checks;
mod methods;
mod moved;
mod neighbourhood;
mod open;
mod operations;
mod outbox;
mod overview;
mod page;
mod past_operations;
mod permits;
mod placing;
mod plans;
mod postgres;
mod problems;
mod retention;
mod row;
mod run;
mod schema;
mod segments;
mod sessions;
mod shared_devices;
mod sights;
mod sqlite;
mod statement;
mod subscriptions;
mod survey;
mod suspensions;
mod table_rows;
mod value;
mod wanted;

pub use announcements::Announcements;
pub use audit::{
    AuditEntry, AuditFilter, AuditRow, append_audit, append_audit_lines, audit_page, audit_row, removed_host,
};
pub use changes::{Begun, Changes, Ended, Ending, HostTransaction, Locking, NotHad};
pub use copy::{check_sqlite, copy_sqlite, schema_version};
pub use database::{Database, Reader, Tx};
pub use deliveries::{
    DeliveryFilter, DeliveryKind, DeliveryRow, DeliveryStatus, deliveries_after, deliveries_page, delivery,
    restart_deliveries, save_deliveries, take_deliveries,
};
pub use devices::DeviceLease;
pub use engines::{EngineRow, forget_engines, list_engines, save_engine, task_queues};
pub use error::{ClientError, DbError};
pub use evacuating::evacuations;
pub use event_sinks::{
    SilentSink, forget_event_sink, free_event_sink, has_event_sink, hold_event_sink, insert_event_sink,
    keep_event_sink, list_event_sinks, silent_event_sinks,
};
pub use events::{
    EventHost, EventRow, EventTest, NUMBERED_AT_ONCE, NewEvent, append_events, event_numbered, events_after,
    events_page, last_sequence, number_events,
};
pub use host_list::{HOSTS, HostRow, LiveOperation, count_hosts, host_row, hosts_page};
pub use host_parameters::{given_for, hosts_with_like_parameters};
pub use host_write::{HostWrite, update_hosts};
pub use hosts::{
    CloudHost, ListedHost, SeenHost, cloud_has_hosts, delete_host, due_hosts, has_several_clouds, host_ids,
    host_names, hosts_ahead, hosts_called, hosts_of_cloud, insert_host, insert_hosts, kept_states, left_at,
    listed_hosts, load_state, load_state_in_cloud, lock_host, next_due, see_host, segment_has_hosts,
    set_adopted, set_left, stranded_hosts, wake_hosts, wake_live,
};
pub use idempotency::{
    KeyName, KeyRow, NewReceipt, delete_old_keys, forget_old_key, insert_key, key_row, put_answer,
    put_receipt, release_key, take_key_over,
};
pub use leases::{lease_holder, note_write, take_lease, take_turn};
pub use listing::{Asked, Filter, Filters, Listing, Values};
pub use method_checks::{
    CheckSummary, CheckTarget, MethodCheckRow, add_check_targets, check_summaries, check_targets,
    failing_checks, last_check_of_cloud, last_checks_of_host, method_checks_page, postpone_check,
    remove_check_targets, save_check, take_checks,
};
pub use methods::{delete_method, insert_method, list_methods, method, methods_by_name, update_method};
pub use moved::{forget_deliveries, give_up_deliveries, lock_subscription};
pub use neighbourhood::{
    group_counts, hosts_gone_beside, label_values, neighbourhood, segment_not_quiet_since,
};
pub use operations::{OPERATIONS, STATUS, count_running_operations, operation, operations_page};
pub use outbox::{
    OutboxRow, append_outbox, count_outbox, delete_outbox, postpone_outbox, prolong_outbox, take_outbox,
};
pub use overview::{BriefHost, MOST_HOSTS, brief_hosts};
pub use page::{Order, Page, SortKey};
pub use past_operations::{last_evacuation_of_host, newest_operations, newest_operations_of_host};
pub use permits::NewPermit;
pub use placing::{PlacingRow, hosts_to_place};
pub use plans::{configuration_revision, delete_plan, insert_plan, list_plans, plan, plan_for, update_plan};
pub use problems::{
    ProblemCounts, ProblemTest, TroubledHost, events_kept_since, problems_of_all, problems_of_host,
    troubled_hosts,
};
pub use retention::{Kept, OldRow, events_removed_up_to, old_rows, remove_rows};
pub use run::Run;
pub use schema::{SchemaState, migrate, newest_schema, schema_state};
pub use segments::{delete_segment, insert_segment, list_segments, segment, update_segment};
pub use sessions::{
    SessionRow, delete_ended_sessions, delete_oldest_sessions, delete_session, insert_session, session_of,
    sessions_of,
};
pub use shared_devices::{
    SharedDevice, add_shared_devices, remove_shared_devices, shared_devices, shared_devices_of,
};
pub use sights::count_sources;
pub use subscriptions::{
    Progress, count_subscriptions, delete_subscription, free_subscription, free_subscriptions,
    hold_subscription, insert_subscription, keep_subscription, list_subscriptions, subscription,
    subscription_progress, update_subscription,
};
pub use survey::{SegmentSurvey, SubscriptionState, Survey, survey};
pub use suspensions::{Suspended, SuspendedOne, set_segment_suspension, set_suspension_of_all, suspensions};
pub use wanted::Test;
