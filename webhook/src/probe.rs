//! Whether the server really answers (HLT-3): a handshake with ourselves that must show the current certificate.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use thiserror::Error;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::certificates::CertStore;

/// Probes are asked every few seconds; one that hangs is a failed one.
const LIMIT: Duration = Duration::from_secs(1);

/// Why the server does not count as ready.
#[derive(Debug, Error)]
pub enum NotReady {
    /// There is nothing to serve yet.
    #[error("no certificate is loaded")]
    NoCertificate,
    /// Nobody answers.
    #[error("failed to connect to the webhook server")]
    Connect(#[source] io::Error),
    /// Nobody answers in time.
    #[error("the webhook server does not answer in time")]
    Timeout,
    /// Somebody else answers, or an older certificate is served.
    #[error("the webhook server shows another certificate than the current one")]
    OtherCertificate,
    /// The check itself cannot be made.
    #[error("failed to configure TLS")]
    Tls(#[source] rustls::Error),
}

/// The readiness check `webhooks` of a server.
#[derive(Debug, Clone)]
pub struct Probe {
    address: SocketAddr,
    certificates: Arc<CertStore>,
}

impl Probe {
    pub(crate) fn new(listening: SocketAddr, certificates: Arc<CertStore>) -> Self {
        let ip = match listening.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        Self {
            address: SocketAddr::new(ip, listening.port()),
            certificates,
        }
    }

    /// Whether the listener accepts and serves the certificate that is current.
    ///
    /// # Errors
    /// It does not; the error says why.
    pub async fn ready(&self) -> Result<(), NotReady> {
        if self.certificates.leaf().is_none() {
            return Err(NotReady::NoCertificate);
        }
        let shown = tokio::time::timeout(LIMIT, self.shown())
            .await
            .map_err(|_| NotReady::Timeout)??;
        if shown.is_some() && shown == self.certificates.leaf() {
            Ok(())
        } else {
            Err(NotReady::OtherCertificate)
        }
    }

    /// The certificate that the server proves to have the key of.
    async fn shown(&self) -> Result<Option<CertificateDer<'static>>, NotReady> {
        let provider = Arc::clone(self.certificates.provider());
        let mut config = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(NotReady::Tls)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate::new(provider)))
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let stream = TcpStream::connect(self.address)
            .await
            .map_err(NotReady::Connect)?;
        let name = ServerName::IpAddress(self.address.ip().into());
        let stream = TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
            .map_err(NotReady::Connect)?;
        let (_, session) = stream.get_ref();
        Ok(session
            .peer_certificates()
            .and_then(|chain| chain.first())
            .map(|leaf| leaf.clone().into_owned()))
    }
}

/// Accepts whatever certificate is shown, but not without its key: the caller compares it with the one it knows.
#[derive(Debug)]
pub struct AnyCertificate(Arc<CryptoProvider>);

impl AnyCertificate {
    /// With the algorithms of this provider.
    pub fn new(provider: Arc<CryptoProvider>) -> Self {
        Self(provider)
    }
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _leaf: &CertificateDer<'_>,
        _chain: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            leaf,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            leaf,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
