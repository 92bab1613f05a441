//! An error with everything that caused it, in one line.

use std::error::Error;

/// An error with its sources. A source whose text the line already ends with is left out.
#[must_use]
pub fn error_chain(error: &(dyn Error + 'static)) -> String {
    let mut line = error.to_string();
    for cause in std::iter::successors(error.source(), |cause| (**cause).source()) {
        let text = cause.to_string();
        if !line.ends_with(&text) {
            line = format!("{line}: {text}");
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum Broken {
        #[error("the plug does not answer")]
        Plug(#[source] std::io::Error),
        #[error("the strip is away: {0}")]
        Strip(#[source] Box<Broken>),
    }

    #[test]
    fn each_cause_is_told_once() {
        let plug = Broken::Plug(std::io::Error::other("no route"));
        assert_eq!(error_chain(&plug), "the plug does not answer: no route");
        let strip = Broken::Strip(Box::new(plug));
        assert_eq!(
            error_chain(&strip),
            "the strip is away: the plug does not answer: no route"
        );
    }
}
