//! Starts the admission server with the certificates of a folder, and keeps the readiness check `webhooks` up to date (HLT-4, CRT-7).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use lws_core::admission::Environment;
use lws_webhook::{Admission, CertFiles, CertStore, CertificateError, Server, ServerError};
use rustls::crypto::ring;

use crate::config;
use crate::probes::Health;

/// How often the server is asked for its certificate: often until it answers, then now and then.
const UNTIL_READY: Duration = Duration::from_millis(200);
const ONCE_READY: Duration = Duration::from_secs(5);

/// Why there is no admission server.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// `webhook.host` or `webhook.port`.
    #[error("webhook.host {0:?} is no IP address")]
    Host(String),
    /// It cannot listen.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// It has no certificate.
    #[error("could not mount certs")]
    Certificates(#[from] CertificateError),
}

/// Serves until `shutdown` is over; ends early only with an error.
///
/// # Errors
/// When it cannot listen, or no certificate appears in time.
pub async fn serve(
    config: &config::Webhook,
    environment: Environment,
    health: &Health,
    shutdown: impl Future<Output = ()>,
) -> Result<(), WebhookError> {
    let certificates = Arc::new(CertStore::new());
    let admission = Arc::new(Admission::new(environment, &ring::default_provider()));
    let server = bind(config, &certificates, &admission).await?;
    let mut files = CertFiles::new(config.cert_dir.clone().into(), certificates);
    tracing::info!(target: "setup", folder = config.cert_dir, "waiting for the cert generation to complete");
    tokio::pin!(shutdown);
    tokio::select! {
        waited = files.wait() => waited?,
        () = &mut shutdown => return Ok(()),
    }
    tracing::info!(target: "setup", "certs ready");
    let probe = server.probe();
    let checked = async {
        loop {
            let is_ready = probe.ready().await.is_ok();
            health.webhooks_are_served(is_ready);
            tokio::time::sleep(if is_ready { ONCE_READY } else { UNTIL_READY }).await;
        }
    };
    tokio::select! {
        () = server.serve(shutdown) => Ok(()),
        () = checked => Ok(()),
        _ = files.follow() => Ok(()),
    }
}

async fn bind(
    config: &config::Webhook,
    certificates: &Arc<CertStore>,
    admission: &Arc<Admission>,
) -> Result<Server, WebhookError> {
    let hosts: Vec<IpAddr> = if config.host.is_empty() {
        vec![Ipv6Addr::UNSPECIFIED.into(), Ipv4Addr::UNSPECIFIED.into()]
    } else {
        vec![
            config
                .host
                .parse()
                .map_err(|_| WebhookError::Host(config.host.clone()))?,
        ]
    };
    // Validated to be a port (CFG 1.2).
    let port = u16::try_from(config.port).unwrap_or_default();
    let mut refused = None;
    for host in hosts {
        match Server::bind(SocketAddr::new(host, port), certificates.clone(), admission).await {
            Ok(server) => return Ok(server),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    Err(refused.map_or_else(
        || WebhookError::Host(config.host.clone()),
        WebhookError::Server,
    ))
}
