//! Which TLS versions and cipher suites a server offers (TLS-1, TLS-2).

use rustls::crypto::{CryptoProvider, ring};
use rustls::version::{TLS12, TLS13};
use rustls::{ProtocolVersion, SupportedCipherSuite, SupportedProtocolVersion};

const BOTH: &[&SupportedProtocolVersion] = &[&TLS13, &TLS12];
const NEWEST: &[&SupportedProtocolVersion] = &[&TLS13];

/// What a server offers; by default what the library takes for safe.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    is_1_3_only: bool,
    /// Suites of TLS 1.2; empty: all.
    suites: Vec<SupportedCipherSuite>,
}

impl Tls {
    /// Nothing below TLS 1.3, whose suites cannot be chosen.
    pub fn only_1_3() -> Self {
        Self {
            is_1_3_only: true,
            suites: Vec::new(),
        }
    }

    /// TLS 1.3, and TLS 1.2 with these suites (all if there are none).
    pub fn from_1_2(suites: Vec<SupportedCipherSuite>) -> Self {
        Self {
            is_1_3_only: false,
            suites,
        }
    }

    /// The suites of TLS 1.2 that there are to choose from.
    pub fn known_suites() -> impl Iterator<Item = SupportedCipherSuite> {
        ring::ALL_CIPHER_SUITES
            .iter()
            .copied()
            .filter(|suite| suite.version().version == ProtocolVersion::TLSv1_2)
    }

    pub(crate) fn versions(&self) -> &'static [&'static SupportedProtocolVersion] {
        if self.is_1_3_only { NEWEST } else { BOTH }
    }

    pub(crate) fn provider(&self) -> CryptoProvider {
        let mut provider = ring::default_provider();
        if !self.suites.is_empty() {
            provider.cipher_suites.retain(|suite| {
                suite.version().version != ProtocolVersion::TLSv1_2 || self.suites.contains(suite)
            });
        }
        provider
    }
}
