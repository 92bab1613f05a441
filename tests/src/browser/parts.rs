//! The parts of a page as a screen reader knows them: by role and name.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::Browser;

/// A part of the page.
#[derive(Clone, Debug)]
pub struct Part {
    /// As in ARIA, such as `button`.
    pub role: String,
    /// The accessible name.
    pub name: String,
    /// What a field holds.
    pub value: String,
    pub is_disabled: bool,
    pub is_focused: bool,
    /// Its number in the DOM.
    pub(super) node: u64,
}

impl Part {
    fn from(node: &Value) -> Option<Self> {
        if node["ignored"] == true {
            return None;
        }
        let text = |field: &str| node[field]["value"].as_str().unwrap_or_default().to_owned();
        Some(Self {
            role: text("role"),
            name: text("name"),
            value: text("value"),
            is_disabled: has(node, "disabled"),
            is_focused: has(node, "focused"),
            node: node["backendDOMNodeId"].as_u64()?,
        })
    }

    fn is(&self, role: &str, name: &str) -> bool {
        self.role == role && self.name == name
    }

    /// As it is listed in failures, such as `button "Fence"`.
    pub fn told(&self) -> String {
        let value = match self.value.as_str() {
            "" => String::new(),
            value => format!(" = {value:?}"),
        };
        let disabled = if self.is_disabled { " (disabled)" } else { "" };
        let focused = if self.is_focused { " (has the focus)" } else { "" };
        format!("{} {:?}{value}{disabled}{focused}", self.role, self.name)
    }
}

/// Whether a property is true.
fn has(node: &Value, property: &str) -> bool {
    let properties = node["properties"].as_array();
    properties.is_some_and(|properties| {
        properties
            .iter()
            .any(|known| known["name"] == property && known["value"]["value"] == true)
    })
}

/// The nodes of the tree, each before its children. Chromium lists them by their depth.
fn in_order(tree: &Value) -> Vec<&Value> {
    let nodes = tree["nodes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let by_id: HashMap<_, _> = nodes.iter().map(|node| (&node["nodeId"], node)).collect();
    let mut left = Vec::from_iter(nodes.first());
    let mut ordered = Vec::new();
    while let Some(node) = left.pop() {
        ordered.push(node);
        let children = node["childIds"].as_array().map(Vec::as_slice).unwrap_or_default();
        left.extend(children.iter().rev().filter_map(|id| by_id.get(id)));
    }
    ordered
}

/// Roles of no interest to the reader of a failure: what they hold is listed by itself.
const QUIET: [&str; 5] = ["generic", "none", "InlineTextBox", "StaticText", "paragraph"];

impl Browser {
    /// All parts of the page, in the order in which they are read. There are none while a page gives way to the next.
    pub async fn parts(&self) -> Vec<Part> {
        let tree = self.try_devtools("Accessibility.getFullAXTree", json!({})).await;
        let tree = tree.unwrap_or_default();
        in_order(&tree).into_iter().filter_map(Part::from).collect()
    }

    /// The parts with a name or a use, one a line.
    pub(super) async fn outline(&self) -> String {
        let parts = self.parts().await;
        let parts = parts.iter().filter(|part| !QUIET.contains(&part.role.as_str()));
        let lines: Vec<_> = parts.map(|part| format!("  {}", part.told())).collect();
        lines.join("\n")
    }

    /// Waits until the page has exactly one part with this role and this name, and returns it.
    #[track_caller]
    pub fn part<'a>(&'a self, role: &'a str, name: &'a str) -> impl Future<Output = Part> + 'a {
        self.until(format!("the page has one {role} {name:?}"), async move || {
            let mut found = self.parts().await;
            found.retain(|part| part.is(role, name));
            match found.as_slice() {
                [_] => found.pop(),
                _ => None,
            }
        })
    }

    /// Waits until the page has no such part.
    #[track_caller]
    pub fn until_without<'a>(&'a self, role: &'a str, name: &'a str) -> impl Future<Output = ()> + 'a {
        self.until(format!("the page has no {role} {name:?}"), async move || {
            let parts = self.parts().await;
            let is_blank = parts.is_empty();
            (!is_blank && !parts.iter().any(|part| part.is(role, name))).then_some(())
        })
    }

    /// The names of all parts with this role.
    pub async fn names(&self, role: &str) -> Vec<String> {
        let parts = self.parts().await;
        let parts = parts.into_iter().filter(|part| part.role == role);
        parts.map(|part| part.name).collect()
    }

    /// Waits until keys go to the part with this role and this name.
    #[track_caller]
    pub fn until_focused<'a>(&'a self, role: &'a str, name: &'a str) -> impl Future<Output = ()> + 'a {
        self.until(format!("{role} {name:?} has the focus"), async move || {
            let part = self.focused().await?;
            part.is(role, name).then_some(())
        })
    }

    /// The part that keys go to.
    pub async fn focused(&self) -> Option<Part> {
        let parts = self.parts().await;
        let is_page = |part: &Part| part.role == "RootWebArea";
        let mut parts = parts.into_iter();
        parts.find(|part| part.is_focused && !is_page(part))
    }
}
