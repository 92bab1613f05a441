//! A scheduler with a filter of one's own, which takes a cloud of its own.

use ringfence_lab::{Cloud, NewServer, OpenStack, OpenStackOptions, SchedulerFilter, Services};

use super::parts;

const FILTER: &str = r#"
from oslo_config import cfg
from nova.scheduler import filters

cfg.CONF.register_opts([cfg.ListOpt("hosts")], group="story")

class StoryFilter(filters.BaseHostFilter):
    RUN_ON_REBUILD = True

    def host_passes(self, host_state, spec_obj):
        return host_state.host not in cfg.CONF.story.hosts
"#;

#[test]
fn a_filter_of_ones_own_keeps_servers_from_a_host() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("story_filter.py"), FILTER).unwrap();
    let options = OpenStackOptions {
        services: Services::Core,
        filter: Some(SchedulerFilter {
            class: "story_filter.StoryFilter".to_owned(),
            python_path: folder.path().to_owned(),
            settings: "[story]\nhosts = shunned-a\n".to_owned(),
        }),
        ..OpenStackOptions::new(&parts())
    };
    let openstack = OpenStack::start(&options).unwrap();
    let cloud = Cloud::new(openstack.description());
    let [_shunned, _other] = cloud.computes(["shunned-a", "other-a"]).unwrap();

    let names = ["kept-1", "kept-2", "kept-3", "kept-4"].map(NewServer::new);

    let servers = cloud.boot_all(&names).unwrap();
    assert!(
        servers
            .iter()
            .all(|server| server.host.as_deref() == Some("other-a")),
        "{servers:?}"
    );
}
