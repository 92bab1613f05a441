//! Why a service's certificate was refused, and what to do about it.

use std::error::Error;

use rustls::CertificateError;
use url::Url;

/// What to do, if the certificate is the cause.
pub fn hint(error: &(dyn Error + 'static), url: &Url) -> Option<String> {
    let name = url.host_str().unwrap_or_default();
    let hint = match certificate_error(error)? {
        CertificateError::NotValidForName => format!(
            "its certificate does not match: it is not for {name}; name the service as its certificate does"
        ),
        CertificateError::NotValidForNameContext { presented, .. } => format!(
            "its certificate does not match: it is for {}, not for {name}; name the service as its certificate does",
            presented.join(", ")
        ),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired; give the service a new one, and compare this machine's clock".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet; compare this machine's clock".to_owned()
        }
        CertificateError::UnknownIssuer => {
            "this machine does not trust the authority that signed its certificate; name the authority with --ca-file or \
             RINGFENCE_CA_FILE"
                .to_owned()
        }
        other => format!("its certificate is refused: {other}"),
    };
    Some(hint)
}

fn certificate_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a CertificateError> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(rustls::Error::InvalidCertificate(found)) = error.downcast_ref() {
            return Some(found);
        }
        // An I/O error returns the source of its inner error, and not the inner error.
        let held = error
            .downcast_ref::<std::io::Error>()
            .and_then(std::io::Error::get_ref);
        next = match held {
            Some(held) => Some(held),
            None => error.source(),
        };
    }
    None
}
