//! Small campaigns, each with a new seed, and one that must fail.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use ringfence_campaign::{Ground, Options, Script, run};
use ringfence_tests::tell;

#[test]
fn a_seed_gives_one_script_and_another_seed_another() {
    let of = |ground, seed| Script::of(&Options::new(ground, 300, seed));
    for ground in [Ground::Standalone, Ground::Distributed] {
        assert_eq!(of(ground, 7), of(ground, 7));
        assert_ne!(of(ground, 7), of(ground, 8));
    }
}

/// Every power device reads off while its host runs on: the judge must find it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_judge_finds_a_running_host_whose_device_reads_off() {
    let kept = tempfile::tempdir().unwrap();
    let options = Options {
        ghosts: true,
        kept: kept.path().to_owned(),
        hosts: 4,
        seconds: 40,
        ..Options::new(Ground::Standalone, 200, 1)
    };
    let report = run(options).await.unwrap();
    let found = report.violations.first().unwrap_or_else(|| panic!("{report}"));
    assert!(
        ["false FENCED", "open gate"].contains(&found.what.as_str()),
        "{report}"
    );
    assert!(!found.faults.is_empty() && !found.of_host.is_empty(), "{report}");
    assert!(report.kept.is_some(), "{report}");
}

async fn holds(ground: Ground, faults: usize, hosts: usize) {
    let seed = u64::from(std::process::id()) ^ ringfence_tests::now().timestamp().unsigned_abs();
    tell(&format!("a campaign on {} with seed {seed}", ground.as_str()));
    let options = Options {
        hosts,
        ..Options::new(ground, faults, seed)
    };
    let report = run(options).await.unwrap();
    tell(&report.to_string());
    assert!(report.violations.is_empty(), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_gate_opens_over_a_host_that_writes_on_standalone() {
    holds(Ground::Standalone, 40, 6).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_gate_opens_over_a_host_that_writes_on_distributed() {
    holds(Ground::Distributed, 40, 6).await;
}
