//! A person who knows nothing of Ringfence, and has the demonstration's link alone.

use ringfence_tests::{Browser, Client, Machine, Service};
use serde_json::json;

use super::REASON;

/// A running demonstration.
pub struct Demo {
    /// Dropped before its machine, to which it prints.
    pub service: Service,
    machine: Machine,
    pub url: String,
}

impl Demo {
    pub async fn start(machine: Machine, listen: &str) -> Self {
        let words = ["standalone", "--demo", "--listen", listen, "--data-dir", "data"];
        let mut service = machine.start("standalone", &words);
        let url = service.until_it_listens("ready").await;
        Self {
            service,
            machine,
            url,
        }
    }

    /// The link that signs in, from its path on.
    pub async fn link(&mut self) -> String {
        let printed = self.service.until_says(&["/dashboard#ticket="]).await;
        let start = printed.find("/dashboard#ticket=").unwrap();
        let link = printed[start..].split(|c: char| c.is_whitespace()).next();
        link.unwrap().to_owned()
    }

    /// Kills the service with SIGKILL.
    pub fn kill(&mut self) {
        self.service.kill();
    }

    /// Starts it again where it was.
    pub async fn start_again(self) -> Self {
        let listen = self.url.trim_start_matches("http://").to_owned();
        Self::start(self.machine, &listen).await
    }

    /// Makes a simulated host hang.
    pub async fn hang(&self, host: &str) {
        let printed = self.service.printed();
        let (_, simulators) = printed.split_once("curl -X PUT ").unwrap();
        let (simulators, _) = simulators.split_once("/hosts/").unwrap();
        let simulators = Client::new(simulators, None);
        let hung = json!({ "condition": "hung" });
        simulators.put(&format!("/hosts/{host}"), hung).await.ok(204);
    }
}

/// Chooses the word that begins so, with the keyboard.
async fn choose(browser: &Browser, what: &str, beginning: &str) {
    browser.tab_to("combobox", what).await;
    browser.type_text(beginning).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newcomer_breaks_a_host_watches_it_fenced_reads_why_and_takes_it_back() {
    let mut demo = Demo::start(Machine::new(), "127.0.0.1:0").await;
    let browser = Browser::start(&demo.url).await;
    browser.open(&demo.link().await).await;
    browser.until_says("Nothing needs you. All 6 hosts are UP.").await;
    browser.until_says("Break a host").await;

    choose(&browser, "Condition of sim-1", "h").await;
    browser.until_says("1 thing needs you.").await;
    browser
        .until_says("sim-1: UNREACHABLE, and no fence begins by itself")
        .await;
    browser.click("button", "Fence...").await;
    browser
        .until_says("Stops the host by power, storage and network")
        .await;
    browser.fill("textbox", REASON, "it does not answer").await;
    browser.click("button", "Fence sim-1").await;
    browser.until_says("sim-1: its fence began.").await;
    browser.click("button", "Close").await;

    browser.open("/dashboard/hosts/sim-1").await;
    browser.until_says("FENCED since").await;
    browser.until_says("proven by power.off").await;
    browser.click("button", "Rejoin...").await;
    browser.fill("textbox", REASON, "it is repaired").await;
    browser.click("button", "Rejoin sim-1").await;
    browser.until_says("sim-1: its rejoin began.").await;
    browser.click("button", "Close").await;
    browser.open("/dashboard").await;
    browser.until_says("Nothing needs you. All 6 hosts are UP.").await;
    demo.service.stop().await;
}
