//! Which boot a host runs, as an observer sees it by what the host writes down with its backend.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use ringfence_core::*;
use ringfence_world::World;
use ringfence_world::plans::*;

fn at(seconds: i64) -> Timestamp {
    start() + TimeDelta::seconds(seconds)
}

/// A host that an observer looks at every second, and what is known of it.
struct Watched {
    watch: BootWatch,
    world: World,
    second: i64,
    own: i64,
    sign: BootSign,
    writes: u32,
}

impl Watched {
    /// Since three minutes before the moment from which seconds count, in its first boot.
    fn new() -> Self {
        let mut world = World::new(cut_off_plan(), policy());
        world.pass(1_000_000);
        Self {
            watch: BootWatch::default(),
            world,
            second: -180,
            own: -180,
            sign: BootSign {
                id: "first".to_owned(),
                written: "0".to_owned(),
            },
            writes: 0,
        }
    }

    fn until(&mut self, second: i64) {
        while self.second < second {
            self.second += 1;
            self.own = self.second;
            self.look();
        }
    }

    /// Until then the backend's own services show nothing new.
    fn while_it_stands_still_until(&mut self, second: i64) {
        while self.second < second {
            self.second += 1;
            self.look();
        }
    }

    fn write(&mut self, boot: &str) {
        self.writes += 1;
        self.sign = BootSign {
            id: boot.to_owned(),
            written: self.writes.to_string(),
        };
    }

    fn look(&mut self) {
        let sign = Sign {
            host: "n1".to_owned(),
            last: None,
            is_up: true,
            is_marked_down: false,
            settings: String::new(),
            boot: Some(self.sign.clone()),
            host_type: None,
            labels: None,
            is_on_record: false,
            is_kept_off: false,
            conditions: [].into(),
        };
        let poll = Poll {
            hosts: vec![sign],
            own: Some(at(self.own)),
        };
        self.watch.look(&poll, at(self.second));
        let Some(seen) = self.watch.take("n1") else { return };
        let report = Report {
            state: FailureState::Up,
            source: "kubernetes:lab".to_owned(),
            observed_at: seen.at,
            last_seen_at: None,
            silent_since: None,
            boot: Some(Boot {
                id: Some(seen.id),
                booted_at: None,
            }),
        };
        self.world.report(report).unwrap();
    }

    /// Whether the host has shown a boot that began after the moment from which seconds count.
    fn has_booted(&self) -> bool {
        self.world.state.host.sources.has_booted_since(at(0), None)
    }

    fn has_outlived(&self) -> bool {
        self.world
            .state
            .host
            .sources
            .older_boot_seen(at(0), None)
            .is_some()
    }

    fn boots(&self) -> BTreeMap<String, i64> {
        let sources = &self.world.state.host.sources;
        let boots = sources
            .get("kubernetes:lab")
            .into_iter()
            .flat_map(|source| source.boots.iter());
        boots
            .map(|seen| {
                (
                    seen.boot.id.clone().unwrap(),
                    (seen.last_seen - start()).num_seconds(),
                )
            })
            .collect()
    }
}

#[test]
fn what_is_there_at_the_first_look_says_nothing_of_when_it_was_written() {
    let mut watched = Watched::new();
    watched.until(100);
    assert!(watched.boots().is_empty());
}

#[test]
fn a_boot_that_writes_long_after_a_cut_and_another_one_after_it_show_that_the_host_has_booted() {
    let mut watched = Watched::new();
    for second in [-50, 119] {
        watched.until(second);
        watched.write("first");
    }
    watched.until(120);
    assert!(watched.has_outlived(), "it runs on: {:?}", watched.boots());
    watched.write("second");
    watched.until(150);
    assert!(watched.has_booted(), "{:?}", watched.boots());
    assert!(!watched.has_outlived());
}

#[test]
fn a_write_that_lands_late_does_not_show_that_its_boot_ran_after_the_cut() {
    let mut watched = Watched::new();
    watched.until(29);
    // Its host had sent it before the cut, and was booted anew before the cut.
    watched.write("first");
    watched.until(40);
    watched.write("second");
    watched.until(50);
    assert!(!watched.has_booted(), "{:?}", watched.boots());
}

#[test]
fn what_a_backend_shows_after_a_standstill_may_be_as_old_as_that() {
    let mut watched = Watched::new();
    watched.until(-100);
    watched.while_it_stands_still_until(119);
    watched.write("first");
    watched.until(120);
    watched.write("second");
    watched.until(130);
    assert!(!watched.has_booted(), "{:?}", watched.boots());
}

#[test]
fn a_boot_that_writes_again_soon_is_not_taken_for_one_from_before() {
    let mut watched = Watched::new();
    watched.until(5);
    watched.write("second");
    for second in [6, 10, 30, 64, 66, 200] {
        watched.until(second);
        watched.write("second");
        watched.until(second + 1);
        assert!(!watched.has_outlived(), "after {second} s: {:?}", watched.boots());
    }
}

#[test]
fn a_boot_is_told_once_however_long_it_waits_to_be_taken() {
    let mut watched = Watched::new();
    watched.until(0);
    watched.write("second");
    watched.until(1);
    assert_eq!(watched.boots(), BTreeMap::from([("second".to_owned(), 0)]));
    assert_eq!(watched.watch.take("n1"), None);
    assert_eq!(watched.watch.take("n2"), None);
}
