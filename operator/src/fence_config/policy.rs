//! The policy of a segment, as a ConfigMap has it.

use ringfence_core::{Problems, SegmentPolicy, validate_name, validate_policy};

use super::reading::{Declared, Verdict, config_map};
use super::sources::Source;

/// The key of a segment's policy.
const POLICY: &str = "policy.yaml";

pub(super) fn of_segment(name: &str, segment: &str, source: &Source) -> Verdict {
    Verdict {
        object: config_map(name),
        found: segment_policy(segment, source),
        warnings: Vec::new(),
    }
}

fn segment_policy(segment: &str, source: &Source) -> Result<Declared, Problems> {
    let mut problems = Problems::default();
    if let Some(why) = source.refusal() {
        problems.add("data", why);
    }
    if let Err(problem) = validate_name("metadata.name", segment) {
        problems.0.push(problem);
    }
    for key in source.data.keys().filter(|key| *key != POLICY) {
        problems.add(key, format!("is unknown; {POLICY} is allowed"));
    }
    let policy = source
        .data
        .get(POLICY)
        .map(|text| serde_saphyr::from_str::<SegmentPolicy>(text));
    let policy = match policy {
        Some(Ok(policy)) => policy,
        Some(Err(error)) => {
            // Further lines show the text.
            let error = error.to_string();
            problems.add(
                POLICY,
                format!("cannot be read: {}", error.lines().next().unwrap_or_default()),
            );
            SegmentPolicy::default()
        }
        None => {
            problems.add(POLICY, "is missing");
            SegmentPolicy::default()
        }
    };
    if let Err(found) = validate_policy(&policy) {
        for problem in found.0 {
            let field = problem.field.strip_prefix("policy.").unwrap_or(&problem.field);
            problems.add(format!("{POLICY}: {field}"), problem.detail);
        }
    }
    problems.into_result()?;
    Ok(Declared::Segment {
        name: segment.to_owned(),
        policy: Box::new(policy),
    })
}
