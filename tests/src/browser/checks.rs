//! What holds for every view: it can be used by everyone, it is not wider than the window, it asks its own service alone.

use std::path::PathBuf;

use serde_json::Value;

use super::Browser;

/// The rules of WCAG 2.2 AA, and what is good practice beyond them.
const AXE: &str = "
    const done = arguments[arguments.length - 1];
    const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
    axe.run(document, { runOnly: { type: 'tag', values: tags }, resultTypes: ['violations'] }).then(
      ({ violations }) => done(violations.flatMap((rule) => rule.nodes.map(
        (node) => `${rule.id}: ${node.target.flat().join(' ')}: ${node.failureSummary}`))),
      (error) => done([`axe-core failed: ${error}`]));
";

/// Names the elements that stand out of the window to the right, the innermost ones alone.
const OVERFLOW: &str = "
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= innerWidth) return [];
    const found = [];
    const visit = (root) => {
      for (const element of root.querySelectorAll('*')) {
        const box = element.getBoundingClientRect();
        if (box.right > width + 0.5 && element.childElementCount === 0)
          found.push(`${element.outerHTML.slice(0, 160)} ends at ${box.right} of ${width} px`);
        if (element.shadowRoot) visit(element.shadowRoot);
      }
    };
    visit(document);
    return found.length > 0 ? found : [`the page is ${document.documentElement.scrollWidth} px wide`];
";

/// The addresses of everything that the page has loaded.
const LOADED: &str = "return performance.getEntriesByType('resource').map((entry) => entry.name)";

/// What the browser's console has to say against the page.
#[derive(Clone, Debug)]
pub struct Complaint {
    /// Who says it, such as `javascript` or `security`.
    pub source: String,
    pub text: String,
}

/// The folder with the page's tools, in whose `node_modules` they are.
pub fn page_tools() -> PathBuf {
    let folder = std::env::var_os("RINGFENCE_TEST_PAGE_TOOLS")
        .expect("RINGFENCE_TEST_PAGE_TOOLS is not set; run the tests with `cargo xtask test`");
    PathBuf::from(folder)
}

impl Browser {
    /// What axe-core finds, one line for each element.
    pub async fn barriers(&self) -> Vec<String> {
        let axe = page_tools().join("node_modules/axe-core/axe.min.js");
        let axe = std::fs::read_to_string(axe).unwrap();
        self.run(&axe, Vec::new()).await;
        lines(&self.run_and_wait(AXE).await)
    }

    /// The elements by which the page is wider than the window.
    pub async fn too_wide(&self) -> Vec<String> {
        lines(&self.run(OVERFLOW, Vec::new()).await)
    }

    /// What the page has loaded from elsewhere than its own service.
    pub async fn foreign(&self) -> Vec<String> {
        let mut loaded = lines(&self.run(LOADED, Vec::new()).await);
        loaded.retain(|address| !address.starts_with(&self.base));
        loaded
    }

    /// What the console says against the page since the last call.
    pub async fn complaints(&self) -> Vec<Complaint> {
        let log = self.log().await;
        let entries = log.as_array().cloned().unwrap_or_default();
        entries.iter().filter_map(complaint).collect()
    }
}

/// Refusals are answers that the page is made for; the browser logs each as an error of its own.
fn complaint(entry: &Value) -> Option<Complaint> {
    let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
    let complaint = Complaint {
        source: text("source"),
        text: text("message"),
    };
    let is_refusal = complaint.source == "network" && complaint.text.contains("with a status of 4");
    let is_complaint = ["SEVERE", "WARNING"].contains(&text("level").as_str());
    (is_complaint && !is_refusal).then_some(complaint)
}

fn lines(list: &Value) -> Vec<String> {
    let list = list.as_array().cloned().unwrap_or_default();
    let lines = list.iter().filter_map(|line| line.as_str().map(str::to_owned));
    lines.collect()
}
