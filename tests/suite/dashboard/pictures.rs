//! Pictures of views, compared with those that a person has looked at.

use std::path::{Path, PathBuf};

use ringfence_tests::{Picture, page_artefacts};

/// In a thousand pixels of a quarter's picture, as many may differ: letters and ages of another run.
const MOST: usize = 40;
/// Rows of a quarter's picture that are compared: what a person sees first. How long a list is differs from run to run.
const ROWS: usize = 225;
/// With this variable, the pictures that are there become the known ones.
const BLESS: &str = "RINGFENCE_BLESS";

/// Where the pictures are that a person has looked at.
fn known(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("suite/dashboard/pictures");
    folder.join(format!("{name}.png"))
}

/// Keeps the picture in `target/page`, and says what is wrong with it, if anything is.
pub fn fault(name: &str, png: &[u8]) -> Option<String> {
    let kept = page_artefacts().join(format!("{name}.png"));
    std::fs::write(&kept, png).unwrap();
    let small = Picture::from_png(png).quarter().top(ROWS);
    let known = known(name);
    if std::env::var_os(BLESS).is_some_and(|value| value == "1") {
        std::fs::write(&known, small.to_png()).unwrap();
        return None;
    }
    let how_to_renew = format!(
        "look at {}, and renew with {BLESS}=1 if it is right",
        kept.display()
    );
    let Ok(bytes) = std::fs::read(&known) else {
        return Some(format!("{name} has no known picture; {how_to_renew}"));
    };
    let differing = small.difference(&Picture::from_png(&bytes));
    (differing > MOST).then(|| {
        format!(
            "{name} looks otherwise than it was known to: {differing} of 1000 pixels differ; {how_to_renew}"
        )
    })
}
