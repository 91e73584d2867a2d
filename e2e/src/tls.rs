//! A look at the certificate that a server of this machine shows.

use std::sync::Arc;

use anyhow::{Context, Result};
use lws_webhook::AnyCertificate;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The certificate of the server on a port of loopback. It must be one of `name` that an authority of this PEM text vouches for.
pub async fn served_certificate(port: u16, name: &str, authority: &[u8]) -> Result<Vec<u8>> {
    let mut roots = RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(authority) {
        roots.add(root?)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = connect(port, name, config).await?;
    let chain = stream.get_ref().1.peer_certificates();
    let leaf = chain.and_then(<[_]>::first).context("no certificate")?;
    Ok(leaf.to_vec())
}

/// A connection to whoever listens on a port of loopback, as a scraper with `insecureSkipVerify` makes it.
pub(crate) async fn connect_to_anyone(port: u16) -> Result<TlsStream<TcpStream>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate::new(provider)))
        .with_no_client_auth();
    connect(port, "localhost", config).await
}

async fn connect(port: u16, name: &str, config: ClientConfig) -> Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    let name = ServerName::try_from(name.to_owned())?;
    let connector = TlsConnector::from(Arc::new(config));
    Ok(connector.connect(name, stream).await?)
}
