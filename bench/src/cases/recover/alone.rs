//! The floor: Nova by itself, with a client that knows that the host is dead and checks nothing.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::Pair;
use super::pair::LOOK_EVERY;
use crate::error::BenchError;

/// The times, in seconds.
pub struct Alone {
    pub total_s: f64,
    /// Of each server, from its request on.
    pub each_s: Vec<f64>,
}

/// Forces the host down, and evacuates its servers, `at_once` at a time.
pub fn recover(pair: &Pair, at_once: usize) -> Result<Alone, BenchError> {
    pair.cut_power()?;
    let begun = Instant::now();
    pair.cloud.force_down(&pair.dying.name, "dead")?;
    let next = AtomicUsize::new(0);
    let client = || {
        let mut taken = vec![];
        while let Some(server) = pair.servers.get(next.fetch_add(1, Ordering::SeqCst)) {
            taken.push(evacuate(pair, server)?);
        }
        Ok(taken)
    };
    let taken: Result<Vec<Vec<f64>>, BenchError> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..at_once).map(|_| scope.spawn(client)).collect();
        let ends = clients.into_iter().map(|client| {
            client
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        ends.collect()
    });
    let each_s = taken?.concat();
    let recovered = pair.until_recovered()?;
    Ok(Alone {
        total_s: (recovered - begun).as_secs_f64(),
        each_s,
    })
}

/// Evacuates one server; returns how long that took.
fn evacuate(pair: &Pair, server: &str) -> Result<f64, BenchError> {
    let begun = Instant::now();
    pair.cloud.evacuate(server, None)?;
    while !has_arrived(pair, server)? {
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(begun.elapsed().as_secs_f64())
}

fn has_arrived(pair: &Pair, id: &str) -> Result<bool, BenchError> {
    let runs = pair.other.with(|compute| compute.runs(id))?;
    if !runs {
        return Ok(false);
    }
    let server = pair.cloud.server(id)?;
    let is_there = server.host.as_deref() == Some(pair.other.name.as_str());
    Ok(is_there && server.status == "ACTIVE" && server.task_state.is_none())
}
