//! Sessions of browsers: found by their cookies, listed by whose they are, and over at their end.

use ringfence_db::{
    SessionRow, delete_ended_sessions, delete_oldest_sessions, delete_session, insert_session, session_of,
    sessions_of,
};
use uuid::Uuid;

use crate::rig::Rig;
use crate::site::at;

crate::stories!(sessions:
    a_session_is_found_by_its_cookie_until_it_ends,
    a_caller_ends_its_own_sessions_alone,
    the_oldest_sessions_of_a_caller_go_first,
);

async fn begun(rig: &Rig, actor: &str, digest: &str, from_s: i64) -> SessionRow {
    let session = SessionRow {
        id: Uuid::new_v4(),
        digest: digest.to_owned(),
        sealed: "sealed".to_owned(),
        actor: actor.to_owned(),
        address: Some("192.0.2.1".to_owned()),
        signed_in_at: at(from_s),
        expires_at: at(from_s + 60),
    };
    insert_session(&mut rig.db.reader(), &session).await.unwrap();
    session
}

async fn a_session_is_found_by_its_cookie_until_it_ends(rig: &Rig) {
    let session = begun(rig, "alice", "d1", 0).await;
    let mut run = rig.db.reader();
    assert_eq!(session_of(&mut run, "d1", at(59)).await.unwrap(), Some(session));
    assert_eq!(session_of(&mut run, "d2", at(59)).await.unwrap(), None);
    assert_eq!(session_of(&mut run, "d1", at(60)).await.unwrap(), None);
    assert_eq!(delete_ended_sessions(&mut run, at(59)).await.unwrap(), 0);
    assert_eq!(delete_ended_sessions(&mut run, at(60)).await.unwrap(), 1);
}

async fn a_caller_ends_its_own_sessions_alone(rig: &Rig) {
    let (first, second) = (
        begun(rig, "alice", "d1", 0).await,
        begun(rig, "alice", "d2", 1).await,
    );
    begun(rig, "bob", "d3", 2).await;
    let mut run = rig.db.reader();
    let listed = sessions_of(&mut run, "alice", at(2), 10).await.unwrap();
    assert_eq!(listed, [second, first.clone()]);
    assert!(!delete_session(&mut run, first.id, "bob").await.unwrap());
    assert!(delete_session(&mut run, first.id, "alice").await.unwrap());
    assert!(!delete_session(&mut run, first.id, "alice").await.unwrap());
}

async fn the_oldest_sessions_of_a_caller_go_first(rig: &Rig) {
    for (number, digest) in ["d0", "d1", "d2"].into_iter().enumerate() {
        begun(rig, "alice", digest, i64::try_from(number).unwrap()).await;
    }
    begun(rig, "bob", "d3", 0).await;
    let mut run = rig.db.reader();
    assert_eq!(delete_oldest_sessions(&mut run, "alice", 2).await.unwrap(), 1);
    assert_eq!(session_of(&mut run, "d0", at(3)).await.unwrap(), None);
    for digest in ["d1", "d2", "d3"] {
        assert!(session_of(&mut run, digest, at(3)).await.unwrap().is_some());
    }
}
