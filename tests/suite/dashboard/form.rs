//! The page's files: how they are served, what they weigh, and what the checkers of types and of style find.

use std::path::{Path, PathBuf};
use std::process::Command;

use ringfence_tests::{Answer, Client, Ground, Site, Stack, StackOptions, page_tools};

/// The most that all files may weigh together, in bytes.
const HEAVIEST: usize = 150_000;

/// The folder of the page's crate.
fn crate_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("dashboard")
}

/// The paths of all files, from the page's folder on.
fn files() -> Vec<String> {
    let folder = crate_folder().join("page");
    let mut found = Vec::new();
    let mut left = vec![folder.clone()];
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(path.read_dir().unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let name = path.strip_prefix(&folder).unwrap();
        found.push(name.to_str().unwrap().to_owned());
    }
    found.sort();
    found
}

fn media_type(file: &str) -> &'static str {
    match file.rsplit_once('.').unwrap().1 {
        "css" => "text/css; charset=utf-8",
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "svg" => "image/svg+xml",
        other => panic!("files with the ending {other} have no known media type"),
    }
}

/// A service without hosts, and a client without a token.
async fn service() -> (Stack, Client) {
    let options = StackOptions {
        engines: 0,
        workers: 0,
        hosts: 0,
        ..StackOptions::default()
    };
    let stack = Stack::start_with(Site::new(Ground::Standalone).await, options).await;
    let client = stack.client.with_token(None);
    (stack, client)
}

/// The sources that a directive of the policy allows.
fn allowed<'a>(policy: &'a str, directive: &str) -> Option<Vec<&'a str>> {
    let mut directives = policy.split(';').map(str::trim);
    let found = directives.find(|text| text.split(' ').next() == Some(directive))?;
    Some(found.split(' ').skip(1).collect())
}

/// A browser runs what the service itself has served and nothing else, asks nothing else, and shows the page in no other page's frame.
fn assert_confined(answer: &Answer) {
    let policy = answer.header("content-security-policy");
    assert_eq!(allowed(policy, "default-src"), Some(vec!["'none'"]), "{policy}");
    for directive in ["script-src", "style-src", "connect-src", "form-action"] {
        let sources = allowed(policy, directive).unwrap_or_default();
        let is_own = matches!(sources.as_slice(), ["'self'"] | ["'none'"]);
        assert!(is_own, "{directive} in {policy}");
    }
    assert_eq!(allowed(policy, "base-uri"), Some(vec!["'none'"]), "{policy}");
    assert_eq!(
        allowed(policy, "frame-ancestors"),
        Some(vec!["'none'"]),
        "{policy}"
    );
    assert!(
        !policy.contains("unsafe-") && !policy.contains("//") && !policy.contains('*'),
        "{policy}"
    );
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
    assert_eq!(answer.header("referrer-policy"), "no-referrer");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_file_is_served_as_what_it_is_and_confined() {
    let (stack, client) = service().await;
    for file in files() {
        let path = format!("/dashboard/{file}");
        let answer = client.get(&path).await;
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.header("content-type"), media_type(&file), "{path}");
        assert_confined(&answer);
        let content = std::fs::read_to_string(crate_folder().join("page").join(&file)).unwrap();
        assert!(answer.body.as_str() == Some(&content), "{path} is another file");
    }
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_address_of_a_view_is_the_page_and_a_missing_file_is_missing() {
    let (stack, client) = service().await;
    let page = std::fs::read_to_string(crate_folder().join("page/index.html")).unwrap();
    for path in [
        "/dashboard",
        "/dashboard/",
        "/dashboard/hosts/h1",
        "/dashboard/hosts/node.example.org",
        "/dashboard/operations?status=needs_operator&limit=20",
    ] {
        let answer = client.get(path).await;
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.header("content-type"), media_type("index.html"), "{path}");
        assert_confined(&answer);
        assert!(answer.body.as_str() == Some(&page), "{path} is another file");
    }
    let missing = client.get("/dashboard/missing.js").await;
    assert_eq!(missing.status, 404);
    stack.stop().await;
}

#[test]
fn all_files_weigh_little() {
    let folder = crate_folder().join("page");
    let weights = files().into_iter().map(|file| {
        let weight = folder.join(&file).metadata().unwrap().len();
        (usize::try_from(weight).unwrap(), file)
    });
    let mut weights: Vec<_> = weights.collect();
    weights.sort();
    let sum: usize = weights.iter().map(|(weight, _)| weight).sum();
    assert!(sum < HEAVIEST, "{sum} bytes: {weights:#?}");
}

/// Runs a tool of the page's in its crate's folder, and panics unless it finds nothing.
fn assert_finds_nothing(tool: &str, arguments: &[&str]) {
    let tools = page_tools().join("node_modules/.bin");
    let done = Command::new(tools.join(tool))
        .args(arguments)
        // The tools look for their Node there.
        .env("PATH", &tools)
        .env("NO_COLOR", "1")
        .current_dir(crate_folder())
        .output()
        .unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr),
    );
    assert!(done.status.success(), "{tool} finds:\n{out}{err}");
}

#[test]
fn the_types_are_right() {
    assert_finds_nothing("tsc", &["--project", "tsconfig.json"]);
}

#[test]
fn the_style_is_kept() {
    assert_finds_nothing("biome", &["ci", "--colors=off", "--error-on-warnings"]);
}
