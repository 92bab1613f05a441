//! Listings, which services give page by page.
//!
//! How long a page is the service decides: an administrator may allow less than what was asked for. So a short page says nothing; that the
//! listing goes on, the service says with a link.

use serde::Deserialize;

use super::Cloud;
use crate::BackendError;

/// A link of a listing. Where it leads is known: behind the last item.
#[derive(Deserialize)]
pub(super) struct Link {
    rel: String,
}

/// A part of a listing.
pub(super) struct Page<T> {
    items: Vec<T>,
    goes_on: bool,
}

impl<T> Page<T> {
    pub fn new(items: Vec<T>, links: &[Link]) -> Self {
        Self {
            goes_on: !items.is_empty() && links.iter().any(|link| link.rel == "next"),
            items,
        }
    }

    /// The items, and whether they are all.
    pub fn into_parts(self) -> (Vec<T>, bool) {
        (self.items, !self.goes_on)
    }
}

impl Cloud {
    /// All items of a listing, of which `page` fetches what comes after an item, or the beginning. A listing of more than `most` items is
    /// an error: a part of it would be taken for all.
    pub(super) async fn all_pages<T, F>(
        &self,
        service: &'static str,
        most: usize,
        marker_of: impl Fn(&T) -> String,
        page: impl Fn(Option<String>) -> F,
    ) -> Result<Vec<T>, BackendError>
    where
        F: Future<Output = Result<Page<T>, BackendError>>,
    {
        let mut all: Vec<T> = Vec::new();
        while all.len() <= most {
            let (items, is_last) = page(all.last().map(&marker_of)).await?.into_parts();
            all.extend(items);
            if is_last {
                return Ok(all);
            }
        }
        Err(BackendError::Unreadable {
            cloud: self.name().to_owned(),
            service,
            why: format!("the listing has more than {most} items"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(items: &[u8], rels: &[&str]) -> (Vec<u8>, bool) {
        let links: Vec<Link> = rels
            .iter()
            .map(|rel| Link {
                rel: (*rel).to_owned(),
            })
            .collect();
        Page::new(items.to_vec(), &links).into_parts()
    }

    #[test]
    fn a_listing_goes_on_where_the_service_says_so_and_there_was_something() {
        assert_eq!(page(&[1, 2], &["next", "previous"]), (vec![1, 2], false));
        assert_eq!(page(&[1, 2], &["previous"]), (vec![1, 2], true));
        assert_eq!(page(&[], &["next"]), (vec![], true));
    }
}
