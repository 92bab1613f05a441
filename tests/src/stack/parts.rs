//! Builds the parts of a stack as their processes would.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ringfence_api::{ApiConfig, Application, Role, TokenEntry, TokenFile, Tokens, hash_token};
use ringfence_bus::{Bus, Key, Keys};
use ringfence_db::Database;
use ringfence_engine::{CheckConfig, Engine, EngineConfig, Parts, WebhookConfig, WebhookKey, WebhookKeys};
use ringfence_scheduler_hook::Hook;
use tokio_util::sync::CancellationToken;

use super::StackOptions;
use crate::Site;

/// The signing keys of every stack.
pub fn keys() -> Keys {
    Keys::new(vec![Key::new("test", &[7; 32]).unwrap()]).unwrap()
}

/// A token of a role.
pub(super) fn token(role: Role) -> String {
    format!("token-of-{}", role.as_str())
}

fn webhooks(may_call_loopback: bool) -> WebhookConfig {
    let key = WebhookKey::new("test", vec![9; 32]).unwrap();
    WebhookConfig {
        keys: Some(WebhookKeys::new(vec![key]).unwrap()),
        allowed_networks: if may_call_loopback {
            vec!["127.0.0.0/8".parse().unwrap(), "::1/128".parse().unwrap()]
        } else {
            Vec::new()
        },
        ca_pem: None,
        source: Some("/ringfence/test".to_owned()),
    }
}

pub(super) async fn engine(site: &Site, options: &StackOptions, name: &str, bus: Arc<dyn Bus>) -> Engine {
    let parts = Parts {
        db: Database::open(&site.database_url, 10).await.unwrap(),
        bus,
        keys: keys(),
        clock: options.clock.clone(),
        drivers: options.drivers.clone(),
    };
    let watched = |platform| (platform, options.observer.clone());
    let config = EngineConfig {
        name: name.to_owned(),
        tick_every: options.tick_every,
        webhooks: webhooks(options.may_call_loopback),
        checks: CheckConfig {
            every: options.checks_every,
            ..CheckConfig::default()
        },
        retention: options.retention.clone(),
        platforms: options.platforms().into_iter().map(watched).collect(),
        ..EngineConfig::default()
    };
    Engine::new(parts, config).await.unwrap()
}

pub(super) fn serve(site: &Site, engine: Engine, options: &StackOptions) -> (SocketAddr, CancellationToken) {
    let path = site.dir.path().join("tokens.toml");
    let roles = [Role::Reader, Role::Service, Role::Operator, Role::Admin];
    let tokens = roles.into_iter().map(|role| TokenEntry {
        name: format!("a-{}", role.as_str()),
        role,
        sha256: hash_token(&token(role)),
        expires_at: None,
    });
    let file = TokenFile {
        tokens: tokens.collect(),
    };
    std::fs::write(&path, toml_of(&file)).unwrap();
    let config = ApiConfig {
        listen: "127.0.0.1:0".parse().unwrap(),
        max_body_bytes: 65_536,
        threads: 1,
        are_metrics_public: options.are_metrics_public,
        tls: None,
        keystone: options.keystone.clone(),
        limits: options.limits,
        streams: options.streams,
        recheck_every: Duration::from_secs(1),
    };
    let stop = CancellationToken::new();
    let clock = engine.clock().clone();
    let hook = Hook::new(
        engine.db().clone(),
        Arc::new(move || clock.now()),
        options.hook.clone(),
    );
    let application = Application::build(config, engine.clone(), Tokens::open(&path).unwrap()).unwrap();
    let application = application.with_hook(hook);
    let address = application.address();
    let running = engine.start_writer();
    let stopped = stop.clone();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(application.run(stopped)).unwrap();
    });
    let stopped = stop.clone();
    tokio::spawn(async move {
        stopped.cancelled().await;
        running.stop().await;
    });
    (address, stop)
}

fn toml_of(file: &TokenFile) -> String {
    let mut text = String::new();
    for token in &file.tokens {
        text.push_str(&format!(
            "[[token]]\nname = {:?}\nrole = {:?}\nsha256 = {:?}\n",
            token.name,
            token.role.as_str(),
            token.sha256
        ));
    }
    text
}
