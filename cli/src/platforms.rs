//! The platforms of the configuration. Only this file names the kinds of platforms.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ringfence_backends::Platform;
use ringfence_backends::openstack::{Cloud, CloudSettings, Nova};

use crate::config::Settings;
use crate::error::CliError;

/// The clouds of the configuration, each checked to have an entry. No call is made.
pub fn clouds(settings: &Settings) -> Result<Vec<Arc<Cloud>>, CliError> {
    let clouds = cloud_settings(settings).map(|cloud| {
        cloud
            .check()
            .map_err(|e| CliError::service("openstack", "cannot be used", e))?;
        Ok(Arc::new(Cloud::new(cloud)))
    });
    clouds.collect()
}

/// The platforms on these clouds.
pub fn of(clouds: &[Arc<Cloud>]) -> Vec<Arc<dyn Platform>> {
    Nova::on(clouds)
}

/// The platforms of the configuration, without a check of their settings.
pub fn unchecked(settings: &Settings) -> Vec<Arc<dyn Platform>> {
    let clouds = cloud_settings(settings).map(|cloud| Arc::new(Cloud::new(cloud)));
    of(&clouds.collect::<Vec<_>>())
}

/// One cloud by its entry in a clouds.yaml.
pub fn one_cloud(name: &str, file: Option<PathBuf>, timeout: Duration) -> Arc<dyn Platform> {
    let settings = CloudSettings {
        name: name.to_owned(),
        file,
        timeout,
    };
    Arc::new(Nova::new(Arc::new(Cloud::new(settings))))
}

fn cloud_settings(settings: &Settings) -> impl Iterator<Item = CloudSettings> {
    let own = &settings.openstack;
    own.clouds.iter().map(|name| CloudSettings {
        name: name.clone(),
        file: own.clouds_file.clone(),
        timeout: Duration::from_millis(own.timeout_ms),
    })
}
