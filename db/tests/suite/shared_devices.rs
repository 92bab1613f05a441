//! Pairs of hosts that share a device.

use ringfence_db::{
    SharedDevice, add_shared_devices, configuration_revision, delete_host, delete_method, insert_method,
    remove_shared_devices, shared_devices, shared_devices_of,
};
use uuid::Uuid;

use crate::configuration::method_named;
use crate::rig::Rig;
use crate::site::{add_hosts, assert_refused, one_host};

crate::stories!(shared_devices:
    a_pair_of_hosts_with_a_shared_device_is_stored_once_and_removed_with_a_host_or_method,
    changes_of_shared_devices_are_counted_with_those_of_plans,
);

fn shared(
    host: &ringfence_core::Host,
    with: &ringfence_core::Host,
    method: &ringfence_core::Method,
) -> SharedDevice {
    SharedDevice {
        id: Uuid::new_v4(),
        host_id: host.id,
        method_id: method.id,
        with_host_id: with.id,
        with_method_id: method.id,
    }
}

async fn a_pair_of_hosts_with_a_shared_device_is_stored_once_and_removed_with_a_host_or_method(rig: &Rig) {
    let db = &rig.db;
    let run = &mut db.reader();
    let (segment, a) = one_host(db).await;
    let others = add_hosts(run, &segment, &["b", "c"]).await;
    let (b, c) = (&others[0], &others[1]);
    let (bmc, pdu) = (method_named("bmc"), method_named("pdu"));
    insert_method(run, &bmc).await.unwrap();
    insert_method(run, &pdu).await.unwrap();
    let rows = [
        shared(&a, b, &bmc),
        shared(b, &a, &bmc),
        shared(c, &a, &pdu),
        // Another engine has found the pair too.
        shared(&a, c, &bmc),
    ];
    add_shared_devices(db, &rows).await.unwrap();
    assert_eq!(shared_devices(run, 9).await.unwrap().len(), 3);
    assert_eq!(shared_devices(run, 2).await.unwrap().len(), 2);
    assert_eq!(shared_devices_of(run, a.id).await.unwrap(), rows[..1]);
    assert_refused(add_shared_devices(db, &[shared(c, c, &bmc)]).await);

    remove_shared_devices(db, &[rows[0].id]).await.unwrap();
    assert!(shared_devices_of(run, a.id).await.unwrap().is_empty());
    delete_method(run, pdu.id).await.unwrap();
    assert_eq!(shared_devices(run, 9).await.unwrap(), rows[1..2]);
    // One host of the pair is removed.
    delete_host(run, a.id).await.unwrap();
    assert!(shared_devices(run, 9).await.unwrap().is_empty());
}

async fn changes_of_shared_devices_are_counted_with_those_of_plans(rig: &Rig) {
    let db = &rig.db;
    let run = &mut db.reader();
    let (segment, a) = one_host(db).await;
    let others = add_hosts(run, &segment, &["b"]).await;
    let bmc = method_named("bmc");
    insert_method(run, &bmc).await.unwrap();
    let before = configuration_revision(run).await.unwrap();
    let rows = [shared(&a, &others[0], &bmc), shared(&others[0], &a, &bmc)];
    add_shared_devices(db, &rows).await.unwrap();
    let added = configuration_revision(run).await.unwrap();
    assert!(added > before);
    remove_shared_devices(db, &[]).await.unwrap();
    assert_eq!(configuration_revision(run).await.unwrap(), added);
    remove_shared_devices(db, &[rows[0].id]).await.unwrap();
    let removed = configuration_revision(run).await.unwrap();
    assert!(removed > added);
    delete_host(run, a.id).await.unwrap();
    assert!(configuration_revision(run).await.unwrap() > removed);
}
