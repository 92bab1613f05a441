//! After the storm brake has held a fence of a segment, no other one begins by itself until the segment has been quiet for some time.

use chrono::TimeDelta;

use crate::{Ruling, Safeguard, Timestamp, Verdict};

/// When the segment changed last, if it has not been quiet for so many seconds since its storm brake held a fence at `braked_at`. `changes` are the moments at which its
/// other hosts were seen in another failure state.
#[must_use]
pub fn not_quiet_since(
    braked_at: Timestamp,
    changes: &[Timestamp],
    quiet_s: u32,
    now: Timestamp,
) -> Option<Timestamp> {
    let quiet = TimeDelta::seconds(i64::from(quiet_s));
    // One that is ahead of the clock was before the clock was set back: it may have been a moment ago.
    let since = changes.iter().filter(|at| **at > braked_at);
    let mut since: Vec<Timestamp> = since.map(|at| (*at).min(now)).collect();
    since.sort_unstable();
    let mut last = braked_at;
    for at in since {
        if at - last >= quiet {
            return None;
        }
        last = at;
    }
    (now - last < quiet).then_some(last)
}

/// Holds an automatic fence while the segment is not quiet.
pub(crate) fn ruling(quiet_s: u32, not_quiet_since: Option<Timestamp>) -> Ruling {
    let (verdict, reason, release) = match not_quiet_since {
        None => (
            Verdict::Allow,
            "the storm brake has held no fence of the segment, or the segment was quiet since".to_owned(),
            None,
        ),
        Some(at) => {
            let until = at + TimeDelta::seconds(i64::from(quiet_s));
            let reason = format!(
                "the storm brake has held a fence of the segment, which has not been quiet for {quiet_s} s since: it changed last at {}",
                at.format("%FT%TZ")
            );
            let release = format!("no change of another host before {}", until.format("%FT%TZ"));
            (Verdict::Hold, reason, Some(release))
        }
    };
    Ruling {
        safeguard: Safeguard::CoolDown,
        verdict,
        reason,
        release,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + TimeDelta::seconds(seconds)
    }

    #[track_caller]
    fn is(changes: &[i64], now: i64, expected: Option<i64>) {
        let changes: Vec<Timestamp> = changes.iter().map(|s| at(*s)).collect();
        assert_eq!(not_quiet_since(at(100), &changes, 60, at(now)), expected.map(at));
    }

    #[test]
    fn it_is_quiet_when_nothing_has_changed_for_so_long() {
        is(&[], 159, Some(100));
        is(&[], 160, None);
        is(&[150], 160, Some(150));
        is(&[150], 209, Some(150));
        is(&[150], 210, None);
        // What came before the brake held counts for nothing, and what is ahead of the clock may have come now.
        is(&[50], 160, None);
        is(&[400], 150, Some(150));
    }

    #[test]
    fn a_change_after_a_quiet_time_is_no_storm_any_more() {
        is(&[150, 230, 231], 232, None);
        is(&[150, 200, 250], 260, Some(250));
        is(&[250, 150, 200], 260, Some(250));
    }
}
