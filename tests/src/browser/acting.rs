//! A person's hands: a pointer and keys.

use fantoccini::actions::{InputSource, KeyAction, KeyActions};
use fantoccini::key::Key;
use serde_json::{Value, json};

use super::{Browser, Part};

/// Brings an element into sight, and returns its middle if a pointer there would meet it.
const MIDDLE: &str = "function () {
    const element = this instanceof Element ? this : this.parentElement;
    element.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
    const { x, y, width, height } = element.getBoundingClientRect();
    const middle = { x: x + width / 2, y: y + height / 2 };
    const met = element.getRootNode().elementFromPoint(middle.x, middle.y);
    const label = met?.closest('label')?.control;
    return element === met || element.contains(met) || label === element ? middle : null;
}";

/// The number of parts that are walked through until a walk counts as endless.
const LONGEST_WALK: usize = 200;

impl Browser {
    /// Clicks the one part with this role and name, once it is there, enabled and not covered.
    #[track_caller]
    pub fn click<'a>(&'a self, role: &'a str, name: &'a str) -> impl Future<Output = ()> + 'a {
        let met = self.until(format!("{role} {name:?} can be clicked"), async move || {
            let mut found = self.parts().await;
            found.retain(|part| part.role == role && part.name == name);
            match found.as_slice() {
                [part] if !part.is_disabled => self.middle(part).await,
                _ => None,
            }
        });
        async move {
            let (x, y) = met.await;
            self.pointer("mousePressed", x, y).await;
            self.pointer("mouseReleased", x, y).await;
        }
    }

    async fn middle(&self, part: &Part) -> Option<(f64, f64)> {
        let element = json!({ "backendNodeId": part.node });
        let element = self.try_devtools("DOM.resolveNode", element).await.ok()?;
        let call = json!({
            "objectId": element["object"]["objectId"], "functionDeclaration": MIDDLE, "returnByValue": true,
        });
        let middle = self.try_devtools("Runtime.callFunctionOn", call).await.ok()?;
        let middle = &middle["result"]["value"];
        Some((middle["x"].as_f64()?, middle["y"].as_f64()?))
    }

    async fn pointer(&self, kind: &str, x: f64, y: f64) {
        let event = json!({ "type": kind, "x": x, "y": y, "button": "left", "clickCount": 1 });
        self.devtools("Input.dispatchMouseEvent", event).await;
    }

    /// Presses and releases a key.
    pub async fn press(&self, key: Key) {
        self.keys([key.into()]).await;
    }

    /// Presses a key while others are held.
    pub async fn press_with(&self, held: Key, key: Key) {
        let (held, key) = (char::from(held), char::from(key));
        let keys = KeyActions::new("keys".to_owned())
            .then(KeyAction::Down { value: held })
            .then(KeyAction::Down { value: key })
            .then(KeyAction::Up { value: key })
            .then(KeyAction::Up { value: held });
        self.client.perform_actions(keys).await.unwrap();
    }

    /// Types a text into the part that has the focus.
    pub async fn type_text(&self, text: &str) {
        self.keys(text.chars()).await;
    }

    async fn keys(&self, keys: impl IntoIterator<Item = char>) {
        let mut actions = KeyActions::new("keys".to_owned());
        for value in keys {
            actions = actions
                .then(KeyAction::Down { value })
                .then(KeyAction::Up { value });
        }
        self.client.perform_actions(actions).await.unwrap();
    }

    /// Clicks a field and types a text into it, in place of what it holds.
    #[track_caller]
    pub fn fill<'a>(&'a self, role: &'a str, name: &'a str, text: &'a str) -> impl Future<Output = ()> + 'a {
        let clicked = self.click(role, name);
        async move {
            clicked.await;
            self.run("document.execCommand('selectAll')", Vec::new()).await;
            self.type_text(text).await;
        }
    }

    /// Presses Tab until the part with this role and name has the focus.
    pub async fn tab_to(&self, role: &str, name: &str) {
        let mut walked = Vec::new();
        for _ in 0..LONGEST_WALK {
            self.press(Key::Tab).await;
            let Some(part) = self.focused().await else {
                continue;
            };
            if part.role == role && part.name == name {
                return;
            }
            walked.push(part.told());
        }
        let shown = self.shown().await;
        panic!("Tab does not lead to {role} {name:?}, but to {walked:#?}; {shown}");
    }

    /// Marks the document, so that [`Browser::is_same_document`] can tell whether it was loaded anew since.
    pub async fn mark(&self) {
        self.run("window.isMarked = true", Vec::new()).await;
    }

    /// Whether the page is still the document that was marked.
    pub async fn is_same_document(&self) -> bool {
        self.run("return window.isMarked === true", Vec::new()).await == Value::Bool(true)
    }
}
