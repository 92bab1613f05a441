//! The ConfigMaps that are read.

use std::collections::BTreeMap;

use super::names::{Kind, kind};

/// The most bytes of one ConfigMap.
pub(crate) const MAX_BYTES: usize = 64 * 1024;
/// The key of a method in a ConfigMap of its own, and that of a template.
const TEXTS: [&str; 2] = ["method.properties", "template.properties"];

/// One ConfigMap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Source {
    /// Its uid, by which Events name it.
    pub uid: String,
    /// Its data; nothing of one that is too large.
    pub data: BTreeMap<String, String>,
    /// The bytes of its data.
    pub bytes: usize,
}

impl Source {
    /// Leaves the data of a ConfigMap that is too large out.
    pub fn new(uid: String, data: BTreeMap<String, String>) -> Self {
        let bytes = data.iter().map(|(key, value)| key.len() + value.len()).sum();
        let data = match bytes {
            0..=MAX_BYTES => data,
            _ => BTreeMap::new(),
        };
        Self { uid, data, bytes }
    }

    /// Why it is not read.
    pub fn refusal(&self) -> Option<String> {
        (self.bytes > MAX_BYTES)
            .then(|| format!("it has {} bytes; at most {MAX_BYTES} are allowed", self.bytes))
    }
}

/// All ConfigMaps whose names say that they are read here, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sources(pub BTreeMap<String, Source>);

impl Sources {
    /// The text of a method or a template in a ConfigMap of its own, or why it has none.
    pub(super) fn text_of(&self, name: &str) -> Option<Result<&str, String>> {
        let source = self.0.get(name)?;
        if let Some(why) = source.refusal() {
            return Some(Err(why));
        }
        let allowed = match kind(name) {
            Some(Kind::Template) => &TEXTS[..],
            _ => &TEXTS[..1],
        };
        let found = allowed.iter().find_map(|key| source.data.get(*key));
        let only = source.data.len() == 1;
        Some(match found {
            Some(text) if only => Ok(text.as_str()),
            Some(_) | None => {
                let keys: Vec<&str> = source.data.keys().map(String::as_str).collect();
                Err(format!(
                    "it has the keys {}; {} alone is allowed",
                    keys.join(", "),
                    allowed.join(" or ")
                ))
            }
        })
    }
}
