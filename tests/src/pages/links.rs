//! Links between pages.

use std::collections::HashSet;
use std::path::Path;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// The page's links to files and headings that do not exist.
pub fn dead_links(page: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(page).unwrap();
    let links = Parser::new_ext(&text, Options::ENABLE_TABLES).filter_map(|event| match event {
        Event::Start(Tag::Link { dest_url, .. }) => Some(dest_url.into_string()),
        _ => None,
    });
    let is_outside = |link: &String| link.starts_with("http://") || link.starts_with("https://");
    links
        .filter(|link| !is_outside(link) && !is_alive(page, link))
        .map(|link| format!("{}: {link}", page.display()))
        .collect()
}

fn is_alive(page: &Path, link: &str) -> bool {
    let (file, heading) = link.split_once('#').unwrap_or((link, ""));
    let target = if file.is_empty() {
        page.to_owned()
    } else {
        page.parent().unwrap().join(file)
    };
    target.exists() && (heading.is_empty() || headings(&target).contains(heading))
}

/// Anchors of the headings, as GitHub names them.
fn headings(page: &Path) -> HashSet<String> {
    let text = std::fs::read_to_string(page).unwrap_or_default();
    let mut names = HashSet::new();
    let mut open: Option<String> = None;
    for event in Parser::new_ext(&text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. }) => open = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => names.extend(open.take().map(|title| anchor(&title))),
            Event::Text(part) | Event::Code(part) => {
                if let Some(title) = &mut open {
                    title.push_str(&part);
                }
            }
            _ => {}
        }
    }
    names
}

fn anchor(title: &str) -> String {
    let keep = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let kept = title.to_lowercase().chars().filter(keep).collect::<String>();
    kept.replace(' ', "-")
}
