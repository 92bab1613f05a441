//! A part of the search; `cargo xtask model-check` runs all of it.

use ringfence_modelcheck::{Found, Goal, Limits, Order, Wrong, by_name, run, small, trace};

/// Seconds of each configuration.
const SECONDS: u64 = 1;

fn briefly() -> Limits {
    Limits {
        seconds: Some(SECONDS),
        ..Limits::default()
    }
}

fn assert_well(name: &str, found: &Found) {
    if let Some((wrong, path)) = &found.wrong {
        let trace = trace(&by_name(name).unwrap(), path);
        unreachable!("{name}: {wrong}\n{}", trace.join("\n"));
    }
}

#[test]
fn no_history_of_a_small_world_opens_a_gate_over_a_host_that_runs() {
    for configuration in small() {
        let found = run(&configuration, briefly());
        assert_well(configuration.name, &found);
        if found.is_exhausted {
            assert_eq!(found.missed(&configuration), [], "{}", configuration.name);
        }
    }
}

#[test]
fn depth_first_and_breadth_first_searches_find_equal_numbers() {
    let tiny = by_name("tiny").unwrap();
    let down = run(&tiny, Limits::default());
    let wide = run(
        &tiny,
        Limits {
            order: Order::Breadth,
            ..Limits::default()
        },
    );
    assert!(down.is_exhausted && wide.is_exhausted);
    assert_eq!((down.states, &down.goals), (wide.states, &wide.goals));
    assert_eq!(down.missed(&tiny), []);
}

#[test]
fn an_unreached_goal_is_reported() {
    let mut tiny = by_name("tiny").unwrap();
    tiny.goals.push(Goal::Moved);
    assert_eq!(run(&tiny, Limits::default()).missed(&tiny), [Goal::Moved]);
}

#[test]
fn a_search_that_runs_out_of_time_reports_it() {
    let limits = Limits {
        seconds: Some(0),
        ..Limits::default()
    };
    assert!(!run(&by_name("power").unwrap(), limits).is_exhausted);
}

#[test]
fn the_search_finds_a_violation_with_a_device_that_reads_falsely() {
    let mut power = by_name("power").unwrap();
    power
        .setting
        .manners
        .insert("bmc".to_owned(), ringfence_world::Manner::Ghost);
    let found = run(&power, briefly());
    let (wrong, path) = found.wrong.unwrap();
    assert!(matches!(wrong, Wrong::Violation(_)), "{wrong}");
    assert!(
        trace(&power, &path)
            .iter()
            .any(|line| line.contains("host.fenced"))
    );
}
