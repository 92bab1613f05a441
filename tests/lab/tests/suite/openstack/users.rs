//! The users' roles.

use ringfence_lab::{Api, Call, User};

use super::cloud;

#[test]
fn every_user_signs_in_and_only_administrators_see_hosts() {
    let cloud = cloud();
    let status = |user, path| {
        let call = Call::new("GET", Api::Compute, path).by(user);
        cloud.ask(&call).unwrap().status
    };
    for user in [User::Admin, User::Fencing, User::FencingReader, User::Demo] {
        assert_eq!(status(user, "/servers"), 200, "{user:?}");
    }
    let seen = [User::Admin, User::Fencing, User::FencingReader, User::Demo]
        .map(|user| status(user, "/os-services"));
    assert_eq!(seen, [200, 200, 403, 403]);
}
