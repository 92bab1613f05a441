//! The documentation: every command on its pages is run, and its answer compared. [`ringfence_tests::pages`] describes the rules.

mod places;

use std::path::{Path, PathBuf};

use ringfence_tests::pages::{Shell, dead_links, walk};

/// The pages that need an OpenStack are run in tests/suite/openstack.
pub const WITH_A_CLOUD: &str = "docs/first-evacuation.md";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// README and the pages of `docs/`, without the decisions.
fn all_pages() -> Vec<String> {
    let files = std::fs::read_dir(root().join("docs"))
        .unwrap()
        .map(Result::unwrap);
    let mut pages: Vec<_> = files
        .map(|file| format!("docs/{}", file.file_name().into_string().unwrap()))
        .filter(|page| page.ends_with(".md"))
        .collect();
    pages.push("README.md".to_owned());
    pages
}

#[test]
fn a_page_without_a_test_has_no_code() {
    for page in all_pages() {
        if PAGES.contains(&page.as_str()) || page == WITH_A_CLOUD {
            continue;
        }
        let text = std::fs::read_to_string(root().join(&page)).unwrap();
        let (blocks, complaints) = ringfence_tests::pages::read_blocks(&text);
        assert!(
            blocks.is_empty() && complaints.is_empty(),
            "{page} has code and is in no test: {complaints:?}"
        );
    }
}

/// The names in the first column of the table below a heading.
fn parameters_below<'a>(page: &'a str, heading: &str) -> Vec<&'a str> {
    let (_, section) = page.split_once(heading).unwrap();
    let rows = section.lines().skip_while(|line| !line.starts_with("| ")).skip(2);
    let rows = rows.take_while(|line| line.starts_with("| "));
    rows.filter_map(|line| line.split('`').nth(1)).collect()
}

#[test]
fn the_page_names_exactly_the_parameters_that_each_driver_declares() {
    let page = std::fs::read_to_string(root().join("docs/methods-and-plans.md")).unwrap();
    for driver in ringfence_workers::catalogue().all() {
        let mut declared: Vec<_> = driver.parameters.iter().map(|parameter| parameter.name).collect();
        declared.extend(driver.secrets.iter().map(|secret| secret.name));
        declared.sort_unstable();
        let mut named = parameters_below(&page, &format!("\n### `{}`\n", driver.name));
        named.sort_unstable();
        assert_eq!(named, declared, "{}", driver.name);
    }
}

#[test]
fn every_link_has_a_target() {
    let mut pages = all_pages();
    pages.extend(
        [
            "ARCHITECTURE.md",
            "CONTRIBUTING.md",
            "bench/README.md",
            "docs/adr/README.md",
        ]
        .map(str::to_owned),
    );
    let links = pages.iter().flat_map(|page| dead_links(&root().join(page)));
    let dead: Vec<_> = links.collect();
    assert_eq!(dead, Vec::<String>::new());
}

fn walk_in(page: &str, shell: &mut Shell) {
    tokio::task::block_in_place(|| walk(page, shell));
}

/// A test for each page.
macro_rules! pages {
    ($($story:ident: $page:literal in $place:expr;)+) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $story() {
            let place = $place;
            walk_in($page, &mut place.shell());
        })+

        /// Each page with commands or configuration.
        const PAGES: &[&str] = &[$($page),+];
    };
}

pages! {
    the_readme_can_be_followed_to_the_letter: "README.md" in places::newcomer();
    the_api_answers_as_its_page_says: "docs/api.md" in places::demo().await;
    configurations_that_are_shown_are_accepted: "docs/configuration.md" in places::newcomer();
    the_deployment_guide_ends_with_a_fenced_host: "docs/deploy.md" in places::installation().await;
    a_cluster_is_set_up_as_the_page_of_node_fences_says: "docs/kubernetes-nodefence.md" in places::newcomer();
    what_is_declared_in_a_cluster_is_checked_elsewhere: "docs/kubernetes-configuration.md" in places::newcomer();
    every_example_of_methods_and_plans_is_accepted: "docs/methods-and-plans.md" in places::demo().await;
    every_example_of_clouds_is_accepted: "docs/fencing-clouds.md" in places::demo().await;
    an_operator_gets_the_answers_of_the_guide: "docs/operations.md" in places::demo().await;
    what_is_done_inside_a_cluster_is_checked_elsewhere: "docs/kubernetes.md" in places::newcomer();
    what_is_installed_in_a_cluster_is_checked_elsewhere: "docs/kubernetes-gates.md" in places::newcomer();
    what_is_set_up_in_pacemaker_is_checked_elsewhere: "docs/pacemaker.md" in places::newcomer();
    the_way_from_asked_to_automatic_can_be_walked: "docs/policies.md" in places::demo().await;
    the_quick_start_leads_from_nothing_to_a_fenced_host: "docs/quick-start.md" in places::fresh_server().await;
    tokens_are_made_as_the_page_says: "docs/security.md" in places::control_plane();
    webhooks_are_set_up_as_the_page_says: "docs/subscriptions.md" in places::demo().await;
}
