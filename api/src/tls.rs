//! The certificate and key that the API shows: read at the start, and again when the operator says so.

use std::fmt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::{Mutex, RwLock};
use ringfence_core::Timestamp;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{InconsistentKeys, ServerConfig};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::StartError;

const CERTIFICATE: &str = "api.certificate_file";
const KEY: &str = "api.key_file";
/// No certificate with all that signed it is longer.
const MAX_BYTES: u64 = 1024 * 1024;

/// Where certificate and key are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate in PEM, and behind it those between it and the authority, in order.
    pub certificate: PathBuf,
    /// Its private key in PEM, for its owner only.
    pub key: PathBuf,
}

/// From when to when a certificate holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// The first moment.
    pub not_before: Timestamp,
    /// The last moment.
    pub not_after: Timestamp,
}

/// A certificate and key that belong together, and that can be changed while connections go on.
#[derive(Clone, Debug)]
pub struct ServerTls {
    files: TlsFiles,
    shown: Arc<Shown>,
    /// When the files that are shown were changed.
    changed_at: Arc<Mutex<Changed>>,
}

/// When certificate and key were changed, where that can be told.
type Changed = [Option<SystemTime>; 2];

impl TlsFiles {
    /// Whether both can be used, and for how long.
    ///
    /// # Errors
    /// One cannot be read or holds something else, others may read the key, or the two do not belong together.
    pub fn check(&self) -> Result<Validity, StartError> {
        self.read().map(|(_, validity)| validity)
    }

    fn changed_at(&self) -> Changed {
        let at = |path: &Path| std::fs::metadata(path).and_then(|data| data.modified()).ok();
        [at(&self.certificate), at(&self.key)]
    }

    fn read(&self) -> Result<(CertifiedKey, Validity), StartError> {
        let chain = chain(&self.certificate)?;
        let key = private_key(&self.key)?;
        let validity = chain.first().and_then(validity).ok_or_else(|| {
            self.bad_certificate("its first certificate cannot be read: it is damaged".to_owned())
        })?;
        let pair = CertifiedKey::from_der(chain, key, &ring::default_provider());
        let pair = pair.map_err(|error| self.mismatch(&error))?;
        Ok((pair, validity))
    }

    fn mismatch(&self, error: &rustls::Error) -> StartError {
        if matches!(
            error,
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch)
        ) {
            let why = format!(
                "is not the key of the first certificate in {}",
                self.certificate.display()
            );
            return bad(KEY, &self.key, why);
        }
        bad(KEY, &self.key, format!("cannot be used: {error}"))
    }

    fn bad_certificate(&self, why: String) -> StartError {
        bad(CERTIFICATE, &self.certificate, why)
    }
}

impl ServerTls {
    /// Reads both files.
    ///
    /// # Errors
    /// As [`TlsFiles::check`].
    pub fn open(files: TlsFiles, now: Timestamp) -> Result<Self, StartError> {
        let changed_at = Arc::new(Mutex::new(files.changed_at()));
        let (pair, validity) = files.read()?;
        warn_of_end(&files, validity, now);
        let shown = Arc::new(Shown(RwLock::new(Arc::new(pair))));
        Ok(Self {
            files,
            shown,
            changed_at,
        })
    }

    /// Reads both files again if they were changed since the last look, as [`Self::reload`].
    ///
    /// # Errors
    /// As [`TlsFiles::check`]; the files are not read again before they are changed again.
    pub fn reload_if_changed(&self, now: Timestamp) -> Result<(), StartError> {
        let changed_at = self.files.changed_at();
        if std::mem::replace(&mut *self.changed_at.lock(), changed_at) == changed_at {
            return Ok(());
        }
        self.reload(now)
    }

    /// Reads both files again; new connections get what they hold. If they cannot be used, the ones from before go on.
    ///
    /// # Errors
    /// As [`TlsFiles::check`].
    pub fn reload(&self, now: Timestamp) -> Result<(), StartError> {
        let (pair, validity) = self.files.read()?;
        warn_of_end(&self.files, validity, now);
        *self.shown.0.write() = Arc::new(pair);
        tracing::info!(
            certificate = %self.files.certificate.display(),
            not_after = %validity.not_after,
            "the certificate was read again"
        );
        Ok(())
    }

    /// TLS 1.2 and 1.3. The server adds what it speaks above that: HTTP/1.1.
    pub(crate) fn config(&self) -> Result<ServerConfig, StartError> {
        let provider: Arc<CryptoProvider> = Arc::new(ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .map_err(|error| self.files.bad_certificate(error.to_string()))?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&self.shown) as Arc<dyn ResolvesServerCert>);
        Ok(config)
    }
}

/// What the next connection gets.
struct Shown(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let shown = self.0.read();
        Some(Arc::clone(&shown))
    }
}

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shown").finish_non_exhaustive()
    }
}

fn bad(key: &'static str, path: &Path, why: String) -> StartError {
    StartError::Tls {
        key,
        path: path.to_owned(),
        why,
    }
}

fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, StartError> {
    let pem = read(CERTIFICATE, path)?;
    let chain: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(&pem).collect();
    match chain {
        Ok(chain) if chain.is_empty() => {
            Err(bad(CERTIFICATE, path, "holds no certificate in PEM".to_owned()))
        }
        Ok(chain) => Ok(chain),
        Err(error) => Err(bad(CERTIFICATE, path, format!("is damaged: {error}"))),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, StartError> {
    let pem = read(KEY, path)?;
    let metadata = std::fs::metadata(path).map_err(|error| bad(KEY, path, unreadable(&error)))?;
    let mode = metadata.permissions().mode() & 0o777;
    if !is_for_few(metadata.uid(), mode) {
        let why = format!("has mode {mode:04o}; only its owner may read it (chmod 600)");
        return Err(bad(KEY, path, why));
    }
    PrivateKeyDer::from_pem_slice(&pem).map_err(|_| {
        let is_encrypted = pem
            .windows(b"ENCRYPTED".len())
            .any(|window| window == b"ENCRYPTED");
        let why = if is_encrypted {
            "is encrypted; a key without a passphrase is allowed"
        } else {
            "holds no private key in PEM"
        };
        bad(KEY, path, why.to_owned())
    })
}

/// A file of root's may be readable by its group: so Kubernetes mounts a Secret for a service that is not root.
fn is_for_few(owner: u32, mode: u32) -> bool {
    mode & 0o077 == 0 || (owner == 0 && mode & 0o037 == 0)
}

fn read(key: &'static str, path: &Path) -> Result<Vec<u8>, StartError> {
    let fault = |error: std::io::Error| bad(key, path, unreadable(&error));
    let metadata = std::fs::metadata(path).map_err(fault)?;
    if !metadata.is_file() || metadata.len() > MAX_BYTES {
        let why = format!("is not a file of at most {MAX_BYTES} bytes");
        return Err(bad(key, path, why));
    }
    std::fs::read(path).map_err(fault)
}

fn unreadable(error: &std::io::Error) -> String {
    format!("cannot be read: {error}")
}

fn validity(certificate: &CertificateDer<'_>) -> Option<Validity> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let moment = |at: x509_parser::time::ASN1Time| Timestamp::from_timestamp(at.timestamp(), 0);
    let validity = parsed.validity();
    Some(Validity {
        not_before: moment(validity.not_before)?,
        not_after: moment(validity.not_after)?,
    })
}

/// Served even then: a caller that checks will say so, and without any TLS the caller would fare no better.
fn warn_of_end(files: &TlsFiles, validity: Validity, now: Timestamp) {
    let certificate = files.certificate.display();
    if validity.not_after < now {
        tracing::warn!(%certificate, not_after = %validity.not_after, "api.certificate_file has expired; callers will refuse it");
    } else if validity.not_before > now {
        tracing::warn!(%certificate, not_before = %validity.not_before, "api.certificate_file is not valid yet; callers will refuse it");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_for_its_owner_or_for_a_group_that_root_has_chosen() {
        for (owner, mode) in [(10001, 0o600), (0, 0o400), (0, 0o440), (0, 0o640)] {
            assert!(is_for_few(owner, mode), "{owner} {mode:o}");
        }
        for (owner, mode) in [(10001, 0o640), (10001, 0o440), (0, 0o444), (0, 0o460), (0, 0o644)] {
            assert!(!is_for_few(owner, mode), "{owner} {mode:o}");
        }
    }
}
