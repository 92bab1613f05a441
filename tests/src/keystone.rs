//! A Keystone with users, and what its administrator can do.

use std::path::PathBuf;
use std::time::Duration;

use reqwest::{Method, StatusCode};
use ringfence_api::{KeystoneConfig, Password, Scope};
use ringfence_lab::{Authority, KEYSTONE_PASSWORD, Keystone, KeystoneOptions};
use serde_json::{Value, json};

/// The password of every user but the administrator.
pub const SERVICE_PASSWORD: &str = "hush-hush-hush";

/// A Keystone with the project `service` and, in that project, the service user `ringfence`.
pub struct Cloud {
    pub keystone: Keystone,
    http: reqwest::Client,
    service_project: String,
}

impl Cloud {
    /// Starts a Keystone whose tokens live for so many seconds.
    pub async fn start(lifetime_s: u32) -> Self {
        let options = KeystoneOptions {
            lifetime_s,
            ..KeystoneOptions::default()
        };
        Self::start_with(options, None).await
    }

    /// Starts a Keystone that serves TLS with a certificate of this authority.
    pub async fn start_with_tls(authority: &Authority) -> Self {
        let options = KeystoneOptions {
            tls: Some(authority.issue(&["127.0.0.1"]).unwrap()),
            ..KeystoneOptions::default()
        };
        Self::start_with(options, Some(authority)).await
    }

    async fn start_with(options: KeystoneOptions, authority: Option<&Authority>) -> Self {
        let manage = std::env::var_os("RINGFENCE_TEST_KEYSTONE")
            .expect("RINGFENCE_TEST_KEYSTONE is not set; run the tests with `cargo xtask test`");
        let manage = PathBuf::from(manage);
        let keystone = tokio::task::spawn_blocking(move || Keystone::start(&manage, options).unwrap())
            .await
            .unwrap();
        // A client of Keystone needs a TLS provider in the process; the program installs one at its start.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let trusted = authority.map(|authority| authority.certificate());
        let trusted = trusted.map(|pem| reqwest::Certificate::from_pem(pem.as_bytes()).unwrap());
        let http = reqwest::Client::builder()
            .no_proxy()
            .timeout(Duration::from_secs(30))
            .tls_certs_merge(trusted)
            .build()
            .unwrap();
        let mut cloud = Self {
            keystone,
            http,
            service_project: String::new(),
        };
        cloud.service_project = cloud.project("service").await;
        cloud.user("ringfence", "service", &["service"]).await;
        cloud
    }

    /// The configuration with which a service of Ringfence reaches this Keystone.
    pub fn config(&self) -> KeystoneConfig {
        let password = Password::new(|| Ok(SERVICE_PASSWORD.to_owned()));
        let scope: Scope = "project:service@Default".parse().unwrap();
        KeystoneConfig::new(&self.keystone.url(), password, vec![scope])
    }

    /// Makes a project and returns its id.
    pub async fn project(&self, name: &str) -> String {
        let body = json!({ "project": { "name": name, "domain_id": "default" } });
        let made = self.ask(Method::POST, "/projects", Some(body)).await;
        made["project"]["id"].as_str().unwrap().to_owned()
    }

    /// Makes a user with these roles in the project and returns its id.
    pub async fn user(&self, name: &str, project: &str, roles: &[&str]) -> String {
        let body = json!({ "user": { "name": name, "domain_id": "default", "password": SERVICE_PASSWORD } });
        let made = self.ask(Method::POST, "/users", Some(body)).await;
        let user = made["user"]["id"].as_str().unwrap().to_owned();
        let project = self.id("projects", project).await;
        for role in roles {
            let role = self.id("roles", role).await;
            let path = format!("/projects/{project}/users/{user}/roles/{role}");
            self.ask(Method::PUT, &path, None).await;
        }
        user
    }

    /// Adds a service of this type to the catalogue.
    pub async fn endpoint(&self, kind: &str, url: &str) {
        let body = json!({ "service": { "type": kind, "name": kind } });
        let made = self.ask(Method::POST, "/services", Some(body)).await;
        let service = &made["service"]["id"];
        let region = json!({ "region": { "id": "RegionOne" } });
        self.ask(Method::PUT, "/regions/RegionOne", Some(region)).await;
        let body = json!({ "endpoint": { "service_id": service, "interface": "public", "url": url, "region_id": "RegionOne" } });
        self.ask(Method::POST, "/endpoints", Some(body)).await;
    }

    /// A new token of the user for the project.
    pub async fn token(&self, user: &str, project: &str) -> String {
        self.log_in(user, SERVICE_PASSWORD, project).await
    }

    /// Revokes a token.
    pub async fn revoke(&self, token: &str) {
        let revoked = self
            .http
            .delete(self.address("/auth/tokens"))
            .header("X-Auth-Token", self.admin().await)
            .header("X-Subject-Token", token)
            .send()
            .await
            .unwrap();
        assert_eq!(revoked.status(), StatusCode::NO_CONTENT);
    }

    /// Revokes all tokens of a user: sets the user's password again to its present value.
    pub async fn revoke_all(&self, user: &str) {
        let user = self.id("users", user).await;
        let body = json!({ "user": { "password": SERVICE_PASSWORD } });
        self.ask(Method::PATCH, &format!("/users/{user}"), Some(body))
            .await;
    }

    async fn id(&self, kind: &str, name: &str) -> String {
        let found = self.ask(Method::GET, &format!("/{kind}?name={name}"), None).await;
        found[kind][0]["id"].as_str().unwrap().to_owned()
    }

    async fn admin(&self) -> String {
        self.log_in("admin", KEYSTONE_PASSWORD, "admin").await
    }

    async fn log_in(&self, user: &str, password: &str, project: &str) -> String {
        let domain = json!({ "id": "default" });
        let body = json!({ "auth": {
            "identity": { "methods": ["password"], "password": {
                "user": { "name": user, "domain": domain, "password": password } } },
            "scope": { "project": { "name": project, "domain": domain } },
        } });
        let asked = self.http.post(self.address("/auth/tokens")).json(&body);
        let answer = asked.send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::CREATED, "{user}");
        let token = &answer.headers()["x-subject-token"];
        token.to_str().unwrap().to_owned()
    }

    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Value {
        let mut asked = self
            .http
            .request(method, self.address(path))
            .header("X-Auth-Token", self.admin().await);
        if let Some(body) = body {
            asked = asked.json(&body);
        }
        let answer = asked.send().await.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        let text = answer.bytes().await.unwrap();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    fn address(&self, path: &str) -> String {
        format!("{}/v3{path}", self.keystone.url())
    }
}
