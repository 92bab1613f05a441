//! A Nova API of one test, with middleware.

use ringfence_lab::{Api, Call, LabError, NovaApiOptions, WsgiFilter};
use serde_json::json;

use super::cloud;

const MIDDLEWARE: &str = r#"
import json

def factory(_, **settings):
    def wrap(application):
        def answer(environment, start):
            if environment["REQUEST_METHOD"] != "POST":
                return application(environment, start)
            start("403 Forbidden", [("Content-Type", "application/json")])
            who = environment["HTTP_X_USER_NAME"]
            return [json.dumps({"refused": settings["word"], "user": who}).encode()]
        return answer
    return wrap
"#;

#[test]
fn a_private_api_can_be_killed_and_started_and_has_middleware() {
    let cloud = cloud();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("story_middleware.py"), MIDDLEWARE).unwrap();
    let filter = WsgiFilter {
        factory: "story_middleware:factory".to_owned(),
        python_path: folder.path().to_owned(),
        settings: vec![("word".to_owned(), "not today".to_owned())],
    };
    let mut api = cloud
        .nova_api(NovaApiOptions {
            filter: Some(filter),
            ..NovaApiOptions::default()
        })
        .unwrap();
    let call = |method, path| Call {
        base: Some(api.url()),
        ..Call::new(method, Api::Compute, path)
    };
    let (read, write) = (call("GET", "/flavors"), call("POST", "/flavors").json(json!({})));

    assert_eq!(cloud.ask(&read).unwrap().status, 200);
    let refused = cloud.ask(&write).unwrap();
    assert_eq!(
        (refused.status, refused.body),
        (403, json!({"refused": "not today", "user": "admin"}))
    );

    api.kill();
    assert!(matches!(cloud.ask(&read), Err(LabError::Unreachable { .. })));
    assert!(cloud.get(Api::Compute, "/flavors").is_ok());
    api.start_again().unwrap();
    assert_eq!(cloud.ask(&read).unwrap().status, 200);
}
