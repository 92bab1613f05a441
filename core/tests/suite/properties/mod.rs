//! The invariants, each over arbitrary histories. The expected states come from the record, independent of the code under test.
//! `PROPTEST_CASES` sets the number of cases; 256 is the default.

mod actions;
mod explaining;
mod facts;
mod hearing;
mod record;
mod settings;
mod site;

mod alarms;
mod l1_everything_ends;
mod s10_a_persons_word;
mod s11_at_once;
mod s11_ceph;
mod s11_cool_down;
mod s11_groups;
mod s11_held;
mod s11_kdump;
mod s11_moves;
mod s11_quarantine;
mod s11_queries;
mod s11_sight;

mod s11_storm_brake;
mod s11_suspension;
mod s12_what_undoes_a_proof_ends_it;
mod s13_heartbeats;
mod s13_silence_is_watched;
mod s1_kdump;
mod s1_proof;
mod s2_unknown_is_unknown;
mod s3_fence_before_recovery;
mod s4_one_at_a_time;
mod s5_off_beats_on;
mod s6_idempotent;
mod s7_rejoin_in_order;
mod s8_first_success_decides;
mod s9_nothing_forgets;
