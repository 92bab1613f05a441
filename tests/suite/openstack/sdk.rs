//! What openstacksdk shows of an error of the API.

use std::process::Command;

use ringfence_tests::{Ground, Stack};

/// Handles an answer as every proxy of the SDK does.
const SCRIPT: &str = "
import os
import requests
from openstack import exceptions

answer = requests.get(os.environ['URL'], headers={'X-Auth-Token': os.environ['TOKEN']})
try:
    exceptions.raise_from_response(answer)
except exceptions.SDKException as error:
    print(type(error).__name__, error)
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openstacksdk_shows_why_a_request_was_refused() {
    let stack = Stack::start(Ground::Standalone).await;
    let client = &stack.client;
    for (path, kind, why) in [
        (
            "/hosts/h9",
            "ResourceNotFound NotFoundException",
            "there is no host \"h9\"",
        ),
        (
            "/hosts?colour=red",
            "BadRequestException",
            "colour: is not known here",
        ),
    ] {
        let done = Command::new("/usr/bin/python3")
            .args(["-c", SCRIPT])
            .env("URL", format!("{}{path}", client.base()))
            .env("TOKEN", client.token().unwrap())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&done.stdout);
        let (told, rest) = said.split_once(' ').unwrap_or_else(|| panic!("{done:?}"));
        // The SDK's name for a 404 has changed over the years.
        assert!(kind.split(' ').any(|kind| kind == told), "{said}");
        assert!(rest.contains(why), "{said}");
    }
    stack.stop().await;
}
