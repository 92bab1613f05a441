//! Whether a guest has ever run on two hosts at once, by the records of the hypervisors.

use std::collections::BTreeMap;
use std::time::SystemTime;

use ringfence_lab::Change;

/// The time that a guest ran on a host; without an end it still runs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ran {
    host: String,
    from: SystemTime,
    until: Option<SystemTime>,
}

impl Ran {
    fn meets(&self, other: &Self) -> bool {
        let ends_before = |one: &Self, other: &Self| one.until.is_some_and(|until| until <= other.from);
        self.host != other.host && !ends_before(self, other) && !ends_before(other, self)
    }
}

/// The first guest that has run on two hosts at once, and when.
pub fn has_run_twice(histories: &[(String, Vec<Change>)]) -> Option<String> {
    let mut all: BTreeMap<&str, Vec<Ran>> = BTreeMap::new();
    for (host, changes) in histories {
        for change in changes {
            note(all.entry(&change.server).or_default(), host, change);
        }
    }
    all.into_iter().find_map(|(server, ran)| {
        let mut pairs = ran
            .iter()
            .enumerate()
            .flat_map(|(at, one)| ran[at + 1..].iter().map(move |other| (one, other)));
        let (one, other) = pairs.find(|(one, other)| one.meets(other))?;
        Some(format!("{server}: {one:?} and {other:?}"))
    })
}

fn note(ran: &mut Vec<Ran>, host: &str, change: &Change) {
    let open = ran.iter_mut().find(|one| one.host == host && one.until.is_none());
    match (change.what.as_str(), open) {
        ("spawn" | "power_on", None) => ran.push(Ran {
            host: host.to_owned(),
            from: change.at,
            until: None,
        }),
        ("destroy" | "power_off" | "power_lost", Some(open)) => open.until = Some(change.at),
        // The change had no effect: the guest ran already, or did not run.
        ("spawn" | "power_on", Some(_)) | ("destroy" | "power_off" | "power_lost", None) => {}
        (what, _) => panic!("the judge does not know the change {what}"),
    }
}

#[test]
fn a_guest_that_starts_before_its_end_on_another_host_has_run_twice() {
    let history = |host: &str, changes: &[(&str, u64)]| {
        let change = |(what, second): &(&str, u64)| Change {
            at: SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(*second),
            what: (*what).to_owned(),
            server: "s".to_owned(),
        };
        (host.to_owned(), changes.iter().map(change).collect::<Vec<_>>())
    };
    let first = history("a", &[("spawn", 1), ("power_lost", 10), ("destroy", 20)]);
    let after = history("b", &[("spawn", 11)]);
    assert_eq!(has_run_twice(&[first.clone(), after]), None);
    for (from, until) in [(9, 12), (2, 3), (0, 30)] {
        let during = history("b", &[("spawn", from), ("power_off", until)]);
        assert!(has_run_twice(&[first.clone(), during]).is_some(), "{from}");
    }
    let again = history("a", &[("spawn", 1), ("power_lost", 10), ("power_on", 20)]);
    let still = history("b", &[("spawn", 11), ("destroy", 21)]);
    assert!(has_run_twice(&[again, still]).is_some());
}
