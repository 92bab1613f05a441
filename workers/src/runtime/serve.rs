//! Taking deliveries from a queue for as long as the worker lives.

use std::sync::Arc;
use std::time::Duration;

use ringfence_bus::{Deliveries, Delivery, Queue};
use tokio::time::sleep;

use super::context::Context;
use super::unless;

/// Between two tries to reach the bus. They only ask for a connection, which has a pause of its own that grows.
const PAUSE: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(2));

/// Hands every delivery of one queue to `handle`, all at once; the bus bounds how many there are.
pub(super) async fn serve<H, F>(context: Arc<Context>, queue: Queue, handle: H)
where
    H: Fn(Arc<Context>, Queue, Delivery) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let mut pause = PAUSE.0;
    loop {
        let Some(consumed) = unless(
            &context.stop,
            context.bus.consume(&queue, context.config.prefetch()),
        )
        .await
        else {
            return;
        };
        match consumed {
            Ok(deliveries) => {
                pause = PAUSE.0;
                take_all(&context, &queue, deliveries, &handle).await;
            }
            Err(error) => tracing::warn!(%queue, %error, "the queue cannot be served; trying again"),
        }
        if unless(&context.stop, sleep(pause)).await.is_none() {
            return;
        }
        pause = (pause * 2).min(PAUSE.1);
    }
}

async fn take_all<H, F>(context: &Arc<Context>, queue: &Queue, mut deliveries: Deliveries, handle: &H)
where
    H: Fn(Arc<Context>, Queue, Delivery) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    while let Some(Some(delivery)) = unless(&context.stop, deliveries.recv()).await {
        let killed = context.killed.clone();
        let work = handle(Arc::clone(context), queue.clone(), delivery);
        context
            .deliveries
            .spawn(async move { unless(&killed, work).await });
    }
}
