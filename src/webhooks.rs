//! Runs the admission server with its certificates, and keeps the readiness check `webhooks` up to date (HLT-4, CRT-7).

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
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

use crate::certificates::{self, Keeper, KeeperError, Lifetimes, Settings};
use crate::config::Configuration;
use crate::identity;
use crate::listen;
use crate::metrics::Metrics;
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
    #[error("failed to listen on {address}")]
    Listen {
        /// Where.
        address: String,
        /// The operating system's word.
        source: std::io::Error,
    },
    /// It cannot serve.
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
    pub environment: watch::Receiver<Environment>,
}

impl Webhooks {
    /// Serves until `shutdown` is over; ends early only with an error.
    ///
    /// # Errors
    /// When it cannot listen, or has no certificate in time.
    pub async fn serve(
        mut self,
        client: &Client,
        health: &Health,
        metrics: Arc<Metrics>,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), WebhookError> {
        let certificates = Arc::new(CertStore::new(&metrics.certificates));
        let environment = *self.environment.borrow_and_update();
        let admission = Arc::new(Admission::new(
            environment,
            &ring::default_provider(),
            metrics.admission.clone(),
        ));
        let server = self.bind(&certificates, &admission).await?;
        let checked = check(server.probe(), health);
        tokio::select! {
            () = server.serve(shutdown) => Ok(()),
            () = checked => Ok(()),
            () = follow(self.environment, &admission) => Ok(()),
            kept = keep(self.source, client, metrics, certificates, health) => kept,
        }
    }

    async fn bind(
        &self,
        certificates: &Arc<CertStore>,
        admission: &Arc<Admission>,
    ) -> Result<Server, WebhookError> {
        let (host, port) = &self.listen;
        let address = if host.is_empty() {
            format!(":{port}")
        } else {
            let ip: IpAddr = host.parse().map_err(|_| WebhookError::Host(host.clone()))?;
            SocketAddr::new(ip, *port).to_string()
        };
        let listener = listen::bind(&address)
            .await
            .map_err(|source| WebhookError::Listen { address, source })?;
        let router = admission.router();
        Ok(Server::new(
            listener,
            certificates.clone(),
            &self.tls,
            router,
        )?)
    }
}

/// Decides by what is told last; never ends.
async fn follow(mut environment: watch::Receiver<Environment>, admission: &Admission) {
    while environment.changed().await.is_ok() {
        admission.set_environment(*environment.borrow_and_update());
    }
    // Nothing changes any more.
    std::future::pending().await
}

/// MET-7: when the certificate of the folder ends, which is read again from time to time (WHK-5).
async fn show_expiry(certificates: &CertStore, metrics: &Metrics) -> Infallible {
    loop {
        let served = certificates.leaf();
        if let Some(end) = served.and_then(|served| certificates::end(&served)) {
            metrics.set_expiry("serving", end);
        }
        tokio::time::sleep(ONCE_READY).await;
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
    metrics: Arc<Metrics>,
    certificates: Arc<CertStore>,
    health: &Health,
) -> Result<(), WebhookError> {
    match source {
        Source::Folder(folder) => {
            // Who fills the folder also announces its authority.
            health.authority_is_announced(true);
            tracing::info!(target: "setup", folder = %folder.display(), "waiting for the cert generation to complete");
            let mut files = CertFiles::new(folder, certificates.clone());
            files.wait().await?;
            tracing::info!(target: "setup", "certs ready");
            tokio::select! {
                never = files.follow() => match never {},
                never = show_expiry(&certificates, &metrics) => match never {},
            }
        }
        Source::Secret(settings) => {
            let (announce, mut announced) = watch::channel(false);
            let keeper = Keeper::new(client, settings, metrics, certificates, announce);
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
