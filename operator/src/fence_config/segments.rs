//! Policies of segments that ConfigMaps declare.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_core::{DEFAULT_SEGMENT_ID, Segment, SegmentDraft, SegmentPolicy};
use ringfence_engine::{Context, EngineError};

use crate::OperatorError;
use crate::door::Door;

/// The prefix of the name of the ConfigMap of a segment.
const CONFIG_MAP: &str = "fence-segment-";
/// The most segments that are looked through.
const MOST: u32 = 10_000;

/// By its description a segment of a ConfigMap is told from one that was configured through the API.
fn description(door: &Door, segment: &str) -> String {
    format!(
        "Declared by ConfigMap {}/{CONFIG_MAP}{segment} of cluster {}",
        door.namespace, door.cluster
    )
}

/// Brings a segment to its declared policy. Says whether that was a change.
pub(super) async fn declare(
    door: &Door,
    name: &str,
    policy: SegmentPolicy,
    applied: &mut BTreeMap<String, SegmentPolicy>,
    by: &Context,
) -> Result<bool, EngineError> {
    let wanted = SegmentDraft {
        name: name.to_owned(),
        description: description(door, name),
        policy: policy.clone(),
    };
    let known = ringfence_db::segment(&mut door.engine.db().reader(), name).await?;
    let is_changed = match known {
        None => {
            door.engine.create_segment(wanted, by).await?;
            true
        }
        Some(known) if known.description == wanted.description && known.policy == wanted.policy => false,
        Some(known) => {
            refuse_foreign(&known, &wanted)?;
            let id = known.id.to_string();
            door.engine
                .update_segment(&id, wanted, Some(known.revision), by)
                .await?;
            true
        }
    };
    applied.insert(name.to_owned(), policy);
    Ok(is_changed)
}

/// The default segment, which is made with the database, is taken over unless it was changed.
fn refuse_foreign(known: &Segment, wanted: &SegmentDraft) -> Result<(), EngineError> {
    let is_untouched = known.id == DEFAULT_SEGMENT_ID && known.revision == 1;
    if known.description == wanted.description || is_untouched {
        return Ok(());
    }
    Err(EngineError::Duplicate(format!(
        "segment {:?} was configured through the API; its policy is changed there, or the segment is deleted",
        known.name
    )))
}

/// Segments whose ConfigMaps are gone: one with hosts gets the policy that segments begin with, another one is removed.
pub(super) async fn remove_others(
    door: &Door,
    present: &BTreeSet<String>,
    applied: &mut BTreeMap<String, SegmentPolicy>,
) -> Result<(), OperatorError> {
    let segments = ringfence_db::list_segments(&mut door.engine.db().reader(), MOST).await?;
    for segment in segments {
        let config_map = format!("{CONFIG_MAP}{}", segment.name);
        let is_own = segment.description == description(door, &segment.name);
        if !is_own || present.contains(&config_map) {
            continue;
        }
        applied.remove(&segment.name);
        remove(door, &segment, &config_map).await?;
    }
    Ok(())
}

async fn remove(door: &Door, segment: &Segment, config_map: &str) -> Result<(), OperatorError> {
    let by = Context {
        is_admin: true,
        ..Context::own(&format!("configmap {}/{config_map}", door.namespace))
    };
    let id = segment.id.to_string();
    match door.engine.delete_segment(&id, Some(segment.revision), &by).await {
        Ok(()) => {}
        Err(EngineError::InUse(_)) => {
            let begun = SegmentDraft {
                name: segment.name.clone(),
                description: "Its ConfigMap was deleted".to_owned(),
                policy: SegmentPolicy::default(),
            };
            door.engine
                .update_segment(&id, begun, Some(segment.revision), &by)
                .await?;
        }
        Err(error) => return Err(error.into()),
    }
    tracing::info!(
        segment = segment.name,
        config_map,
        "the policy of a segment was removed with its ConfigMap"
    );
    Ok(())
}
