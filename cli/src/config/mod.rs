//! The configuration: defaults, then the file, then the environment, then flags.
//!
//! [`field`] lists every key once. The known keys, their allowed values, their sources and the output of `config check` follow from that
//! list.

mod environment;
mod field;
mod file;
mod keys;
mod layers;
mod names;
mod nearest;
mod secret_url;
mod sections;
mod settings;
mod value;

pub use environment::{Environment, config_dir, data_dir};
pub use keys::{read_keys, read_webhook_keys};
pub use layers::{Effective, Flag, Sources, load};
pub use names::check_names;
pub use nearest::nearest;
pub use secret_url::SecretUrl;
pub use sections::{ApiSettings, KeystoneSettings, LogFormat, LogSettings, TraceSettings, UnknownHostsWord};
pub use settings::Settings;
