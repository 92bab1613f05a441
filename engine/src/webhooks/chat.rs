//! An event as a message for people: Slack, Mattermost, and workflows of Microsoft Teams.

use ringfence_core::MessageFormat;
use ringfence_db::EventRow;
use serde_json::{Value, json};

/// Particulars of an event that are told, and the longest of them, in characters.
const FACTS: usize = 20;
const FACT_CHARS: usize = 300;

/// What a message says.
pub(super) struct Message {
    title: String,
    facts: Vec<(String, String)>,
}

impl Message {
    /// Of an event.
    pub fn of_event(row: &EventRow) -> Self {
        let event = &row.event;
        let about = event.host.as_ref().map_or("Ringfence", |host| host.name.as_str());
        let mut facts = vec![("at".to_owned(), event.occurred_at.format("%F %TZ").to_string())];
        facts.extend(
            row.segment
                .iter()
                .map(|name| ("segment".to_owned(), name.clone())),
        );
        let generation = event.host.as_ref().map(|host| host.generation.to_string());
        facts.extend(generation.map(|number| ("generation".to_owned(), number)));
        let data = event.data.as_object().into_iter().flatten();
        let told = data.filter(|(key, value)| !value.is_null() && !facts_have(&facts, key));
        let told: Vec<_> = told.map(|(key, value)| (key.clone(), in_words(value))).collect();
        facts.extend(told);
        facts.truncate(FACTS);
        Self {
            title: format!("{about}: {}", event.kind),
            facts,
        }
    }

    /// A test call.
    pub fn of_test(subscription: &str) -> Self {
        Self {
            title: format!("A test of subscription {subscription}"),
            facts: Vec::new(),
        }
    }

    /// As the receiver takes it.
    pub fn document(&self, format: MessageFormat) -> Value {
        match format {
            MessageFormat::CloudEvents | MessageFormat::Slack => json!({ "text": self.slack() }),
            MessageFormat::Mattermost => json!({ "text": self.mattermost() }),
            MessageFormat::Teams => self.teams(),
        }
    }

    fn slack(&self) -> String {
        self.lines(|title| format!("*{}*", for_slack(title)), for_slack)
    }

    fn mattermost(&self) -> String {
        self.lines(|title| format!("**{}**", for_markdown(title)), for_markdown)
    }

    fn lines(&self, title: impl Fn(&str) -> String, plain: impl Fn(&str) -> String) -> String {
        let facts = self
            .facts
            .iter()
            .map(|(key, value)| format!("\n{}: {}", plain(key), plain(value)));
        facts.fold(title(&self.title), |text, line| text + &line)
    }

    /// A message of a workflow with one adaptive card.
    fn teams(&self) -> Value {
        let facts: Vec<Value> = self
            .facts
            .iter()
            .map(|(key, value)| json!({ "title": key, "value": value }))
            .collect();
        let title = json!({ "type": "TextBlock", "text": self.title, "weight": "Bolder", "size": "Medium", "wrap": true });
        let mut body = vec![title];
        if !facts.is_empty() {
            body.push(json!({ "type": "FactSet", "facts": facts }));
        }
        json!({
            "type": "message",
            "attachments": [{
                "contentType": "application/vnd.microsoft.card.adaptive",
                "contentUrl": null,
                "content": {
                    "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                    "type": "AdaptiveCard",
                    "version": "1.4",
                    "body": body,
                },
            }],
        })
    }
}

fn facts_have(facts: &[(String, String)], key: &str) -> bool {
    facts.iter().any(|(known, _)| known == key)
}

/// A proof is told by what and who, anything else as it is.
fn in_words(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(in_words).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => match (&fields.get("kind"), &fields.get("source")) {
            (Some(Value::String(kind)), Some(Value::String(source))) => format!("{kind} by {source}"),
            _ => value.to_string(),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    };
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(FACT_CHARS)
        .collect()
}

/// The text of a device stays text: it makes no link and mentions no user.
fn for_slack(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Escapes the signs of Markdown; `@all` then mentions no user.
fn for_markdown(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(
            c,
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '~' | '|' | '!'
        ) {
            plain.push('\\');
        }
        plain.push(c);
        if c == '@' {
            // A space without a width.
            plain.push('\u{200b}');
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> Message {
        Message {
            title: "compute-7: host.fenced".to_owned(),
            facts: vec![
                (
                    "proofs".to_owned(),
                    in_words(&json!([{"kind": "power.off", "source": "bmc"}])),
                ),
                (
                    "detail".to_owned(),
                    in_words(&json!("the device answered: <!channel> & @all *now*")),
                ),
            ],
        }
    }

    #[test]
    fn a_slack_message_has_slacks_form_and_its_detail_mentions_no_user() {
        assert_eq!(
            message().document(MessageFormat::Slack),
            json!({"text": "*compute-7: host.fenced*\nproofs: power.off by bmc\ndetail: the device answered: &lt;!channel&gt; &amp; @all *now*"})
        );
    }

    #[test]
    fn a_mattermost_message_is_markdown_with_an_escaped_detail() {
        assert_eq!(
            message().document(MessageFormat::Mattermost)["text"],
            "**compute-7: host.fenced**\nproofs: power.off by bmc\ndetail: the device answered: \\<\\!channel\\> & @\u{200b}all \\*now\\*"
        );
    }

    #[test]
    fn a_teams_message_is_an_adaptive_card() {
        let document = message().document(MessageFormat::Teams);
        let attachment = &document["attachments"][0];
        assert_eq!(document["type"], "message");
        assert_eq!(
            attachment["contentType"],
            "application/vnd.microsoft.card.adaptive"
        );
        let card = &attachment["content"];
        assert_eq!(card["type"], "AdaptiveCard");
        assert_eq!(card["body"][0]["text"], "compute-7: host.fenced");
        assert_eq!(
            card["body"][1]["facts"][0],
            json!({"title": "proofs", "value": "power.off by bmc"})
        );
    }

    #[test]
    fn a_long_detail_is_cut() {
        assert_eq!(in_words(&json!("x".repeat(1000))).len(), FACT_CHARS);
    }
}
