//! The component configuration file (CFG): what it may say, its defaults, and how it is read.
//!
//! Decides from the file's text alone; flags are laid over it by [`crate::flags`].

mod decode;
mod duration;
mod gates;
mod validate;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use validator::Validate;

pub use duration::{GoDuration, InvalidDuration};
pub use gates::{FeatureGates, GATES, InvalidGates, parse as gates_from_text};
pub use validate::{Problem, ProblemKind};

/// API group of the file.
pub const GROUP: &str = "config.lws.x-k8s.io";
/// Kind of the file.
pub const KIND: &str = "Configuration";

/// CFG-2: the file, version `v1`; `v1alpha1` has the same fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Configuration {
    /// Version of the file format.
    pub api_version: String,
    /// Always [`KIND`].
    pub kind: String,
    /// Admission server.
    pub webhook: Webhook,
    /// Leader election.
    pub leader_election: LeaderElection,
    /// Metrics server.
    pub metrics: Metrics,
    /// Probe server.
    pub health: Health,
    /// TLS of the admission and metrics servers.
    pub tls: Tls,
    /// Certificates that are made and rotated here.
    pub internal_cert_management: InternalCertManagement,
    /// Gang scheduling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gang_scheduling_management: Option<GangSchedulingManagement>,
    /// Feature gates by name.
    pub feature_gates: BTreeMap<String, bool>,
    /// Requests to the API server.
    pub client_connection: ClientConnection,
}

/// Admission server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Validate)]
#[serde(rename_all = "camelCase", default)]
pub struct Webhook {
    /// Listen port.
    #[validate(range(min = 1, max = 65535))]
    pub port: i64,
    /// Listen address; empty: all.
    pub host: String,
    /// Folder of `tls.crt` and `tls.key`, read when internal certificates are off.
    pub cert_dir: String,
}

/// Leader election (LE).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LeaderElection {
    /// Off: the controllers start at once.
    pub leader_elect: bool,
    /// How long a lease that is not renewed keeps others out.
    pub lease_duration: GoDuration,
    /// How long the holder goes on without a renewal.
    pub renew_deadline: GoDuration,
    /// Time between tries.
    pub retry_period: GoDuration,
    /// Only `leases`.
    pub resource_lock: String,
    /// Name of the Lease.
    pub resource_name: String,
    /// Accepted without effect: the Lease is in the operator namespace (CLI-7).
    pub resource_namespace: String,
}

/// Metrics server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metrics {
    /// Listen address; `"0"`: none.
    pub bind_address: String,
}

/// Probe server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Health {
    /// Listen address; `"0"`: none.
    pub health_probe_bind_address: String,
    /// Path of readiness.
    pub readiness_endpoint_name: String,
    /// Path of liveness.
    pub liveness_endpoint_name: String,
}

/// TLS options.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Tls {
    /// Lowest version.
    pub min_version: String,
    /// Cipher suites of TLS 1.2.
    pub cipher_suites: Vec<String>,
}

/// Certificates that are made and rotated here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Validate)]
#[serde(rename_all = "camelCase", default)]
pub struct InternalCertManagement {
    /// Off: certificates come from elsewhere.
    pub enable: bool,
    /// Service that the server certificate is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[validate(custom(function = "validate::dns_1035_label"))]
    pub webhook_service_name: Option<String>,
    /// Secret that holds the certificates.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[validate(custom(function = "validate::dns_1123_subdomain"))]
    pub webhook_secret_name: Option<String>,
}

/// Gang scheduling.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GangSchedulingManagement {
    /// `volcano` or `kubernetes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler_provider: Option<String>,
}

/// Requests to the API server (CLI-1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClientConnection {
    /// Requests per second.
    pub qps: f32,
    /// Requests at once after a quiet time.
    pub burst: i32,
}

impl Default for Configuration {
    fn default() -> Self {
        Self {
            api_version: format!("{GROUP}/v1"),
            kind: KIND.to_owned(),
            webhook: Webhook::default(),
            leader_election: LeaderElection::default(),
            metrics: Metrics::default(),
            health: Health::default(),
            tls: Tls::default(),
            internal_cert_management: InternalCertManagement::default(),
            gang_scheduling_management: None,
            feature_gates: BTreeMap::new(),
            client_connection: ClientConnection::default(),
        }
        .completed()
    }
}

impl Default for Webhook {
    fn default() -> Self {
        Self {
            port: 9443,
            host: String::new(),
            cert_dir: "/tmp/k8s-webhook-server/serving-certs".to_owned(),
        }
    }
}

impl Default for LeaderElection {
    fn default() -> Self {
        Self {
            leader_elect: true,
            lease_duration: GoDuration(Duration::from_secs(15)),
            renew_deadline: GoDuration(Duration::from_secs(10)),
            retry_period: GoDuration(Duration::from_secs(2)),
            resource_lock: "leases".to_owned(),
            resource_name: "b8b2488c.x-k8s.io".to_owned(),
            resource_namespace: String::new(),
        }
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            bind_address: ":8443".to_owned(),
        }
    }
}

impl Default for Health {
    fn default() -> Self {
        Self {
            health_probe_bind_address: ":8081".to_owned(),
            readiness_endpoint_name: "/readyz".to_owned(),
            liveness_endpoint_name: "/healthz".to_owned(),
        }
    }
}

impl Default for InternalCertManagement {
    fn default() -> Self {
        Self {
            enable: true,
            webhook_service_name: None,
            webhook_secret_name: None,
        }
    }
}

impl Default for ClientConnection {
    fn default() -> Self {
        Self {
            qps: 500.0,
            burst: 500,
        }
    }
}

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("could not read {path}: {source}")]
    Read {
        /// Its path.
        path: String,
        /// The operating system's word.
        source: std::io::Error,
    },
    /// The text is no such file (CFG-3).
    #[error(transparent)]
    Decode(#[from] decode::DecodeError),
    /// The values are not usable (CFG 1.2).
    #[error("invalid configuration: {}", list(.0))]
    Invalid(Vec<Problem>),
}

fn list(problems: &[Problem]) -> String {
    problems
        .iter()
        .map(Problem::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The effective configuration.
    pub configuration: Configuration,
    /// It was written as `v1alpha1` (CFG-2).
    pub is_deprecated_version: bool,
}

/// CFG-3, CFG-4: reads the file, or gives the defaults when `path` is empty.
///
/// # Errors
/// When the file cannot be read, decoded or used.
pub fn load(path: &str) -> Result<Loaded, ConfigError> {
    if path.is_empty() {
        return Ok(Loaded {
            configuration: Configuration::default(),
            is_deprecated_version: false,
        });
    };
    let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
        path: path.to_owned(),
        source,
    })?;
    parse(&text)
}

/// Reads the text of a file.
///
/// # Errors
/// As [`load`].
pub fn parse(text: &str) -> Result<Loaded, ConfigError> {
    let (configuration, version) = decode::decode(text)?;
    let configuration = configuration.completed();
    let problems = validate::problems(&configuration);
    if !problems.is_empty() {
        return Err(ConfigError::Invalid(problems));
    }
    Ok(Loaded {
        configuration,
        is_deprecated_version: version == decode::Version::V1Alpha1,
    })
}

impl Configuration {
    /// CFG-5: defaults that depend on another field, or that stand for an empty text.
    fn completed(mut self) -> Self {
        self.api_version = format!("{GROUP}/v1");
        let defaults = Health::default();
        or_default(
            &mut self.metrics.bind_address,
            &Metrics::default().bind_address,
        );
        or_default(&mut self.webhook.cert_dir, &Webhook::default().cert_dir);
        or_default(
            &mut self.health.health_probe_bind_address,
            &defaults.health_probe_bind_address,
        );
        or_default(
            &mut self.health.readiness_endpoint_name,
            &defaults.readiness_endpoint_name,
        );
        or_default(
            &mut self.health.liveness_endpoint_name,
            &defaults.liveness_endpoint_name,
        );
        let certificates = &mut self.internal_cert_management;
        if certificates.enable {
            certificates
                .webhook_service_name
                .get_or_insert_with(|| "lws-webhook-service".to_owned());
            certificates
                .webhook_secret_name
                .get_or_insert_with(|| "lws-webhook-server-cert".to_owned());
        }
        self
    }

    /// CFG-5: the configuration as it is logged.
    pub fn to_yaml(&self) -> String {
        serde_saphyr::to_string(self).unwrap_or_default()
    }
}

fn or_default(text: &mut String, default: &str) {
    if text.is_empty() {
        default.clone_into(text);
    }
}

#[cfg(test)]
mod tests;
