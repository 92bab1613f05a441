//! Static tokens, for sites without Keystone: a file of hashes.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use crate::role::Role;
use parking_lot::Mutex;
use ringfence_core::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::StartError;

/// How long a look at the file's time of change is good for; a revoked token works that much longer at most.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What every static token begins with.
pub const TOKEN_PREFIX: &str = "rf_";

/// One token of the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenEntry {
    /// Whose it is; goes into the audit trail.
    pub name: String,
    /// What it allows.
    pub role: Role,
    /// SHA-256 of the token, in hexadecimal. The token itself is 256 random bits, so that a slow hash would add nothing.
    pub sha256: String,
    /// When it stops working.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// The file: `[[token]]` tables in TOML.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenFile {
    /// The tokens.
    #[serde(default, rename = "token")]
    pub tokens: Vec<TokenEntry>,
}

/// SHA-256 of a token, in hexadecimal.
#[must_use]
pub fn hash_token(token: &str) -> String {
    hex::encode(Sha256::digest(token.as_bytes()))
}

/// The tokens that work, read again when a file changes.
#[derive(Debug)]
pub struct Tokens(Vec<Watched>);

/// The tokens of one file.
#[derive(Debug)]
struct Watched {
    path: PathBuf,
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    file: TokenFile,
    changed_at: Option<SystemTime>,
    looked_at: Instant,
}

impl Tokens {
    /// Reads the file.
    pub fn open(path: &Path) -> Result<Self, StartError> {
        Ok(Self(vec![Watched::open(path)?]))
    }

    /// Takes the tokens of one more file.
    pub fn and(mut self, path: &Path) -> Result<Self, StartError> {
        self.0.push(Watched::open(path)?);
        Ok(self)
    }

    /// For an API whose callers come from Keystone only.
    #[must_use]
    pub fn none() -> Self {
        Self(Vec::new())
    }

    /// Whose token it is and what it allows.
    #[must_use]
    pub fn find(&self, token: &str, now: Timestamp) -> Option<(String, Role)> {
        let hash = hash_token(token);
        self.0.iter().find_map(|file| file.find(&hash, now))
    }

    /// Reads all files now, changed or not.
    pub(crate) fn reload(&self) {
        for file in &self.0 {
            file.read_again(&mut file.known.lock());
        }
    }
}

impl Watched {
    fn open(path: &Path) -> Result<Self, StartError> {
        let (file, changed_at) = read(path)?;
        let known = Known {
            file,
            changed_at,
            looked_at: Instant::now(),
        };
        Ok(Self {
            path: path.to_owned(),
            known: Mutex::new(known),
        })
    }

    fn find(&self, hash: &str, now: Timestamp) -> Option<(String, Role)> {
        let mut known = self.known.lock();
        self.look_again(&mut known);
        let is_it = |entry: &&TokenEntry| bool::from(entry.sha256.as_bytes().ct_eq(hash.as_bytes()));
        let entry = known.file.tokens.iter().find(is_it)?;
        let works = entry.expires_at.is_none_or(|expires_at| now < expires_at);
        works.then(|| (entry.name.clone(), entry.role))
    }

    fn look_again(&self, known: &mut Known) {
        if known.looked_at.elapsed() < LOOK_EVERY {
            return;
        }
        known.looked_at = Instant::now();
        let changed_at = std::fs::metadata(&self.path).and_then(|m| m.modified()).ok();
        if changed_at != known.changed_at {
            self.read_again(known);
        }
    }

    fn read_again(&self, known: &mut Known) {
        match read(&self.path) {
            Ok((file, changed_at)) => {
                known.file = file;
                known.changed_at = changed_at;
            }
            // A half-written file must not lock all callers out; the tokens from before stay valid.
            Err(error) => {
                tracing::warn!(%error, "the token file was changed and cannot be read; the tokens from before go on")
            }
        }
    }
}

fn read(path: &Path) -> Result<(TokenFile, Option<SystemTime>), StartError> {
    let fault = |why: String| StartError::TokenFile {
        path: path.to_owned(),
        why,
    };
    let changed_at = std::fs::metadata(path).and_then(|m| m.modified()).ok();
    let text = std::fs::read_to_string(path).map_err(|e| fault(e.to_string()))?;
    let file: TokenFile = toml::from_str(&text).map_err(|e| fault(e.message().to_owned()))?;
    Ok((file, changed_at))
}
