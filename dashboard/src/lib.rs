//! The operator's page: its files, as they are embedded in the binary and run in a browser. Nothing is built or generated.

/// A file of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File {
    /// For the header `Content-Type`.
    pub content_type: &'static str,
    /// What is in it.
    pub bytes: &'static [u8],
}

/// The file at this path below `/dashboard/`; the empty path is the page itself.
pub fn file(path: &str) -> Option<File> {
    let path = if path.is_empty() { PAGE } else { path };
    FILES
        .iter()
        .find(|(name, _)| *name == path)
        .map(|(_, file)| *file)
}

const PAGE: &str = "index.html";
const CSS: &str = "text/css; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! files {
    ($($name:literal: $content_type:expr),+ $(,)?) => {
        /// Every file, by its path.
        pub const FILES: &[(&str, File)] = &[$(
            ($name, File { content_type: $content_type, bytes: include_bytes!(concat!("../page/", $name)) }),
        )+];
    };
}

files! {
    "act.js": JS,
    "api.js": JS,
    "app.js": JS,
    "bound.js": JS,
    "dialog.js": JS,
    "dom.js": JS,
    "icon.svg": SVG,
    "index.html": HTML,
    "map.js": JS,
    "needs.js": JS,
    "parts.js": JS,
    "plan.js": JS,
    "router.js": JS,
    "session.js": JS,
    "shapes.js": JS,
    "site.js": JS,
    "stream.js": JS,
    "style.css": CSS,
    "table.js": JS,
    "time.js": JS,
    "timeline.js": JS,
    "value.js": JS,
    "view.js": JS,
    "views/configured.js": JS,
    "views/demo.js": JS,
    "views/host.js": JS,
    "views/lists.js": JS,
    "views/operation.js": JS,
    "views/overview.js": JS,
    "views/records.js": JS,
    "views/sign-in.js": JS,
    "words.js": JS,
}
