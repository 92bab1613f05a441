//! The definitions of the objects, and the rights, as they are installed in a cluster.

/// The chart installs these files too.
const DEFINITIONS: &[&str] = &[
    include_str!("../../deploy/helm/ringfence/crds/nodefences.yaml"),
    include_str!("../../deploy/helm/ringfence/crds/ringfenceremediations.yaml"),
    include_str!("../../deploy/helm/ringfence/crds/ringfenceremediationtemplates.yaml"),
];
/// What health checks and Ringfence may do with the objects.
const RIGHTS: &str = include_str!("../rights.yaml");

/// All definitions, and the roles with the rights to use the objects, as YAML documents for `kubectl apply -f -`.
#[must_use]
pub fn definitions() -> String {
    let mut all = DEFINITIONS.to_vec();
    all.push(RIGHTS);
    all.join("---\n")
}
