//! What is written on an object that asks for something: that it is kept, and that its request was made.

use std::fmt::Debug;

use kube::Api;
use kube::core::ObjectMeta;
use ringfence_core::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::OperatorError;
use crate::door::Door;

/// Keeps an object until its host is UNFENCED.
pub(crate) const FINALIZER: &str = "ringfence.io/rejoin";
/// The operation that carries out what an object asks for: it is asked for once.
pub(crate) const CARRIED_OUT_BY: &str = "ringfence.io/carried-out-by";

/// When the API server says that it was made, to the second.
pub(crate) fn made_at(of: &ObjectMeta) -> Option<Timestamp> {
    let made = &of.creation_timestamp.as_ref()?.0;
    let nanoseconds = u32::try_from(made.subsec_nanosecond()).ok()?;
    Timestamp::from_timestamp(made.as_second(), nanoseconds)
}

/// Whether it is kept until its host is UNFENCED.
pub(crate) fn is_kept(of: &ObjectMeta) -> bool {
    let finalizers = of.finalizers.iter().flatten();
    finalizers.into_iter().any(|finalizer| finalizer == FINALIZER)
}

/// Whether its fence has been asked for.
pub(crate) fn is_carried_out(of: &ObjectMeta) -> bool {
    has_annotation(of, CARRIED_OUT_BY)
}

/// Whether it has this annotation.
pub(crate) fn has_annotation(of: &ObjectMeta, name: &str) -> bool {
    let annotations = of.annotations.as_ref();
    annotations.is_some_and(|annotations| annotations.contains_key(name))
}

/// Keeps the object until its host is UNFENCED.
pub(crate) async fn keep<K>(door: &Door, api: &Api<K>, object: &ObjectMeta) -> Result<(), OperatorError>
where
    K: Clone + DeserializeOwned + Debug,
{
    if is_kept(object) {
        return Ok(());
    }
    let mut finalizers = object.finalizers.clone().unwrap_or_default();
    finalizers.push(FINALIZER.to_owned());
    set_finalizers(door, api, object, &finalizers).await
}

/// Lets the object go.
pub(crate) async fn let_go<K>(door: &Door, api: &Api<K>, object: &ObjectMeta) -> Result<(), OperatorError>
where
    K: Clone + DeserializeOwned + Debug,
{
    let mut finalizers = object.finalizers.clone().unwrap_or_default();
    finalizers.retain(|finalizer| finalizer != FINALIZER);
    set_finalizers(door, api, object, &finalizers).await
}

/// Writes down which operation carries the request out; `None`: it is to be asked for again.
pub(crate) async fn carried_out<K>(
    door: &Door,
    api: &Api<K>,
    object: &ObjectMeta,
    operation: Option<&str>,
) -> Result<(), OperatorError>
where
    K: Clone + DeserializeOwned + Debug,
{
    let change = json!({ "metadata": { "annotations": { CARRIED_OUT_BY: operation } } });
    door.merge(api, name_of(object), &change).await.map(drop)
}

/// The object's name; every object that was read has one.
pub(crate) fn name_of(object: &ObjectMeta) -> &str {
    object.name.as_deref().unwrap_or_default()
}

/// The list belongs to several programs: a change of it since it was read is not overwritten.
async fn set_finalizers<K>(
    door: &Door,
    api: &Api<K>,
    object: &ObjectMeta,
    finalizers: &[String],
) -> Result<(), OperatorError>
where
    K: Clone + DeserializeOwned + Debug,
{
    let change = json!({ "metadata": {
        "resourceVersion": object.resource_version,
        "finalizers": finalizers,
    }});
    door.merge(api, name_of(object), &change).await.map(drop)
}
