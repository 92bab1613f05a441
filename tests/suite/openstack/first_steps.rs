//! The page from an installed Ringfence to the first gated evacuation: all its commands are run.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use ringfence_api::hash_token;
use ringfence_lab::{Api, Call, Cloud, HOOK_TOKEN, IpmiBmc, User};
use ringfence_tests::clouds_file::{Entry, write};
use ringfence_tests::pages::{Shell, walk};
use ringfence_tests::{Ground, Hypervisor, Machine, Site, set_up};
use tokio::task::block_in_place;

use super::plant::cloud;
use crate::docs::WITH_A_CLOUD;

fn secret(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o600)).unwrap();
}

/// The start of the page: Ringfence is installed and does not run; the administrator has credentials for the cloud.
async fn installed(site: &Site, cloud: &Cloud, machines: &[Hypervisor; 2]) -> Machine {
    let (machine, token) = set_up(site).await;
    let admin = machine.file("admin.yaml");
    let of_admin = Entry::new("admin", cloud)
        .user(User::Admin.name())
        .project(User::Admin.project());
    write(&admin, &[of_admin]);
    secret(&machine.file("alice.token"), &token);
    secret(&machine.file("bmc.password"), IpmiBmc::PASSWORD);
    secret(&machine.file("etc/secrets/bmc"), IpmiBmc::PASSWORD);
    secret(&machine.file("etc/ringfence.toml"), "");
    // The token that this run's Nova sends to the hook is fixed, unlike the token that the page makes.
    let of_nova = format!(
        "[[token]]\nname = \"nova-here\"\nrole = \"reader\"\nsha256 = \"{}\"\n",
        hash_token(HOOK_TOKEN)
    );
    std::fs::write(machine.file("nova-tokens.toml"), of_nova).unwrap();
    let config = machine.file("etc/ringfence.toml").display().to_string();
    machine
        .set("RINGFENCE_CONFIG", config)
        .set("RINGFENCE_OPENSTACK_POLL_S", "1")
        .set("RINGFENCE_OPENSTACK_DOWN_AFTER_S", "8")
        .set("OS_CLIENT_CONFIG_FILE", admin.display().to_string())
        .set("OS_CLOUD", "admin")
        .set("HOOK", cloud.description().hook.to_string())
        .set("PORT1", machines[0].bmc.port().to_string())
        .set("PORT2", machines[1].bmc.port().to_string())
}

/// A shell in which the page's names are replaced by those of this run.
fn shell(machine: &Machine, cloud: &Cloud, bmc: &IpmiBmc) -> Shell {
    let mut shell = Shell::open(machine);
    let (port, user) = (bmc.port(), IpmiBmc::USER);
    let folder = machine.file("etc").display().to_string();
    for (shown, real) in [
        ("/etc/ringfence", folder),
        (
            "https://keystone.example:5000/v3",
            cloud.description().auth_url.clone(),
        ),
        ("RegionOne", cloud.description().region.clone()),
        (
            "'address=${host.name}.bmc.example'",
            "address=127.0.0.1 -p cipher=3".to_owned(),
        ),
        ("username=fence", format!("username={user}")),
        (
            "-H compute1.bmc.example -U fence",
            format!("-C 3 -H 127.0.0.1 -p {port} -U {user}"),
        ),
    ] {
        shell.means(shown, real);
    }
    shell
}

/// Deletes the user that the page has made.
fn forget_user(cloud: &Cloud) {
    let ask = |method, path: &str| {
        let base = Some(cloud.description().auth_url.clone());
        cloud.ask(&Call {
            base,
            ..Call::new(method, Api::Identity, path)
        })
    };
    let found = ask("GET", "/users?name=ringfence").unwrap();
    if let Some(id) = found.body["users"][0]["id"].as_str() {
        ask("DELETE", &format!("/users/{id}")).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_leads_to_the_first_gated_evacuation() {
    let cloud = cloud();
    let site = Site::new(Ground::Distributed).await;
    let computes = block_in_place(|| cloud.computes(["compute1", "compute2"]).unwrap());
    let machines = computes.map(Hypervisor::new);
    let machine = installed(&site, &cloud, &machines).await;
    let mut shell = shell(&machine, &cloud, &machines[0].bmc);
    block_in_place(|| {
        forget_user(&cloud);
        walk(WITH_A_CLOUD, &mut shell);
        drop(shell);
        forget_user(&cloud);
    });
    for machine in machines {
        machine.remove(&cloud);
    }
}
