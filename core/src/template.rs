//! Values that hold `${...}`.

/// Whether everything in `${...}` is something that a host has.
pub(crate) fn check_template(value: &str) -> Result<(), String> {
    let is_known = |name: &str| matches!(name, "host.name" | "host.id" | "host.zone");
    expand(value, |name| is_known(name).then(String::new)).map(|_| ())
}

/// The text with every `${...}` filled in.
pub(crate) fn expand(value: &str, lookup: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::with_capacity(value.len());
    let mut rest = value;
    while let Some((before, tail)) = rest.split_once("${") {
        out.push_str(before);
        let Some((name, after)) = tail.split_once('}') else {
            return Err(format!("has a \"${{\" without a \"}}\" in {value:?}"));
        };
        let found = lookup(name).ok_or_else(|| {
            format!("names ${{{name}}}; ${{host.name}}, ${{host.id}} and ${{host.zone}} are allowed")
        })?;
        out.push_str(&found);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}
