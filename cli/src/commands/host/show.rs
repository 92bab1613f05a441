//! Hosts on the screen.

use super::super::suspension;
use super::problems::alarm_line;
use crate::client::view::{AppliedFencing, Condition, Gate, Gates, Host, Kdump, Proof, Source};
use crate::error::CliError;
use crate::output::{Cell, Details, Screen, Table, time};

/// One row per host.
#[must_use]
pub fn table(hosts: &[Host]) -> Table {
    let mut table =
        Table::new(&["NAME", "SEGMENT", "SEEN", "FENCING", "GENERATION", "OPERATION"]).and_wide(&[
            "TYPE",
            "ZONE",
            "BACKEND",
            "CLOUD",
            "SEEN BY",
            "SEEN AT",
            "FENCED AT",
            "ID",
        ]);
    for host in hosts {
        let operation = host
            .operation
            .as_ref()
            .map(|operation| format!("{} {}", operation.kind, operation.status));
        table.row([
            host.name.as_str().into(),
            host.segment.as_str().into(),
            Cell::word(&host.failure_state),
            Cell::word(&host.fencing_state),
            host.generation.to_string().into(),
            Cell::maybe(operation),
            Cell::maybe(host.host_type.clone()),
            host.zone.as_str().into(),
            host.backend.as_str().into(),
            Cell::maybe(host.cloud.clone()),
            Cell::maybe(host.failure_source.clone()),
            Cell::maybe(host.failure_observed_at.map(time)),
            Cell::maybe(host.fenced_at.map(time)),
            host.id.as_str().into(),
        ]);
    }
    table
}

/// The details of one host.
pub fn details(screen: &mut Screen, host: Host) -> Result<(), CliError> {
    let seen = match (&host.failure_source, host.failure_observed_at) {
        (Some(source), Some(at)) => format!(" by {source} at {}", time(at)),
        _ => String::new(),
    };
    let fenced = host
        .fenced_at
        .map(|at| format!(" since {}", time(at)))
        .unwrap_or_default();
    let labels = host.labels.iter().map(|(name, value)| format!("{name}={value}"));
    let parameters = host.parameters.iter().flat_map(|(method, values)| {
        values
            .iter()
            .map(move |(key, value)| format!("{method}.{key}={value}"))
    });
    let operation = host.operation.as_ref();
    let mut details = Details::default()
        .with("name", &host.name)
        .with("id", &host.id)
        .with("segment", &host.segment)
        .with("backend", &host.backend)
        .with_some("cloud", host.cloud.as_deref())
        .with_some("known as", host.known_as.as_deref())
        .with_some("type", host.host_type.as_deref())
        .with("zone", &host.zone)
        .with_some("labels", Some(labels.collect::<Vec<_>>().join(" ")))
        .with_some("parameters", Some(parameters.collect::<Vec<_>>().join(" ")))
        .with_word("seen", &host.failure_state, seen);
    for source in &host.sources {
        details = details.with("source", source_line(source));
    }
    for condition in &host.conditions {
        details = details.with("condition", condition_line(condition));
    }
    if let Some(suspension) = &host.suspension {
        details = details.with("suspended", suspension::line(suspension));
    }
    if let Some(since) = host.quarantined_at {
        let since = time(since);
        let line = format!("since {since}; it is taken back only when you ask for it: ringfence host rejoin");
        details = details.with("quarantine", line);
    }
    for alarm in &host.alarms {
        details = details.with("alarm", alarm_line(alarm));
    }
    if let Some(kdump) = &host.kdump {
        details = details.with("crash dump", kdump_line(kdump));
    }
    details = details
        .with_some("boot", host.boot_id.as_deref())
        .with_word("fencing", &host.fencing_state, fenced)
        .with("generation", host.generation.to_string());
    for proof in &host.proofs {
        details = details.with("proof", proof_line(proof));
    }
    for applied in &host.applied_fencing {
        details = details.with("applied fencing", applied_line(applied));
    }
    if host.proof_ended.is_some() {
        details = details.with(
            "proven",
            "no more: fence it again before its workloads are started elsewhere",
        );
    }
    if host.needs_boot {
        details = details.with("to rejoin", "the host has to show a newer boot than it has");
    }
    if let Some(operation) = operation {
        details = details.with_word(
            "operation",
            &operation.status,
            format!(": {} {}", operation.kind, operation.id),
        );
    }
    screen.details(details)
}

/// A crash dump.
#[must_use]
pub fn kdump_line(kdump: &Kdump) -> String {
    let state = if kdump.is_over {
        "over"
    } else {
        "the host is in its crash kernel"
    };
    format!(
        "{state}; since {}, last message at {}",
        time(kdump.since),
        time(kdump.last_message_at)
    )
}

/// What a fence has taken, or may have taken.
#[must_use]
pub fn applied_line(applied: &AppliedFencing) -> String {
    let doubt = if applied.confirmed == Some(false) {
        ": commanded and not confirmed; it may be in effect or not, and a rejoin releases it"
    } else {
        ""
    };
    format!("{} by {}{doubt}", applied.kind, applied.method)
}

/// A condition, and what is done about it.
#[must_use]
pub fn condition_line(condition: &Condition) -> String {
    let Condition {
        source,
        name,
        status,
        since,
        reason,
        action,
    } = condition;
    let reason = if reason.is_empty() {
        String::new()
    } else {
        format!(", {reason}")
    };
    let action = action.as_ref().map(|action| format!(": {action}"));
    let since = time(*since);
    format!(
        "{name} {status} since {since} by {source}{reason}{}",
        action.unwrap_or_default()
    )
}

/// The last report of one source.
#[must_use]
pub fn source_line(source: &Source) -> String {
    let alive = source
        .alive_at
        .filter(|_| source.state != "UP")
        .map(|at| format!(", last sign of life at {}", time(at)))
        .unwrap_or_default();
    format!(
        "{}: {} at {}{alive}",
        source.name,
        source.state,
        time(source.observed_at)
    )
}

/// A proof, and what ended it.
#[must_use]
pub fn proof_line(proof: &Proof) -> String {
    let at = proof
        .observed_at
        .map(|at| format!(" at {}", time(at)))
        .unwrap_or_default();
    let detail = if proof.detail.is_empty() {
        String::new()
    } else {
        format!(": {}", proof.detail)
    };
    let ended = proof.ended.as_ref();
    let ended = ended.map(|ended| format!("; ended at {}: {}", time(ended.at), ended.by));
    format!(
        "{} by {}{at}{detail}{}",
        proof.kind,
        proof.source,
        ended.unwrap_or_default()
    )
}

/// The proofs of a host that is FENCED, in one line.
#[must_use]
pub fn proven_by(host: &Host) -> String {
    if let Some(ended) = &host.proof_ended {
        return format!("the proof was ended by: {}", ended.by);
    }
    let standing = host.proofs.iter().filter(|proof| proof.ended.is_none());
    let proofs: Vec<String> = standing
        .map(|proof| format!("{} by {}", proof.kind, proof.source))
        .collect();
    if proofs.is_empty() {
        "proven earlier".to_owned()
    } else {
        format!("proven by {}", proofs.join(", "))
    }
}

/// Both gates.
#[must_use]
pub fn gates(gates: &Gates) -> Table {
    let mut table = Table::new(&["GATE", "STATE", "WHY", "GENERATION"]);
    let mut row = |name: &str, gate: &Gate| {
        let state = if gate.allowed { "open" } else { "closed" };
        table.row([
            name.into(),
            Cell::word(state),
            gate.reason.as_str().into(),
            gates.generation.to_string().into(),
        ]);
    };
    row("schedule", &gates.schedule);
    row("evacuate", &gates.evacuate);
    table
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    fn host(more: Value) -> Host {
        let mut host = json!({
            "id": "9b2e", "name": "compute1", "segment": "rack-1", "backend": "none", "type": null, "zone": "default",
            "failure_state": "UNREACHABLE", "failure_source": "nagios", "failure_observed_at": "2026-01-31T12:00:00Z",
            "fencing_state": "FENCED", "generation": 3, "operation": null,
        });
        for (key, value) in more.as_object().unwrap() {
            host[key] = value.clone();
        }
        from_value(host).unwrap()
    }

    #[test]
    fn a_list_of_hosts_fits_its_columns() {
        let busy = host(json!({"operation": {"id": "op", "kind": "rejoin", "status": "needs_operator"}}));
        let text = table(&[host(json!({"name": "c2"})), busy]).render(None, false, false);
        let expected = "\
NAME      SEGMENT  SEEN         FENCING  GENERATION  OPERATION
c2        rack-1   UNREACHABLE  FENCED   3           -
compute1  rack-1   UNREACHABLE  FENCED   3           rejoin needs_operator
";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_last_line_of_a_fence_names_every_proof() {
        let proofs = json!({"proofs": [
            {"kind": "storage.fence", "source": "san", "observed_at": "2026-01-31T12:00:00Z"},
            {"kind": "network.fence", "source": "tor-1", "observed_at": "2026-01-31T12:00:00Z"},
        ]});
        assert_eq!(
            proven_by(&host(proofs)),
            "proven by storage.fence by san, network.fence by tor-1"
        );
    }

    #[test]
    fn the_last_line_of_a_fence_that_holds_no_more_says_what_ended_it() {
        let ended =
            json!({"by": "nagios saw the host UP at 2026-01-31T12:00:09Z", "at": "2026-01-31T12:00:10Z"});
        let spent = host(json!({
            "proof_ended": ended,
            "proofs": [{"kind": "power.off", "source": "bmc", "observed_at": "2026-01-31T12:00:00Z", "ended": ended}],
        }));
        assert_eq!(
            proven_by(&spent),
            "the proof was ended by: nagios saw the host UP at 2026-01-31T12:00:09Z"
        );
        assert_eq!(
            proof_line(&spent.proofs[0]),
            "power.off by bmc at 2026-01-31 12:00:00Z; ended at 2026-01-31 12:00:10Z: nagios saw the host UP at 2026-01-31T12:00:09Z"
        );
    }

    #[test]
    fn a_source_that_is_silent_is_shown_with_its_last_sign_of_life() {
        let source = json!({
            "name": "nagios", "state": "UNREACHABLE", "observed_at": "2026-01-31T12:00:00Z", "alive_at": "2026-01-31T11:59:00Z",
        });
        assert_eq!(
            source_line(&from_value(source).unwrap()),
            "nagios: UNREACHABLE at 2026-01-31 12:00:00Z, last sign of life at 2026-01-31 11:59:00Z"
        );
    }

    #[test]
    fn a_crash_dump_says_since_when_and_whether_it_is_over() {
        let line = |is_over: bool| {
            let kdump = json!({
                "since": "2026-01-31T12:00:00Z", "last_message_at": "2026-01-31T12:00:20Z", "is_over": is_over,
            });
            kdump_line(&from_value(kdump).unwrap())
        };
        let told = "since 2026-01-31 12:00:00Z, last message at 2026-01-31 12:00:20Z";
        assert_eq!(line(false), format!("the host is in its crash kernel; {told}"));
        assert_eq!(line(true), format!("over; {told}"));
    }

    #[test]
    fn fencing_that_was_not_confirmed_is_not_shown_as_if_it_held() {
        let line = |confirmed: Value| {
            applied_line(
                &from_value(json!({"kind": "power.off", "method": "bmc", "confirmed": confirmed})).unwrap(),
            )
        };
        assert_eq!(line(json!(true)), "power.off by bmc");
        assert_eq!(line(json!(null)), "power.off by bmc");
        assert!(
            line(json!(false)).contains("not confirmed"),
            "{}",
            line(json!(false))
        );
    }

    #[test]
    fn gates_are_open_or_closed_and_say_why() {
        let answer = json!({
            "schedule": {"allowed": false, "reason": "it is FENCED"},
            "evacuate": {"allowed": true, "reason": "it is FENCED and UNREACHABLE"},
            "generation": 3,
        });
        let text = gates(&from_value(answer).unwrap()).render(None, false, false);
        assert!(text.contains("schedule  closed  it is FENCED"), "{text}");
        assert!(
            text.contains("evacuate  open    it is FENCED and UNREACHABLE"),
            "{text}"
        );
    }
}
