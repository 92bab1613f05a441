//! Finds hosts that give equal parameters to a method.

use std::collections::BTreeMap;

use ringfence_core::{Host, Segment};
use ringfence_db::{Database, delete_host, given_for, hosts_with_like_parameters, insert_host};

use crate::rig::Rig;
use crate::site::{host, one_host, update_host};

crate::stories!(
    host_parameters: hosts_with_equal_parameters_for_a_method_are_found,
    what_hosts_give_for_a_method_is_found_while_they_do,
);

async fn add(db: &Database, name: &str, segment: &Segment, given: &[(&str, &str)]) -> Host {
    let mut host = host(name, segment);
    host.parameters = parameters(given);
    insert_host(&mut db.reader(), &host).await.unwrap();
    host
}

/// The parameter `plug` of each method.
fn parameters(given: &[(&str, &str)]) -> BTreeMap<String, BTreeMap<String, String>> {
    let one = |(method, plug): &(&str, &str)| {
        let own = BTreeMap::from([("plug".to_owned(), (*plug).to_owned())]);
        ((*method).to_owned(), own)
    };
    given.iter().map(one).collect()
}

async fn hosts_with_equal_parameters_for_a_method_are_found(rig: &Rig) {
    let db = &rig.db;
    let run = &mut db.reader();
    let (segment, plain) = one_host(db).await;
    let a = add(db, "a", &segment, &[("pdu", "1"), ("bmc", "7")]).await;
    let mut b = add(db, "b", &segment, &[("pdu", "2")]).await;
    let c = add(db, "c", &segment, &[("pdu", "1"), ("bmc", "8")]).await;
    // An equal value for another method means another device.
    let d = add(db, "d", &segment, &[("switch", "1")]).await;
    for (host, like) in [(&a, vec![c.id]), (&b, vec![]), (&d, vec![]), (&plain, vec![])] {
        assert_eq!(
            hosts_with_like_parameters(run, host.id, 9).await.unwrap(),
            like,
            "{}",
            host.name
        );
    }
    b.parameters = parameters(&[("bmc", "7"), ("pdu", "1")]);
    update_host(run, &b, None).await.unwrap();
    let mut like = hosts_with_like_parameters(run, a.id, 9).await.unwrap();
    like.sort();
    like.dedup();
    let mut expected = vec![b.id, c.id];
    expected.sort();
    assert_eq!(like, expected);
    assert_eq!(hosts_with_like_parameters(run, a.id, 1).await.unwrap().len(), 1);
    delete_host(run, b.id).await.unwrap();
    delete_host(run, c.id).await.unwrap();
    assert!(hosts_with_like_parameters(run, a.id, 9).await.unwrap().is_empty());
}

async fn what_hosts_give_for_a_method_is_found_while_they_do(rig: &Rig) {
    let db = &rig.db;
    let run = &mut db.reader();
    let (segment, _) = one_host(db).await;
    let mut a = add(db, "a", &segment, &[("kdump", "1"), ("bmc", "7")]).await;
    let b = add(db, "b", &segment, &[("kdump", "2")]).await;
    add(db, "c", &segment, &[("bmc", "8")]).await;
    let mut expected = vec![
        (a.id, a.parameters["kdump"].clone()),
        (b.id, b.parameters["kdump"].clone()),
    ];
    expected.sort_by_key(|(id, _)| *id);
    assert_eq!(given_for(run, "kdump").await.unwrap(), expected);
    a.parameters = parameters(&[("bmc", "7")]);
    update_host(run, &a, None).await.unwrap();
    delete_host(run, b.id).await.unwrap();
    assert_eq!(given_for(run, "kdump").await.unwrap(), []);
}
