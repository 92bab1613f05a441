//! Wrong requests and their errors, and the conventions of the API.

mod audit;
mod bodies;
mod bulk;
mod conditional;
mod configuration;
mod description;
mod filters;
mod health;
mod idempotency;
mod keystone;
mod keystone_faults;
mod limits;
mod lost_answers;
mod overview;
mod paging;
mod queries;
mod roles;
mod services;
mod sessions;
mod stream;
mod versions;
mod warnings;

use reqwest::Method;
use ringfence_tests::{Answer, Client};

#[track_caller]
pub fn refused(answer: &Answer, status: u16, code: &str, words: &[&str]) {
    assert_eq!((answer.status, answer.code()), (status, code), "{}", answer.body);
    for word in words {
        assert!(
            answer.details().contains(word),
            "{word:?} is not in {:?}",
            answer.details()
        );
        // A client that knows no list of errors finds all of it in `message`.
        assert!(
            answer.body["message"].as_str().unwrap().contains(word),
            "{}",
            answer.body
        );
    }
    let error = &answer.body["errors"][0];
    assert_eq!(error["request_id"], answer.header("x-openstack-request-id"));
    assert_eq!(error["status"], status);
}

pub async fn raw(
    client: &Client,
    method: Method,
    path: &str,
    content_type: &str,
    body: impl Into<reqwest::Body>,
) -> Answer {
    client
        .send(
            client
                .request(method, path)
                .header("content-type", content_type)
                .body(body),
        )
        .await
}
