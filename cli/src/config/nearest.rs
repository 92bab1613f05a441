//! The known name that a misspelt name was probably meant to be.

/// The name of `known` (which must not be empty) that is nearest to `name`. A key of this name in another section is the nearest of all.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> &'a str {
    let last = |key: &str| key.rsplit('.').next().unwrap_or(key).to_owned();
    let own = last(name);
    let distance = |candidate: &&str| {
        let is_elsewhere = name.contains('.') && last(candidate) == own;
        (!is_elsewhere, strsim::damerau_levenshtein(name, candidate))
    };
    known.min_by_key(distance).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 4] = ["api.listen", "engine.name", "engine.tick_ms", "worker.name"];

    #[test]
    fn a_typing_mistake_finds_its_key() {
        assert_eq!(nearest("engine.tik_ms", KEYS.into_iter()), "engine.tick_ms");
    }

    #[test]
    fn a_key_in_the_wrong_section_finds_the_right_one() {
        assert_eq!(nearest("engine.listen", KEYS.into_iter()), "api.listen");
    }
}
