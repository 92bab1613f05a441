//! What may stand in a subscription as its URL.

use ipnet::IpNet;
use ringfence_core::{Problem, Problems};
use url::{Host, Url};

use super::address;

/// The longest URL, in characters.
const MAX_URL_CHARS: usize = 2048;

/// Refuses what can never be called. Where a name leads is looked at with every call.
pub(crate) fn validate_url(text: &str, allowed: &[IpNet]) -> Result<Url, Problems> {
    read(text, allowed).map_err(|detail| Problems(vec![Problem::new("url", detail)]))
}

fn read(text: &str, allowed: &[IpNet]) -> Result<Url, String> {
    let chars = text.chars().count();
    if chars > MAX_URL_CHARS {
        return Err(format!(
            "has {chars} characters; up to {MAX_URL_CHARS} are allowed"
        ));
    }
    // A reader of URLs mends these without a word, and what is shown would not be what is called.
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err("holds white space or a control character; leave it out, or write it as %20".to_owned());
    }
    let url =
        Url::parse(text).map_err(|error| format!("is no URL ({error}); https://HOST/PATH is allowed"))?;
    if url.scheme() == "mailto" {
        return Err(
            "is an address of e-mail, and no e-mail is sent; name the webhook of a program that sends it, or let Prometheus' \
             Alertmanager send it for the alerts of deploy/prometheus"
                .to_owned(),
        );
    }
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!(
            "has the scheme {:?}; https and http are allowed",
            url.scheme()
        ));
    }
    let authority = text.split_once("://").map(|(_, rest)| rest);
    if authority.is_none_or(|rest| rest.starts_with(['/', '\\'])) {
        return Err("names no host after the two slashes; https://HOST/PATH is allowed".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("holds a user or a password; messages are signed instead".to_owned());
    }
    if url.fragment().is_some() {
        return Err("has a fragment (#...), which is never sent; leave it out".to_owned());
    }
    if url.port() == Some(0) {
        return Err("has port 0; 1 to 65535 is allowed".to_owned());
    }
    check_host(&url, allowed)?;
    Ok(url)
}

/// A name is looked up when it is called; an address can be judged now.
pub(super) fn check_host(url: &Url, allowed: &[IpNet]) -> Result<(), String> {
    let address = match url.host() {
        None => return Err("names no host; https://HOST/PATH is allowed".to_owned()),
        Some(Host::Domain(_)) => return Ok(()),
        Some(Host::Ipv4(address)) => address.into(),
        Some(Host::Ipv6(address)) => address.into(),
    };
    address::check(address, allowed).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_cannot_be_called_is_refused_with_the_reason() {
        let bad = [
            ("hello", "no URL"),
            ("ftp://example.org/", "scheme \"ftp\""),
            ("mailto:ops@example.org", "Alertmanager"),
            ("https://user:hush@example.org/", "password"),
            ("https://example.org/#x", "fragment"),
            ("http://127.0.0.1/", "127.0.0.1"),
            ("http://2130706433/", "127.0.0.1"),
            ("http://0x7f.1/", "127.0.0.1"),
            ("http://[::1]/", "::1"),
            ("http://[::ffff:10.0.0.1]/", "10.0.0.1"),
            ("https://example.org:0/", "port 0"),
            ("http://exa\nmple.org/", "white space"),
            (" http://example.org/", "white space"),
            ("http:///example.org", "no host"),
            ("http:example.org", "no host"),
            ("https:\\\\example.org\\x", "no host"),
        ];
        for (url, why) in bad {
            let told = validate_url(url, &[]).unwrap_err().to_string();
            assert!(told.contains(why) && !told.contains("hush"), "{url}: {told}");
        }
        let long = format!("https://example.org/{}", "x".repeat(MAX_URL_CHARS));
        assert!(validate_url(&long, &[]).unwrap_err().to_string().contains("2048"));
    }

    #[test]
    fn names_and_allowed_networks_pass() {
        assert!(validate_url("https://example.org/hook?x=1", &[]).is_ok());
        assert!(validate_url("http://127.0.0.1:9/", &["127.0.0.0/8".parse().unwrap()]).is_ok());
    }
}
