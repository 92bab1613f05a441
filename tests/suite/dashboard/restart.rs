//! The service is restarted under an open page.

use ringfence_tests::{Browser, Machine};

use super::demonstration::Demo;

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
