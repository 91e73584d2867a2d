//! The certificate that new connections get. It can be exchanged at any time; open connections keep theirs.

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use rustls::crypto::CryptoProvider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use thiserror::Error;

use crate::metrics::Reads;

/// Why there is no new certificate. The one in use stays.
#[derive(Debug, Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("failed to read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// No certificate, or an unreadable one.
    #[error("failed to decode the certificate")]
    Certificate(#[source] rustls_pki_types::pem::Error),
    /// No private key, or an unreadable one.
    #[error("failed to decode the private key")]
    Key(#[source] rustls_pki_types::pem::Error),
    /// The two do not belong together, or are of a kind that TLS does not know.
    #[error("failed to use the certificate with the private key")]
    Pair(#[source] rustls::Error),
    /// The files did not come in time (CRT-7).
    #[error("could not mount certs")]
    NotMounted(#[source] Box<CertificateError>),
}

/// Holder of the current certificate. Without one, handshakes fail.
#[derive(Debug)]
pub struct CertStore {
    provider: Arc<CryptoProvider>,
    current: ArcSwapOption<CertifiedKey>,
    reads: Reads,
}

impl CertStore {
    /// A store without a certificate, which counts the ones that it is given.
    pub fn new(reads: &Reads) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        Self {
            provider,
            current: ArcSwapOption::empty(),
            reads: reads.clone(),
        }
    }

    /// Serves this certificate (with its chain) from now on.
    ///
    /// # Errors
    /// The pair is unreadable or does not match; then the current one stays. A pair of files that is being replaced may
    /// look so for a moment.
    pub fn set_pem(&self, chain: &[u8], key: &[u8]) -> Result<(), CertificateError> {
        let pair = self.pair(chain, key);
        self.reads.count(pair.is_ok());
        self.current.store(Some(Arc::new(pair?)));
        Ok(())
    }

    fn pair(&self, chain: &[u8], key: &[u8]) -> Result<CertifiedKey, CertificateError> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain).collect();
        let chain = chain.map_err(CertificateError::Certificate)?;
        if chain.is_empty() {
            return Err(CertificateError::Certificate(
                rustls_pki_types::pem::Error::NoItemsFound,
            ));
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(CertificateError::Key)?;
        CertifiedKey::from_der(chain, key, &self.provider).map_err(CertificateError::Pair)
    }

    /// The certificate that is served, without its chain.
    pub fn leaf(&self) -> Option<CertificateDer<'static>> {
        self.current
            .load()
            .as_ref()
            .and_then(|pair| pair.cert.first().cloned())
    }

    pub(crate) fn provider(&self) -> &Arc<CryptoProvider> {
        &self.provider
    }
}

impl ResolvesServerCert for CertStore {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current.load_full()
    }
}
