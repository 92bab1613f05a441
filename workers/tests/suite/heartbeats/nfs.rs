//! What a kernel tells of the clients of its NFS server.

use std::fs;
use std::path::Path;

use ringfence_core::{Heartbeat, Resource};

use super::{assert_unclear, read};
use crate::method;

/// In the form of Linux 5.19 and later.
fn nfs_client(directory: &Path, id: u32, address: &str, status: &str, renewed: &str) {
    let folder = directory.join(id.to_string());
    fs::create_dir_all(&folder).unwrap();
    let told = format!(
        "clientid: 0xf0d156a66{id:07x}\naddress: \"{address}\"\nstatus: {status}\n{renewed}name: \"Linux NFSv4.2 h{id}.example.org\"\nminor version: 2\n\
         Implementation domain: \"kernel.org\"\nImplementation name: \"Linux 6.1.0-27-amd64 #1 SMP: seconds from last renew: 1\"\nImplementation time: [0, 0]\n\
         callback state: UP\ncallback address: {address}\n"
    );
    fs::write(folder.join("info"), told).unwrap();
}

#[tokio::test]
async fn a_client_of_the_nfs_server_that_renews_its_lease_is_heard_and_one_that_does_not_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let method = method(
        "nfs-lease",
        Resource::Heartbeat,
        &[("directory", dir.path().to_str().unwrap())],
    );
    let ago = |seconds: u32| format!("seconds from last renew: {seconds}\n");
    nfs_client(dir.path(), 1, "192.0.2.1:819", "confirmed", &ago(700));
    nfs_client(dir.path(), 2, "192.0.2.1:820", "confirmed", &ago(12));
    nfs_client(dir.path(), 3, "192.0.2.3:819", "courtesy", &ago(90));
    nfs_client(dir.path(), 4, "[::ffff:192.0.2.4]:819", "confirmed", &ago(89));
    nfs_client(dir.path(), 5, "[fd00::5]:819", "unconfirmed", &ago(1));
    nfs_client(dir.path(), 6, "192.0.2.6:819", "confirmed", "");
    // A client that ends while the folder is read.
    fs::create_dir(dir.path().join("7")).unwrap();
    let hosts = [
        "192.0.2.1",
        "192.0.2.3",
        "198.51.100.4,192.0.2.4",
        "fd00::5",
        "192.0.2.6",
        "192.0.2.7",
        "h8",
        "192.0.2.8",
        "192.0.2.8,192.0.2.9",
    ];
    let read = read(&method, &hosts).await.unwrap();
    let heard = |address: &str, within_s| Heartbeat::Heard {
        by: format!("the NFS client at {address} has renewed its lease"),
        within_s,
    };
    assert_eq!(read["192.0.2.1"], heard("192.0.2.1", 13));
    assert_eq!(read["198.51.100.4,192.0.2.4"], heard("::ffff:192.0.2.4", 90));
    for host in ["192.0.2.3", "fd00::5", "192.0.2.7"] {
        assert_eq!(read[host], Heartbeat::Unheard, "{host}");
    }
    assert_unclear(&read["192.0.2.6"], "the kernel does not tell");
    assert_unclear(&read["h8"], "reaches the NFS server; give them with the host");
    assert_unclear(&read["192.0.2.8"], "another host has one of its addresses");
}

#[tokio::test]
async fn what_is_no_folder_of_nfs_clients_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let of = |path: &Path| {
        let path = path.to_str().unwrap();
        method("nfs-lease", Resource::Heartbeat, &[("directory", path)])
    };
    let why = read(&of(&dir.path().join("nfsd")), &[]).await.unwrap_err();
    assert!(why.to_string().contains("cannot be read: No such file"), "{why}");
    for (status, renewed, address) in [
        ("confirmed", "seconds from last renew: soon\n", "192.0.2.1:1"),
        ("confirmed", "seconds from last renew: -1\n", "192.0.2.1:1"),
        ("confirmed", "", "here"),
    ] {
        nfs_client(dir.path(), 1, address, status, renewed);
        let why = read(&of(dir.path()), &["192.0.2.1"]).await.unwrap_err();
        assert!(why.to_string().contains("is not understood"), "{why}");
    }
}
