//! The keys and certificates of a cluster.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::certificates::{Authority, Issued};
use crate::error::LabError;
use crate::home::Home;

/// The names and addresses of the API server.
const API_SERVER: &[&str] = &["127.0.0.1", "10.0.0.1", "localhost", "kubernetes.default.svc"];
/// The group that may do everything.
const MASTERS: &str = "system:masters";

/// A cluster's authority, and the address that it vouches for.
#[derive(Debug)]
pub(super) struct Pki {
    authority: Authority,
    url: String,
}

impl Pki {
    /// Makes an authority and writes the API server's files.
    pub(super) fn new(home: &Home, port: u16) -> Result<Self, LabError> {
        let pki = Self {
            authority: Authority::new()?,
            url: format!("https://127.0.0.1:{port}"),
        };
        home.write("ca.crt", &pki.certificate())?;
        let server = pki.authority.issue(API_SERVER)?;
        home.write("server.crt", &server.certificate)?;
        home.write("server.key", &server.key)?;
        // The tokens of service accounts are signed with this key.
        let accounts = pki.authority.issue(&[])?;
        home.write("accounts.crt", &accounts.certificate)?;
        home.write("accounts.key", &accounts.key)?;
        Ok(pki)
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// The authority's certificate in PEM.
    pub(super) fn certificate(&self) -> String {
        self.authority.certificate()
    }

    /// The kubeconfig of a new user who may do everything.
    pub(super) fn admin(&self) -> Result<String, LabError> {
        self.user("admin", Some(MASTERS))
    }

    /// The kubeconfig of a user who has this name, and is in this group.
    pub(super) fn user(&self, name: &str, group: Option<&str>) -> Result<String, LabError> {
        let Issued { certificate, key } = self.authority.issue_client(name, group)?;
        let user = format!(
            "client-certificate-data: {}, client-key-data: {}",
            STANDARD.encode(certificate),
            STANDARD.encode(key)
        );
        Ok(self.kubeconfig(name, &user))
    }

    /// The kubeconfig of the holder of a token.
    pub(super) fn holder(&self, name: &str, token: &str) -> String {
        self.kubeconfig(name, &format!("token: {token}"))
    }

    fn kubeconfig(&self, name: &str, user: &str) -> String {
        let authority = STANDARD.encode(self.certificate());
        format!(
            "apiVersion: v1\nkind: Config\n\
             clusters: [{{name: lab, cluster: {{server: \"{url}\", certificate-authority-data: {authority}}}}}]\n\
             users: [{{name: \"{name}\", user: {{{user}}}}}]\n\
             contexts: [{{name: lab, context: {{cluster: lab, user: \"{name}\"}}}}]\n\
             current-context: lab\n",
            url = self.url
        )
    }
}
