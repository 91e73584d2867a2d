//! Connections to the API server (KRS-8 … KRS-16, CLI-2, FLG-5).
//!
//! No client repeats a request by itself: a repeated POST is told from a first one only by whoever decided on it (KRS-16). Time limits are set where
//! requests are made, since a limit here would cut watches too (KRS-14).

use std::time::Duration;

use http::HeaderValue;
use http::header::USER_AGENT;
use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

use crate::metrics::Metrics;
use crate::version;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No usable kubeconfig, and not in a cluster either.
    #[error("no configuration to reach an API server")]
    Config(#[from] KubeconfigError),
    /// The configuration does not make a client.
    #[error("could not build a client")]
    Build(#[from] kube::Error),
}

/// Clients that do not wait for each other (KRS-13).
#[derive(Clone)]
pub struct Clients {
    /// For what controllers read and write.
    pub requests: Client,
    /// For watches and the lists that open them.
    pub watches: Client,
    /// For the Lease.
    pub election: Client,
}

/// FLG-5: `--kubeconfig`, `KUBECONFIG`, the cluster that this runs in, the home folder.
///
/// # Errors
/// When none of them is there, or the first one that is cannot be used.
pub async fn connect(kubeconfig: &str, metrics: &Metrics) -> Result<Clients, ClientError> {
    let config = config(kubeconfig).await?;
    let agent = version::user_agent();
    Ok(Clients {
        requests: client(config.clone(), &agent, metrics)?,
        watches: client(config.clone(), &agent, metrics)?,
        election: client(config, &format!("{agent} leader-election"), metrics)?,
    })
}

async fn config(kubeconfig: &str) -> Result<Config, ClientError> {
    let options = KubeConfigOptions::default();
    if !kubeconfig.is_empty() {
        return Ok(
            Config::from_custom_kubeconfig(Kubeconfig::read_from(kubeconfig)?, &options).await?,
        );
    }
    let is_named = std::env::var_os("KUBECONFIG").is_some_and(|path| !path.is_empty());
    match Config::incluster() {
        Ok(config) if !is_named => Ok(config),
        Ok(_) | Err(_) => Ok(Config::from_kubeconfig(&options).await?),
    }
}

fn client(mut config: Config, agent: &str, metrics: &Metrics) -> Result<Client, ClientError> {
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    if let Ok(agent) = HeaderValue::from_str(agent) {
        config.headers.push((USER_AGENT, agent));
    }
    let host = config.cluster_url.authority();
    let count = metrics.requests(host.map_or("", |authority| authority.as_str()));
    Ok(ClientBuilder::try_from(config)?.with_layer(&count).build())
}
