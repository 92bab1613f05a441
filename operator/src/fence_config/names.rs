//! What a ConfigMap is, by its name.

use ringfence_core::Problems;

/// The prefix of the name of every ConfigMap that is read here.
pub(super) const PREFIX: &str = "fence-";
/// The prefix of a method's name, of a ConfigMap as of a key in one.
pub(super) const METHOD: &str = "fence-method-";
pub(super) const TEMPLATE: &str = "fence-method-template-";
const CONFIG: &str = "fence-config";
const SEGMENT: &str = "fence-segment-";

/// Which nodes a configuration is for. The more specific one wins.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    Default,
    /// Nodes whose label `type` has this value.
    Type(String),
    /// The node of this name.
    Node(String),
}

/// What a ConfigMap declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    /// How nodes are fenced.
    Config,
    /// One method.
    Method,
    /// What several methods share.
    Template,
    /// The policy of the segment of this name.
    Segment(&'a str),
}

/// Whether a ConfigMap of this name is read here.
pub(crate) fn is_own(name: &str) -> bool {
    kind(name).is_some()
}

/// `None` for a ConfigMap of another program.
pub(super) fn kind(name: &str) -> Option<Kind<'_>> {
    let is_config = name
        .strip_prefix(CONFIG)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
    if is_config {
        return Some(Kind::Config);
    }
    if name.starts_with(TEMPLATE) {
        return Some(Kind::Template);
    }
    if name.starts_with(METHOD) {
        return Some(Kind::Method);
    }
    name.strip_prefix(SEGMENT).map(Kind::Segment)
}

/// The nodes of a configuration, by the name of its ConfigMap and the name of a node that it may give.
pub(super) fn scope(name: &str, node_name: Option<&str>, problems: &mut Problems) -> Option<Scope> {
    let rest = name.strip_prefix(CONFIG)?.trim_start_matches('-');
    let mut wrong = |why: String| problems.add("config.properties: node_name", why);
    let named = |prefix: &str| rest.strip_prefix(prefix).filter(|named| !named.is_empty());
    let all = match rest {
        "" | "default" => Some((Scope::Default, "all nodes")),
        _ => named("type-").map(|word| (Scope::Type(word.to_owned()), "all nodes of a type")),
    };
    if let Some((scope, whose)) = all {
        if let Some(node) = node_name {
            wrong(format!("is {node:?}, but {name} is for {whose}; leave it out"));
        }
        return Some(scope);
    }
    let node = named("node-").or_else(|| (node_name == Some(rest)).then_some(rest));
    match (node, node_name) {
        (Some(node), None) => Some(Scope::Node(node.to_owned())),
        (Some(node), Some(given)) if node == given => Some(Scope::Node(node.to_owned())),
        (Some(node), Some(given)) => {
            wrong(format!(
                "is {given:?}, but {name} is for node {node}; {node} is allowed"
            ));
            None
        }
        (None, _) => {
            let given = node_name.map_or_else(|| "is missing".to_owned(), |node| format!("is {node:?}"));
            wrong(format!(
                "{given}; for a ConfigMap named {name}, {rest} is allowed; fence-config-default, fence-config-type-TYPE and \
                 fence-config-node-NODE need none"
            ));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, node: Option<&str>) -> Result<Scope, String> {
        let mut problems = Problems::default();
        let scope = scope(name, node, &mut problems);
        match problems.into_result() {
            Ok(()) => Ok(scope.unwrap()),
            Err(problems) => Err(problems.to_string()),
        }
    }

    #[test]
    fn a_name_says_for_which_nodes_it_is() {
        assert_eq!(read("fence-config", None), Ok(Scope::Default));
        assert_eq!(read("fence-config-default", None), Ok(Scope::Default));
        assert_eq!(
            read("fence-config-type-compute", None),
            Ok(Scope::Type("compute".to_owned()))
        );
        let n1 = || Ok(Scope::Node("n1".to_owned()));
        assert_eq!(read("fence-config-node-n1", None), n1());
        assert_eq!(read("fence-config-node-n1", Some("n1")), n1());
        assert_eq!(read("fence-config-n1", Some("n1")), n1());
    }

    #[test]
    fn another_node_name_is_refused_with_what_is_allowed() {
        for (name, node, told) in [
            (
                "fence-config-node-n1",
                Some("n2"),
                "is \"n2\", but fence-config-node-n1 is for node n1; n1 is allowed",
            ),
            (
                "fence-config-n1",
                Some("n2"),
                "is \"n2\"; for a ConfigMap named fence-config-n1, n1 is allowed",
            ),
            (
                "fence-config-n1",
                None,
                "is missing; for a ConfigMap named fence-config-n1, n1 is allowed",
            ),
            (
                "fence-config-default",
                Some("n2"),
                "fence-config-default is for all nodes; leave it out",
            ),
            (
                "fence-config-type-a",
                Some("n2"),
                "fence-config-type-a is for all nodes of a type; leave it out",
            ),
        ] {
            let error = read(name, node).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn configmaps_of_other_programs_are_left_alone() {
        for name in [
            "fence",
            "fence-configuration",
            "ringfence-gate",
            "kube-root-ca.crt",
        ] {
            assert_eq!(kind(name), None, "{name}");
        }
        assert_eq!(kind("fence-segment-rack"), Some(Kind::Segment("rack")));
        assert_eq!(kind("fence-method-template-pdu"), Some(Kind::Template));
        assert_eq!(kind("fence-method-pdu"), Some(Kind::Method));
    }
}
