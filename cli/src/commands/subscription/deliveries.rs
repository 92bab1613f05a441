//! The deliveries of events, tests and redeliveries.

use std::time::Duration;

use clap::Args;
use serde_json::Map;

use super::super::completed::subscriptions;
use super::super::session::Session;
use crate::client::Request;
use crate::client::view::Delivery;
use crate::error::CliError;
use crate::output::{Cell, Details, Screen, Table, time};

/// How often, and with what pause, the command asks for the result of a call.
const ASKS: u32 = 40;
const ASK_EVERY: Duration = Duration::from_millis(500);

/// `ringfence subscription deliveries`
#[derive(Debug, Args)]
pub struct DeliveriesArgs {
    /// Name or id
    #[arg(add = subscriptions())]
    subscription: String,
    /// Only deliveries that are pending, delivered or failed
    #[arg(long)]
    status: Option<String>,
    /// How many to list at most
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
}

pub async fn deliveries(args: DeliveriesArgs, session: &mut Session) -> Result<(), CliError> {
    let path = ["subscriptions", &args.subscription, "deliveries"];
    let request = Request::get(&path)
        .with("limit", Some(args.limit))
        .with("status", args.status);
    let answer = session.client.send(request).await?;
    session.answer(&answer, |screen, page: Page| {
        screen.table(delivery_table(&page.deliveries))
    })
}

#[derive(serde::Deserialize)]
struct Page {
    deliveries: Vec<Delivery>,
}

/// Asks for a call, waits for its result, and fails if the call failed.
pub async fn call(path: &[&str], subscription: &str, session: &mut Session) -> Result<(), CliError> {
    let asked = session
        .client
        .send(Request::post(path, Map::new().into()))
        .await?;
    let id = asked.view::<Delivery>()?.id;
    let path = ["subscriptions", subscription, "deliveries", &id];
    for _ in 0..ASKS {
        let answer = session.client.send(Request::get(&path)).await?;
        let delivery: Delivery = answer.view()?;
        if delivery.status != "pending" {
            session.answer(&answer, show_delivery)?;
            return if delivery.status == "delivered" {
                Ok(())
            } else {
                Err(CliError::Undelivered {
                    subscription: subscription.to_owned(),
                    why: delivery.detail.unwrap_or_default(),
                })
            };
        }
        tokio::time::sleep(ASK_EVERY).await;
    }
    Err(CliError::Undelivered {
        subscription: subscription.to_owned(),
        why: "has not been called yet; check whether an engine runs".to_owned(),
    })
}

fn delivery_table(deliveries: &[Delivery]) -> Table {
    let mut table = Table::new(&[
        "ID", "EVENT", "TYPE", "HOST", "STATUS", "TRIES", "TRIED AT", "NEXT AT", "ANSWER", "DETAIL",
    ]);
    for delivery in deliveries {
        table.row([
            delivery.id.as_str().into(),
            delivery
                .sequence
                .map_or_else(|| delivery.kind.clone(), |number| number.to_string())
                .into(),
            delivery.event_type.as_str().into(),
            Cell::maybe(delivery.host.as_deref()),
            Cell::word(&delivery.status),
            delivery.tries.to_string().into(),
            Cell::maybe(delivery.tried_at.map(time).as_deref()),
            Cell::maybe(delivery.next_at.map(time).as_deref()),
            Cell::maybe(delivery.answer.map(|status| status.to_string()).as_deref()),
            Cell::maybe(delivery.detail.as_deref()),
        ]);
    }
    table
}

fn show_delivery(screen: &mut Screen, delivery: Delivery) -> Result<(), CliError> {
    screen.details(
        Details::default()
            .with("delivery", &delivery.id)
            .with("event", &delivery.event_id)
            .with("type", &delivery.event_type)
            .with_some("host", delivery.host.as_ref())
            .with_word("status", &delivery.status, "")
            .with_some("answer", delivery.answer.map(|status| status.to_string()))
            .with_some("detail", delivery.detail.as_ref())
            .with_some("took", delivery.took_ms.map(|ms| format!("{ms} ms"))),
    )
}
