//! A certificate authority of our own, a server on loopback, and a client that trusts that authority only.

use std::net::SocketAddr;
use std::sync::Arc;

use lws_core::admission::Environment;
use lws_webhook::{Admission, CertStore, Metrics, Probe, Reads, Server, Tls};
use prometheus::Registry;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use rustls_pki_types::ServerName;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub const NAME: &str = "lws-webhook-service.lws-system.svc";

/// Issues certificates for [`NAME`].
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    root: rcgen::Certificate,
}

/// A certificate and its key as PEM.
pub struct Pem {
    pub chain: String,
    pub key: String,
}

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::new(vec!["lws-ca".to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let root = params.self_signed(&key).unwrap();
        Self {
            issuer: Issuer::new(params, key),
            root,
        }
    }

    pub fn issue(&self) -> Pem {
        let params = CertificateParams::new(vec![NAME.to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Pem {
            chain: certificate.pem(),
            key: key.serialize_pem(),
        }
    }
}

/// A store without a certificate.
pub fn store(registry: &Registry) -> CertStore {
    CertStore::new(&Reads::register(registry).unwrap())
}

/// A running server.
pub struct Running {
    pub address: SocketAddr,
    pub certificates: Arc<CertStore>,
    pub registry: Registry,
    pub probe: Probe,
    authority: Authority,
    stop: oneshot::Sender<()>,
    served: JoinHandle<()>,
}

impl Running {
    pub async fn start() -> Self {
        Self::start_with(Tls::default()).await
    }

    pub async fn start_with(tls: Tls) -> Self {
        let authority = Authority::new();
        let registry = Registry::new();
        let certificates = Arc::new(store(&registry));
        let pem = authority.issue();
        certificates
            .set_pem(pem.chain.as_bytes(), pem.key.as_bytes())
            .unwrap();
        let provider = rustls::crypto::ring::default_provider();
        let admission = Arc::new(Admission::new(
            Environment::default(),
            &provider,
            Metrics::register(&registry).unwrap(),
        ));
        let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = tokio::net::TcpListener::bind(loopback).await.unwrap();
        let server = Server::new(
            listener,
            Arc::clone(&certificates),
            &tls,
            admission.router(),
        )
        .unwrap();
        let (address, probe) = (server.address(), server.probe());
        let (stop, stopped) = oneshot::channel::<()>();
        let served = tokio::spawn(server.serve(async {
            let _ = stopped.await;
        }));
        Self {
            address,
            certificates,
            registry,
            probe,
            authority,
            stop,
            served,
        }
    }

    /// Exchanges the certificate for a new one of the same authority.
    pub fn renew(&self) {
        let pem = self.authority.issue();
        self.certificates
            .set_pem(pem.chain.as_bytes(), pem.key.as_bytes())
            .unwrap();
    }

    pub fn client(&self) -> Client {
        self.client_of(&self.authority)
    }

    pub fn client_of(&self, authority: &Authority) -> Client {
        self.client_with(authority, rustls::DEFAULT_VERSIONS)
    }

    /// A client that speaks these versions only.
    pub fn client_of_versions(&self, versions: &[&'static SupportedProtocolVersion]) -> Client {
        self.client_with(&self.authority, versions)
    }

    fn client_with(
        &self,
        authority: &Authority,
        versions: &[&'static SupportedProtocolVersion],
    ) -> Client {
        let mut roots = RootCertStore::empty();
        roots.add(authority.root.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Client {
            address: self.address,
            connector: TlsConnector::from(Arc::new(config)),
        }
    }

    /// Starts the shutdown; the handle ends with the server.
    pub fn stop(self) -> JoinHandle<()> {
        self.stop.send(()).unwrap();
        self.served
    }
}

#[derive(Clone)]
pub struct Client {
    address: SocketAddr,
    connector: TlsConnector,
}

/// Status code and body.
pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

impl Client {
    pub async fn connect(&self) -> std::io::Result<Connection> {
        let stream = TcpStream::connect(self.address).await?;
        let stream = self
            .connector
            .connect(ServerName::try_from(NAME).unwrap(), stream)
            .await?;
        Ok(Connection { stream })
    }

    /// One POST of JSON on a connection of its own.
    pub async fn post(&self, path: &str, body: &[u8]) -> std::io::Result<Answer> {
        self.send("POST", path, "application/json", body).await
    }

    pub async fn send(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: &[u8],
    ) -> std::io::Result<Answer> {
        let mut connection = self.connect().await?;
        connection
            .write(head(method, path, content_type, body.len()).as_bytes())
            .await?;
        connection.write(body).await?;
        connection.answer().await
    }
}

pub fn head(method: &str, path: &str, content_type: &str, length: usize) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n\r\n"
    )
}

pub struct Connection {
    pub stream: TlsStream<TcpStream>,
}

impl Connection {
    pub async fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    /// Reads one answer by its content length.
    pub async fn answer(&mut self) -> std::io::Result<Answer> {
        let mut bytes = Vec::new();
        let end = loop {
            if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            bytes.push(self.stream.read_u8().await?);
        };
        let head = String::from_utf8(bytes[..end].to_vec())
            .unwrap()
            .to_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.map_or(0, |length| length.trim().parse().unwrap())];
        self.stream.read_exact(&mut body).await?;
        Ok(Answer { status, body })
    }
}
