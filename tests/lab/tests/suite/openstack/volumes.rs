//! Volumes of servers.

use super::cloud;

#[test]
fn only_a_service_can_detach_a_volume_from_a_server_on_a_dead_host() {
    let cloud = cloud();
    let [mut host] = cloud.computes(["volume-a"]).unwrap();
    let volume = cloud.make_volume("volume-1").unwrap();
    let server = cloud.boot(&host, &["volume-1"], &[]).unwrap()[0].id.clone();
    let held = cloud.attach(&server, &volume.id).unwrap();
    let attachment = &held.attachments[0];
    assert_eq!(attachment.server_id, server);
    assert_eq!(attachment.host_name.as_deref(), Some("volume-a"));

    host.power_off().unwrap();
    let delete = |with_service_token| {
        let answer = cloud.delete_attachment(&attachment.attachment_id, with_service_token);
        answer.unwrap().status
    };
    assert_eq!(delete(false), 409);
    assert_eq!(delete(true), 200);
    cloud.wait_volume(&volume.id, "available").unwrap();

    cloud.remove(host).unwrap();
    cloud.delete_volume(&volume.id).unwrap();
}
