//! How to reach a cluster, as kubectl does, and which object a name means.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, Result};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// Flags that every command takes.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Connection {
    /// Namespace; that of the context if absent.
    #[arg(short, long, global = true, value_name = "NAMESPACE")]
    pub namespace: Option<String>,
    /// Context of the kubeconfig; the current one if absent.
    #[arg(long, global = true, value_name = "CONTEXT")]
    context: Option<String>,
    /// Path of the kubeconfig; as kubectl's if absent.
    #[arg(long, global = true, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

/// A cluster and the namespace that names are looked for in.
#[derive(Clone)]
pub struct Cluster {
    /// The client.
    pub client: Client,
    /// The namespace.
    pub namespace: String,
}

impl Connection {
    /// Connects.
    pub async fn connect(&self) -> Result<Cluster> {
        let mut config = self
            .config()
            .await
            .context("no configuration to reach a cluster")?;
        if let Some(namespace) = &self.namespace {
            config.default_namespace.clone_from(namespace);
        }
        let namespace = config.default_namespace.clone();
        let client = Client::try_from(config).context("cannot make a client")?;
        Ok(Cluster { client, namespace })
    }

    async fn config(&self) -> Result<Config> {
        let options = KubeConfigOptions {
            context: self.context.clone(),
            ..KubeConfigOptions::default()
        };
        let config = match &self.kubeconfig {
            Some(path) => {
                let kubeconfig = Kubeconfig::read_from(path)?;
                Config::from_custom_kubeconfig(kubeconfig, &options).await?
            }
            None if self.context.is_none() => Config::infer().await?,
            None => Config::from_kubeconfig(&options).await?,
        };
        Ok(config)
    }
}

/// The kinds that commands work on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub enum Kind {
    /// `lws`.
    LeaderWorkerSet,
    /// `ds`.
    DisaggregatedSet,
}

impl fmt::Display for Kind {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::LeaderWorkerSet => "LeaderWorkerSet",
            Self::DisaggregatedSet => "DisaggregatedSet",
        })
    }
}

/// `NAME` or `KIND/NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The kind, LeaderWorkerSet unless it is said.
    pub kind: Kind,
    /// The name.
    pub name: String,
}

impl FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, name) = text.split_once('/').unwrap_or(("lws", text));
        let kind = match kind.to_ascii_lowercase().as_str() {
            "lws" | "leaderworkerset" | "leaderworkersets" => Kind::LeaderWorkerSet,
            "ds" | "disaggregatedset" | "disaggregatedsets" => Kind::DisaggregatedSet,
            other => return Err(format!("{other:?} is neither lws nor ds")),
        };
        if name.is_empty() {
            return Err("the name is empty".to_owned());
        }
        let name = name.to_owned();
        Ok(Self { kind, name })
    }
}

impl fmt::Display for Named {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} {}", self.kind, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kc_names_as_kubectl_takes_them() {
        for (text, kind, name) in [
            ("llm", Kind::LeaderWorkerSet, "llm"),
            ("lws/llm", Kind::LeaderWorkerSet, "llm"),
            ("LeaderWorkerSets/llm", Kind::LeaderWorkerSet, "llm"),
            ("ds/llm", Kind::DisaggregatedSet, "llm"),
            ("disaggregatedset/llm", Kind::DisaggregatedSet, "llm"),
        ] {
            let name = name.to_owned();
            assert_eq!(text.parse(), Ok(Named { kind, name }), "{text}");
        }
        for text in ["pod/llm", "", "lws/"] {
            assert!(text.parse::<Named>().is_err(), "{text}");
        }
    }
}
