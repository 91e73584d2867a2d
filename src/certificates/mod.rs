//! Certificates of the admission server that are made and rotated here (CRT-1 … CRT-8).
//!
//! What is due is decided in [`due`], what is announced in [`bundle`], both from bytes and a time alone; [`issue`] makes certificates,
//! and [`Keeper`] does the rest: it watches the Secret and the webhook configurations, and writes them.

mod bundle;
mod configuration;
mod due;
mod issue;
mod keeper;
mod parsed;

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;

pub use bundle::{bundle, carries};
pub use due::{Due, due};
pub use issue::{IssueError, issue};
pub use keeper::{Keeper, KeeperError, Settings};
pub use parsed::end;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// CRT-1: the four keys of the Secret, as PEM. What is missing is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Material {
    /// `ca.crt`.
    pub authority: Vec<u8>,
    /// `ca.key`.
    pub authority_key: Vec<u8>,
    /// `tls.crt`.
    pub server: Vec<u8>,
    /// `tls.key`.
    pub server_key: Vec<u8>,
}

impl Material {
    /// What a Secret holds.
    pub fn of(secret: &Secret) -> Self {
        let data = secret.data.as_ref();
        let bytes = |key: &str| {
            data.and_then(|data| data.get(key))
                .map(|bytes| bytes.0.clone())
                .unwrap_or_default()
        };
        Self {
            authority: bytes("ca.crt"),
            authority_key: bytes("ca.key"),
            server: bytes("tls.crt"),
            server_key: bytes("tls.key"),
        }
    }

    /// The Secret with this in it; whatever else it has is kept.
    pub fn put_into(&self, mut secret: Secret) -> Secret {
        let data: &mut BTreeMap<String, ByteString> = secret.data.get_or_insert_default();
        for (key, bytes) in [
            ("ca.crt", &self.authority),
            ("ca.key", &self.authority_key),
            ("tls.crt", &self.server),
            ("tls.key", &self.server_key),
        ] {
            data.insert(key.to_owned(), ByteString(bytes.clone()));
        }
        secret
    }
}

/// How long things last. There is no configuration for it (CRT-2); tests live faster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// Validity of the authority from now on.
    pub authority: Duration,
    /// Validity of the server certificate from now on.
    pub server: Duration,
    /// Validity that lies in the past already, for clocks that are behind.
    pub backdated: Duration,
    /// A certificate with less validity left is due (CRT-3).
    pub renew_before: Duration,
    /// How often all is looked at although nothing changes (CRT-3).
    pub check_every: Duration,
    /// How long the old authority is announced beside a new one (CRT-5).
    pub overlap: Duration,
    /// How long a new authority has been announced before its certificate is served in place of one that is valid: until then API
    /// servers may not have seen the announcement.
    pub settle: Duration,
}

impl Default for Lifetimes {
    fn default() -> Self {
        Self {
            authority: 10 * 365 * DAY,
            server: 365 * DAY,
            backdated: Duration::from_secs(60 * 60),
            renew_before: 90 * DAY,
            check_every: DAY / 2,
            overlap: Duration::from_secs(60 * 60),
            settle: Duration::from_secs(10),
        }
    }
}

#[cfg(test)]
mod tests;
