//! Runs the admission server with its certificates, and keeps the readiness check `webhooks` up to date (HLT-4, CRT-7).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use lws_core::admission::Environment;
use lws_webhook::{
    Admission, CertFiles, CertStore, CertificateError, Probe, Server, ServerError, Tls,
};
use rustls::crypto::ring;
use tokio::sync::watch;

use crate::certificates::{Keeper, KeeperError, Lifetimes, Settings};
use crate::config::Configuration;
use crate::identity;
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
    /// Its files are not there.
    #[error(transparent)]
    Files(#[from] CertificateError),
    /// Its Secret is not there, or not announced.
    #[error(transparent)]
    Secret(#[from] KeeperError),
}

/// Where certificates come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// A folder that somebody else fills (`internalCertManagement.enable: false`).
    Folder(PathBuf),
    /// A Secret that is kept here.
    Secret(Settings),
}

impl Source {
    /// As the configuration says.
    pub fn of(configuration: &Configuration) -> Self {
        let internal = &configuration.internal_cert_management;
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        if !internal.enable {
            return Self::Folder(configuration.webhook.cert_dir.clone().into());
        }
        let namespace = identity::operator_namespace();
        Self::Secret(Settings {
            secret: text(&internal.webhook_secret_name),
            server: format!("{}.{namespace}.svc", text(&internal.webhook_service_name)),
            namespace,
            lifetimes: Lifetimes::default(),
        })
    }
}

/// The admission server, before it serves.
pub struct Webhooks {
    /// Where it listens, by host (empty: every address) and port.
    pub listen: (String, u16),
    /// What it offers.
    pub tls: Tls,
    /// Where its certificates come from.
    pub source: Source,
    /// What it decides by.
    pub environment: Environment,
}

impl Webhooks {
    /// Serves until `shutdown` is over; ends early only with an error.
    ///
    /// # Errors
    /// When it cannot listen, or has no certificate in time.
    pub async fn serve(
        self,
        client: &Client,
        health: &Health,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), WebhookError> {
        let certificates = Arc::new(CertStore::new());
        let server = self.bind(&certificates).await?;
        let checked = check(server.probe(), health);
        tokio::select! {
            () = server.serve(shutdown) => Ok(()),
            () = checked => Ok(()),
            kept = keep(self.source, client, certificates, health) => kept,
        }
    }

    async fn bind(&self, certificates: &Arc<CertStore>) -> Result<Server, WebhookError> {
        let admission = Arc::new(Admission::new(self.environment, &ring::default_provider()));
        let (host, port) = &self.listen;
        let hosts: Vec<IpAddr> = if host.is_empty() {
            vec![Ipv6Addr::UNSPECIFIED.into(), Ipv4Addr::UNSPECIFIED.into()]
        } else {
            let host = host.parse().map_err(|_| WebhookError::Host(host.clone()))?;
            vec![host]
        };
        let mut refused = None;
        for address in hosts.into_iter().map(|host| SocketAddr::new(host, *port)) {
            let router = admission.router();
            match Server::bind(address, certificates.clone(), &self.tls, router).await {
                Ok(server) => return Ok(server),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        Err(refused.map_or_else(|| WebhookError::Host(host.clone()), WebhookError::Server))
    }
}

async fn check(probe: Probe, health: &Health) {
    loop {
        let is_ready = probe.ready().await.is_ok();
        health.webhooks_are_served(is_ready);
        tokio::time::sleep(if is_ready { ONCE_READY } else { UNTIL_READY }).await;
    }
}

/// Keeps the certificate up to date; ends with an error only.
async fn keep(
    source: Source,
    client: &Client,
    certificates: Arc<CertStore>,
    health: &Health,
) -> Result<(), WebhookError> {
    match source {
        Source::Folder(folder) => {
            // Who fills the folder also announces its authority.
            health.authority_is_announced(true);
            tracing::info!(target: "setup", folder = %folder.display(), "waiting for the cert generation to complete");
            let mut files = CertFiles::new(folder, certificates);
            files.wait().await?;
            tracing::info!(target: "setup", "certs ready");
            match files.follow().await {}
        }
        Source::Secret(settings) => {
            let (announce, mut announced) = watch::channel(false);
            let keeper = Keeper::new(client, settings, certificates, announce);
            let told = async {
                while announced.changed().await.is_ok() {
                    health.authority_is_announced(*announced.borrow_and_update());
                }
                std::future::pending().await
            };
            tokio::select! {
                kept = keeper.run() => match kept? {},
                never = told => never,
            }
        }
    }
}
