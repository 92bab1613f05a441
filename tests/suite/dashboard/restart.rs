//! The service is restarted under an open page.

use ringfence_tests::{Browser, Client, Machine, Service};
use serde_json::json;

/// A running demonstration.
struct Demo {
    /// Dropped before its machine, to which it prints.
    service: Service,
    machine: Machine,
    url: String,
}

impl Demo {
    async fn start(machine: Machine, listen: &str) -> Self {
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
    async fn link(&mut self) -> String {
        let printed = self.service.until_says(&["/dashboard#ticket="]).await;
        let start = printed.find("/dashboard#ticket=").unwrap();
        let link = printed[start..].split(|c: char| c.is_whitespace()).next();
        link.unwrap().to_owned()
    }

    /// Kills the service with SIGKILL.
    fn kill(&mut self) {
        self.service.kill();
    }

    /// Starts it again where it was.
    async fn start_again(self) -> Self {
        let listen = self.url.trim_start_matches("http://").to_owned();
        Self::start(self.machine, &listen).await
    }

    /// Makes a simulated host hang.
    async fn hang(&self, host: &str) {
        let printed = self.service.printed();
        let (_, simulators) = printed.split_once("curl -X PUT ").unwrap();
        let (simulators, _) = simulators.split_once("/hosts/").unwrap();
        let simulators = Client::new(simulators, None);
        let hung = json!({ "condition": "hung" });
        simulators.put(&format!("/hosts/{host}"), hung).await.ok(204);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_says_that_it_is_out_of_date_and_goes_on_after_a_restart() {
    let mut demo = Demo::start(Machine::new(), "127.0.0.1:0").await;
    let browser = Browser::start(&demo.url).await;
    browser.open(&demo.link().await).await;
    browser.until_says("All 6 hosts are UP.").await;
    browser.until_at("/dashboard").await;
    browser.mark().await;

    demo.kill();
    browser.until_says("Out of date.").await;
    let demo = demo.start_again().await;
    demo.hang("sim-1").await;
    browser.until_says_no_more("Out of date.").await;
    browser.until_says("5 of 6 hosts are UP.").await;
    browser.until_says("sim-1 is UNREACHABLE, was UP").await;
    assert!(browser.is_same_document().await, "the page was loaded anew");
    demo.service.stop().await;
}
