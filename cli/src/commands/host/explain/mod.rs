//! Why a host is in its state, and what a fence would do.

mod methods;

use serde_json::json;

use self::methods::{methods, seconds};

use super::super::session::Session;
use super::show::{applied_line, condition_line, kdump_line, proof_line, source_line};
use crate::client::Request;
use crate::client::explanation::{
    Explanation, FencePreview, LastFence, ResolvedPlan, Ruling, SetProspect, StormBrake, Verdict,
};
use crate::client::view::{Gate, Gates};
use crate::error::CliError;
use crate::output::{Details, Screen, time};

/// `ringfence host explain`
pub async fn explain(host: &str, session: &mut Session) -> Result<(), CliError> {
    let request = Request::get(&["hosts", host, "explanation"]);
    session.show(request, whole).await
}

/// `ringfence host fence --dry-run`
pub async fn dry_run(host: &str, reason: &str, session: &mut Session) -> Result<(), CliError> {
    let body = json!({ "reason": reason, "dry_run": true });
    let answer = session
        .client
        .send(Request::post(&["hosts", host, "fence"], body))
        .await?;
    let told: Explanation = answer.view()?;
    session.answer(&answer, preview)?;
    let verdict = told.fence.verdict;
    if verdict.is_refused() {
        let Verdict { detail, status, .. } = verdict;
        return Err(CliError::WouldBeRefused { detail, status });
    }
    Ok(())
}

fn whole(screen: &mut Screen, told: Explanation) -> Result<(), CliError> {
    screen.details(as_it_is(&told))?;
    screen.line("")?;
    preview(screen, told)
}

fn as_it_is(told: &Explanation) -> Details {
    let host = &told.host;
    let by = told.seen.source.as_ref().map(|source| format!(" by {source}"));
    let why = format!("{}: {}", by.unwrap_or_default(), told.seen.because);
    let mut details =
        Details::default()
            .with("name", &host.name)
            .with_word("seen", &told.seen.failure_state, why);
    for source in &host.sources {
        details = details.with("source", source_line(source));
    }
    for condition in &host.conditions {
        details = details.with("condition", condition_line(condition));
    }
    if let Some(kdump) = &host.kdump {
        details = details.with("crash dump", kdump_line(kdump));
    }
    if let Some(at) = told.left_at {
        let cloud = host.cloud.as_deref().unwrap_or_default();
        details = details.with(
            "left",
            format!("{cloud} has not named the host since {}", time(at)),
        );
    }
    details = details
        .with_word("fencing", &host.fencing_state, "")
        .with("generation", host.generation.to_string());
    for proof in &host.proofs {
        details = details.with("proof", proof_line(proof));
    }
    for applied in &host.applied_fencing {
        details = details.with("applied fencing", applied_line(applied));
    }
    details = gates(details, &told.gates, ["schedule", "evacuate"]);
    if let Some(live) = &host.operation {
        let name = format!(": {} {}", live.kind, live.id);
        details = details.with_word("operation", &live.status, name);
    }
    details.with_some("stands", told.waits_for.as_ref())
}

fn preview(screen: &mut Screen, told: Explanation) -> Result<(), CliError> {
    let fence = &told.fence;
    screen.details(summary(fence))?;
    let Some(plan) = fence.plan.as_ref().filter(|plan| !plan.stages.is_empty()) else {
        return Ok(());
    };
    screen.line("")?;
    screen.table(methods(plan, fence))
}

fn summary(fence: &FencePreview) -> Details {
    let mut details =
        Details::default().with_word("a fence", &fence.verdict.outcome, verdict(&fence.verdict));
    if let Some(superseded) = &fence.supersedes {
        let what = format!("{} {}, which is cancelled", superseded.kind, superseded.id);
        details = details.with("in place of", what);
    }
    for task in &fence.begins_with {
        details = details.with("begins with", format!("{} by {}", task.kind, task.by));
    }
    details = details.with(
        "plan",
        fence.plan.as_ref().map_or_else(|| "none".to_owned(), plan_line),
    );
    for set in &fence.sufficient_sets {
        let can = if set.can_be_completed { "open" } else { "closed" };
        details = details.with_tone("proof by", can, set_line(set));
    }
    if let Some(then) = &fence.gates_once_fenced {
        details = gates(details, then, ["schedule once FENCED", "evacuate once FENCED"]);
    }
    details = details.with("automatic", brake_line(&fence.storm_brake));
    for ruling in &fence.safeguards {
        details = details.with("safeguard", ruling_line(ruling));
    }
    details.with_some("last fence", fence.last_fence.as_ref().map(last_fence))
}

fn verdict(verdict: &Verdict) -> String {
    let code = verdict
        .code
        .as_ref()
        .map(|code| format!(" ({code}, {})", verdict.status));
    let id = verdict.operation_id.as_ref().map(|id| format!(": {id}"));
    format!(
        ": {}{}{}",
        verdict.detail,
        code.unwrap_or_default(),
        id.unwrap_or_default()
    )
}

fn gates(details: Details, gates: &Gates, [schedule, evacuate]: [&'static str; 2]) -> Details {
    let line = |details: Details, name, gate: &Gate| {
        let state = if gate.allowed { "open" } else { "closed" };
        details.with_word(name, state, format!(": {}", gate.reason))
    };
    let details = line(details, schedule, &gates.schedule);
    line(details, evacuate, &gates.evacuate)
}

fn plan_line(plan: &ResolvedPlan) -> String {
    let value = plan.scope.value.as_deref().unwrap_or_default();
    match plan.scope.kind.as_str() {
        "host" => format!("{} (of this host)", plan.name),
        "host_type" => format!("{} (of type {value})", plan.name),
        _ => format!("{} (the default)", plan.name),
    }
}

fn set_line(set: &SetProspect) -> String {
    let kinds: Vec<_> = set.proofs.iter().map(|proof| proof.kind.as_str()).collect();
    let kinds = kinds.join(" and ");
    if set.can_be_completed {
        let due = set.proofs.iter().find_map(|proof| proof.due_at);
        let due = due.map(|at| format!(", by a report of silence after {}", time(at)));
        let person = if set.needs_person {
            ", with a person's word"
        } else {
            ""
        };
        return format!("{kinds}: possible{person}{}", due.unwrap_or_default());
    }
    let whys = set.proofs.iter().flat_map(|proof| &proof.hindrances);
    let whys: Vec<_> = whys.map(String::as_str).collect();
    format!("{kinds}: not possible: {}", whys.join("; "))
}

fn brake_line(brake: &StormBrake) -> String {
    let counts = format!(
        "{} of {} hosts out of service (at most {} %), {} of them within {} s (at most {})",
        brake.out_of_service, brake.hosts, brake.at_most_percent, brake.lately, brake.within_s, brake.at_most
    );
    match (&brake.reason, brake.is_automatic) {
        (Some(reason), true) => format!("held by the storm brake: {reason}"),
        (Some(reason), false) => {
            format!("the segment fences no host by itself; the storm brake would hold: {reason}")
        }
        (None, true) => format!("not held by the storm brake: {counts}"),
        (None, false) => {
            format!("the segment fences no host by itself; the storm brake holds nothing: {counts}")
        }
    }
}

fn ruling_line(ruling: &Ruling) -> String {
    let Ruling {
        safeguard,
        verdict,
        reason,
        release,
    } = ruling;
    let release = release
        .as_ref()
        .map(|release| format!(" (released by: {release})"));
    let says = match verdict.as_str() {
        "allow" => "allows",
        "hold" => "holds",
        _ => "cannot tell, and holds",
    };
    format!("{safeguard} {says}: {reason}{}", release.unwrap_or_default())
}

fn last_fence(last: &LastFence) -> String {
    let over = last
        .took_ms
        .map(|took_ms| format!(", over after {}", seconds(took_ms)));
    format!(
        "{}: proven after {}{} ({})",
        time(last.began_at),
        seconds(last.proven_after_ms),
        over.unwrap_or_default(),
        last.operation_id
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    fn explanation(verdict: Value) -> Explanation {
        let gate = |allowed: bool, reason: &str| json!({ "allowed": allowed, "reason": reason });
        let gates = |reason: &str| json!({ "schedule": gate(false, reason), "evacuate": gate(false, reason), "generation": 1 });
        let method = json!({
            "name": "bmc", "driver": "ipmi", "zone": "default", "parameters": { "address": "192.0.2.7" },
            "hindrances": ["its last check failed"],
            "last_check": { "outcome": "refused", "state": null, "age_s": 12 },
            "last_time": { "outcome": "confirmed", "waited_ms": 1_200, "took_ms": 3_450, "is_of_another_host": true },
        });
        let levels = json!([{ "level": 1, "methods": [method] }]);
        let off = json!({ "kind": "power.off", "levels": levels });
        let on = json!({ "kind": "power.on", "levels": [] });
        let set = |kinds: &[&str], hindrances: &[&str]| {
            let proofs = kinds
                .iter()
                .map(|kind| json!({ "kind": kind, "hindrances": hindrances }));
            json!({
                "proofs": proofs.collect::<Vec<_>>(), "can_be_completed": hindrances.is_empty(),
                "needs_person": kinds.contains(&"operator"),
            })
        };
        from_value(json!({
            "host": {
                "id": "h1", "name": "compute1", "failure_state": "UNREACHABLE", "fencing_state": "UNFENCED", "generation": 1,
                "operation": { "id": "op1", "kind": "fence", "status": "running" },
            },
            "seen": { "failure_state": "UNREACHABLE", "source": "nagios", "because": "a silence" },
            "gates": gates("a fence of the host is running"),
            "waits_for": "waiting: power.off has not been tried yet",
            "fence": {
                "verdict": verdict,
                "plan": { "name": "racks", "scope": { "kind": "host_type", "value": "rack" }, "stages": [
                    { "delay_s": 0, "tasks": [off] }, { "delay_s": 5, "tasks": [on] },
                ] },
                "sufficient_sets": [set(&["power.off"], &["method bmc: its last check failed"]), set(&["operator"], &[])],
                "storm_brake": {
                    "is_automatic": true, "would_hold": false, "reason": null, "hosts": 6, "out_of_service": 1, "lately": 1,
                    "at_most": 5, "within_s": 600, "at_most_percent": 40,
                },
                "safeguards": [{
                    "safeguard": "at_once", "verdict": "hold", "reason": "1 fences are under way", "release": "the end of a fence",
                }],
                "gates_once_fenced": gates("the host is FENCED"),
                "last_fence": {
                    "operation_id": "op0", "began_at": "2026-01-31T12:00:00Z", "proven_after_ms": 1_840, "took_ms": 2_000,
                },
            },
        }))
        .unwrap()
    }

    fn started() -> Value {
        json!({ "outcome": "joined", "status": 202, "detail": "a fence of the host is under way", "operation_id": "op1" })
    }

    #[test]
    fn the_state_of_a_host_is_shown_with_its_reasons() {
        let expected = "\
name        compute1
seen        UNREACHABLE by nagios: a silence
fencing     UNFENCED
generation  1
schedule    closed: a fence of the host is running
evacuate    closed: a fence of the host is running
operation   running: fence op1
stands      waiting: power.off has not been tried yet
";
        assert_eq!(as_it_is(&explanation(started())).render(false), expected);
    }

    #[test]
    fn a_fence_that_is_only_thought_of_is_shown_with_what_could_prove_it() {
        let expected = "\
a fence               joined: a fence of the host is under way: op1
plan                  racks (of type rack)
proof by              power.off: not possible: method bmc: its last check failed
proof by              operator: possible, with a person's word
schedule once FENCED  closed: the host is FENCED
evacuate once FENCED  closed: the host is FENCED
automatic             not held by the storm brake: 1 of 6 hosts out of service (at most 40 %), 1 of them within 600 s (at most 5)
safeguard             at_once holds: 1 fences are under way (released by: the end of a fence)
last fence            2026-01-31 12:00:00Z: proven after 1.8 s, over after 2.0 s (op0)
";
        assert_eq!(summary(&explanation(started()).fence).render(false), expected);
    }

    #[test]
    fn a_refusal_is_shown_with_its_code() {
        let refused = json!({ "outcome": "refused", "status": 409, "code": "fencing.host.up", "detail": "the host is seen UP" });
        let shown = summary(&explanation(refused).fence).render(false);
        let line = "refused: the host is seen UP (fencing.host.up, 409)\n";
        assert!(
            shown
                .lines()
                .next()
                .is_some_and(|first| line.trim_end() == first.trim_start_matches("a fence").trim()),
            "{shown}"
        );
    }

    #[test]
    fn each_method_is_shown_with_its_last_check_and_its_last_time() {
        let told = explanation(started());
        let table = methods(told.fence.plan.as_ref().unwrap(), &told.fence).render(None, false, false);
        let lines: Vec<Vec<&str>> = table
            .lines()
            .map(|line| {
                line.split("  ")
                    .map(str::trim)
                    .filter(|cell| !cell.is_empty())
                    .collect()
            })
            .collect();
        assert_eq!(
            lines[1],
            [
                "1",
                "power.off",
                "1",
                "bmc (ipmi)",
                "address=192.0.2.7",
                "refused, 12 s ago",
                "confirmed in 3.4 s after 1.2 s in the queue, for another host",
                "its last check failed",
            ]
        );
        assert_eq!(
            lines[2][..4],
            ["2, 5 s later", "power.on", "-", "the devices that were seen off"]
        );
    }
}
