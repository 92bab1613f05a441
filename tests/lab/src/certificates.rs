//! A private certificate authority.

use std::time::{Duration, SystemTime};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair};

use crate::error::LabError;
use crate::home::random_password;

const DAY: Duration = Duration::from_secs(86_400);

/// A certificate authority.
#[derive(Debug)]
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its private key, both in PEM.
#[derive(Clone)]
pub struct Issued {
    /// The certificate in PEM.
    pub certificate: String,
    /// The private key in PEM.
    pub key: String,
}

impl std::fmt::Debug for Issued {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Issued").finish_non_exhaustive()
    }
}

impl Authority {
    /// Makes a new authority.
    ///
    /// # Errors
    /// If no key could be made.
    pub fn new() -> Result<Self, LabError> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
            .distinguished_name
            .push(DnType::CommonName, format!("authority {}", random_password()?));
        let key = KeyPair::generate().map_err(failed)?;
        let issuer = CertifiedIssuer::self_signed(params, key).map_err(failed)?;
        Ok(Self { issuer })
    }

    /// The authority's own certificate, for clients that trust it.
    #[must_use]
    pub fn certificate(&self) -> String {
        self.issuer.pem()
    }

    /// A certificate for a server with these names and addresses, valid from yesterday for a year.
    ///
    /// # Errors
    /// If a name cannot be put into a certificate.
    pub fn issue(&self, names: &[&str]) -> Result<Issued, LabError> {
        self.issue_for(names, -1, 365)
    }

    /// A certificate for a user of this name, who belongs to this organization, valid from yesterday for a year.
    ///
    /// # Errors
    /// If a name cannot be put into a certificate.
    pub fn issue_client(&self, name: &str, organization: Option<&str>) -> Result<Issued, LabError> {
        let mut params = CertificateParams::default();
        params.not_before = day(-1).into();
        params.not_after = day(365).into();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        if let Some(organization) = organization {
            params
                .distinguished_name
                .push(DnType::OrganizationName, organization);
        }
        self.sign(&params)
    }

    /// A certificate that is valid from day `from_day` to day `until_day`, counted from today.
    ///
    /// # Errors
    /// If a name cannot be put into a certificate.
    pub fn issue_for(&self, names: &[&str], from_day: i32, until_day: i32) -> Result<Issued, LabError> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).map_err(failed)?;
        params.not_before = day(from_day).into();
        params.not_after = day(until_day).into();
        self.sign(&params)
    }

    fn sign(&self, params: &CertificateParams) -> Result<Issued, LabError> {
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(failed)?;
        Ok(Issued {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        })
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the validity of a certificate is in the machine's time"
)]
fn day(number: i32) -> SystemTime {
    let away = DAY * number.unsigned_abs();
    if number < 0 {
        SystemTime::now() - away
    } else {
        SystemTime::now() + away
    }
}

fn failed(error: rcgen::Error) -> LabError {
    LabError::Failed {
        program: "the certificate authority".to_owned(),
        output: error.to_string(),
    }
}
