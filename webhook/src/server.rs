//! The listener: TLS, HTTP/1.1 connections, and their orderly end (WHK-1, MET-1, SHD-1).

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tracing::{debug, info, warn};

use crate::certificates::CertStore;
use crate::probe::Probe;
use crate::tls::Tls;

/// Connections that are served at a time; more wait in the kernel. The API server keeps few idle ones.
const MAX_CONNECTIONS: usize = 1024;
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);
/// How long a connection may be silent between requests, like the API server's own limit for idle connections.
const IDLE_LIMIT: Duration = Duration::from_secs(90);
/// How long open requests may take to end after the shutdown (SHD-2).
const DRAIN_LIMIT: Duration = Duration::from_secs(5);
/// Pause after a failed accept, usually for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Why the server cannot start.
#[derive(Debug, Error)]
pub enum ServerError {
    /// The listener is not usable.
    #[error("failed to listen")]
    Listen(#[source] io::Error),
    /// No TLS version is usable.
    #[error("failed to configure TLS")]
    Tls(#[source] rustls::Error),
}

/// A server on a bound listener. Connections queue up from the beginning and are answered from [`Server::serve`] on.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    certificates: Arc<CertStore>,
    acceptor: TlsAcceptor,
    router: Router,
}

impl Server {
    /// A server on `listener` with whatever certificate `certificates` holds at each handshake, for requests to `router`.
    ///
    /// # Errors
    /// The listener has no address, or no TLS version is usable.
    pub fn new(
        listener: TcpListener,
        certificates: Arc<CertStore>,
        tls: &Tls,
        router: Router,
    ) -> Result<Self, ServerError> {
        Ok(Self {
            address: listener.local_addr().map_err(ServerError::Listen)?,
            listener,
            acceptor: acceptor(&certificates, tls).map_err(ServerError::Tls)?,
            certificates,
            router,
        })
    }

    /// Where it listens, with the port that the system chose if none was given.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The readiness check of this server.
    pub fn probe(&self) -> Probe {
        Probe::new(self.address, Arc::clone(&self.certificates))
    }

    /// Answers until `shutdown` is over, then ends idle connections at once and the others after their current request.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) {
        let (closing, _) = watch::channel(());
        let mut connections = JoinSet::new();
        let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut shutdown = pin!(shutdown);
        info!(address = %self.address, "serving over HTTPS");
        loop {
            let accepted = tokio::select! {
                accepted = self.accept(&slots) => accepted,
                Some(_) = connections.join_next() => continue,
                () = &mut shutdown => break,
            };
            match accepted {
                Ok((stream, slot)) => {
                    let connection = Connection {
                        acceptor: self.acceptor.clone(),
                        router: self.router.clone(),
                    };
                    connections.spawn(connection.serve(stream, closing.subscribe(), slot));
                }
                Err(error) => {
                    warn!(%error, "failed to accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(self.listener);
        closing.send_replace(());
        let drained = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(DRAIN_LIMIT, drained).await.is_err() {
            warn!("connections were dropped that did not end in time");
        }
    }

    async fn accept(
        &self,
        slots: &Arc<Semaphore>,
    ) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
        let slot = Arc::clone(slots)
            .acquire_owned()
            .await
            .map_err(io::Error::other)?;
        let (stream, _) = self.listener.accept().await?;
        Ok((stream, slot))
    }
}

/// WHK-1: HTTP/2 is not offered.
fn acceptor(certificates: &Arc<CertStore>, tls: &Tls) -> Result<TlsAcceptor, rustls::Error> {
    let resolver: Arc<CertStore> = Arc::clone(certificates);
    let mut config = ServerConfig::builder_with_provider(Arc::new(tls.provider()))
        .with_protocol_versions(tls.versions())?
        .with_no_client_auth()
        .with_cert_resolver(resolver);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// What one connection needs of the server.
struct Connection {
    acceptor: TlsAcceptor,
    router: Router,
}

impl Connection {
    async fn serve(
        self,
        stream: TcpStream,
        mut closing: watch::Receiver<()>,
        _slot: OwnedSemaphorePermit,
    ) {
        let stream = match tokio::time::timeout(HANDSHAKE_LIMIT, self.acceptor.accept(stream)).await
        {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return debug!(%error, "TLS handshake failed"),
            Err(_) => return debug!("TLS handshake took too long"),
        };
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(IDLE_LIMIT);
        let service = TowerToHyperService::new(self.router);
        let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            _ = closing.changed() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            debug!(%error, "connection ended early");
        }
    }
}
