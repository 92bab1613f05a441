//! What an answer holds: one object, or a page of a listing.
//!
//! The service decides how long a page is: an administrator may allow fewer items than were asked for. So a short page does not end a
//! listing; the service says with a link that more items follow. The crate ignores the link, and asks for one page more.

use std::collections::HashMap;

use openstack::{Error, ErrorKind};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// A link of a listing. The address is not needed: the next page begins after the last item.
#[derive(Deserialize)]
struct Link {
    rel: String,
}

/// A part of a listing.
pub(super) struct Page<T> {
    pub items: Vec<T>,
    /// Whether items follow that are not in this page.
    pub goes_on: bool,
}

/// The whole answer.
pub(super) fn whole<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))
}

/// The value that an answer has under a key.
pub(super) fn under<T: DeserializeOwned>(text: &str, key: &str) -> Result<T, Error> {
    found(text, key)?.ok_or_else(|| unreadable(format!("the answer has no {key}")))
}

/// The items that an answer has under a key.
pub(super) fn page<T: DeserializeOwned>(text: &str, key: &str) -> Result<Page<T>, Error> {
    let items: Vec<T> = under(text, key)?;
    let links: Vec<Link> = found(text, &format!("{key}_links"))?.unwrap_or_default();
    Ok(Page {
        goes_on: !items.is_empty() && links.iter().any(|link| link.rel == "next"),
        items,
    })
}

fn found<T: DeserializeOwned>(text: &str, key: &str) -> Result<Option<T>, Error> {
    let parts: HashMap<String, &RawValue> = whole(text)?;
    parts.get(key).map(|part| whole(part.get())).transpose()
}

fn unreadable(why: String) -> Error {
    Error::new(ErrorKind::InvalidResponse, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page_with(items: &str, links: &str) -> (Vec<u8>, bool) {
        let page = page(&format!(r#"{{"ports": {items}{links}}}"#), "ports").unwrap();
        (page.items, page.goes_on)
    }

    #[test]
    fn a_listing_goes_on_where_the_service_says_so_and_there_was_something() {
        let next = r#", "ports_links": [{"rel": "next", "href": "x"}, {"rel": "previous", "href": "y"}]"#;
        let previous = r#", "ports_links": [{"rel": "previous", "href": "y"}]"#;
        assert_eq!(page_with("[1, 2]", next), (vec![1, 2], true));
        assert_eq!(page_with("[1, 2]", previous), (vec![1, 2], false));
        assert_eq!(page_with("[1, 2]", ""), (vec![1, 2], false));
        assert_eq!(page_with("[]", next), (vec![], false));
    }

    #[test]
    fn an_answer_of_another_form_is_told() {
        for (text, why) in [
            ("<html>", "expected value"),
            (r#"{"servers": []}"#, "the answer has no ports"),
        ] {
            let error = page::<u8>(text, "ports").err().unwrap();
            assert_eq!(error.kind(), ErrorKind::InvalidResponse);
            assert!(error.to_string().contains(why), "{error}");
        }
    }
}
