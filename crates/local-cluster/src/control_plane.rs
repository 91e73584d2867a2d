//! The command lines and configuration files of the control plane. Pure: from a layout, ports and options.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Result, Tool, Tools, node};

/// Cluster addresses of Services; the first is the API server's own.
const SERVICE_RANGE: &str = "10.96.0.0/16";
/// Addresses of fake pods.
const POD_RANGE: &str = "10.244.0.0/16";
/// Names under which clients inside and outside a cluster reach the API server.
pub(crate) const SERVER_NAMES: [&str; 5] = [
    "127.0.0.1",
    "localhost",
    "kubernetes",
    "kubernetes.default.svc",
    "10.96.0.1",
];
/// The defaults of 20 and 30 requests a second would hide every other cost.
const REQUESTS_PER_SECOND: u32 = 2_000;
const REQUEST_BURST: u32 = 4_000;

/// A process of a cluster, in the order of start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Component {
    /// The database.
    Etcd,
    /// The API server.
    ApiServer,
    /// The controllers of Kubernetes.
    ControllerManager,
    /// The scheduler.
    Scheduler,
    /// The fake kubelets.
    Kwok,
    /// Leads from the real node to the API server.
    NodeLink,
    /// The real node, with everything that runs on it.
    Node,
}

impl Component {
    /// Those of every cluster, in the order of start.
    pub const ALL: [Self; 5] = [
        Self::Etcd,
        Self::ApiServer,
        Self::ControllerManager,
        Self::Scheduler,
        Self::Kwok,
    ];

    /// Those of a real node, which come after.
    pub(crate) const NODE: [Self; 2] = [Self::NodeLink, Self::Node];

    /// The program that runs it; of a node, which is many programs, the one that isolates it.
    pub(crate) fn program(self, tools: &Tools) -> Result<PathBuf> {
        match self {
            Self::Etcd => tools.path(Tool::Etcd),
            Self::ApiServer => tools.path(Tool::ApiServer),
            Self::ControllerManager => tools.path(Tool::ControllerManager),
            Self::Scheduler => tools.path(Tool::Scheduler),
            Self::Kwok => tools.path(Tool::Kwok),
            Self::NodeLink => tools.path(Tool::NodeNetwork),
            Self::Node => Ok(node::PROGRAM.into()),
        }
    }

    /// Name in messages and of the log file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => Tool::Etcd.name(),
            Self::ApiServer => Tool::ApiServer.name(),
            Self::ControllerManager => Tool::ControllerManager.name(),
            Self::Scheduler => Tool::Scheduler.name(),
            Self::Kwok => Tool::Kwok.name(),
            Self::NodeLink => "node-link",
            Self::Node => "node",
        }
    }
}

/// Ports of one cluster, all on 127.0.0.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ports {
    pub(crate) etcd: u16,
    pub(crate) etcd_peer: u16,
    pub(crate) api_server: u16,
    pub(crate) controller_manager: u16,
    pub(crate) scheduler: u16,
}

impl Ports {
    pub(crate) fn of(ports: [u16; 5]) -> Self {
        let [etcd, etcd_peer, api_server, controller_manager, scheduler] = ports;
        Self {
            etcd,
            etcd_peer,
            api_server,
            controller_manager,
            scheduler,
        }
    }

    pub(crate) fn all(&self) -> [u16; 5] {
        [
            self.etcd,
            self.etcd_peer,
            self.api_server,
            self.controller_manager,
            self.scheduler,
        ]
    }

    /// Address of the API server.
    pub(crate) fn server(&self) -> String {
        format!("https://127.0.0.1:{}", self.api_server)
    }
}

/// Where the files of one cluster are.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) folder: PathBuf,
}

impl Layout {
    pub(crate) fn state(&self) -> PathBuf {
        self.folder.join("state.json")
    }

    pub(crate) fn pki(&self) -> PathBuf {
        self.folder.join("pki")
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.folder.join("logs")
    }

    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.logs().join(format!("{name}.log"))
    }

    pub(crate) fn audit_log(&self) -> PathBuf {
        self.logs().join("audit.log")
    }

    pub(crate) fn configs(&self) -> PathBuf {
        self.folder.join("config")
    }

    pub(crate) fn config(&self, name: &str) -> PathBuf {
        self.configs().join(name)
    }

    pub(crate) fn kubeconfigs(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }

    /// Kubeconfig of a component or person.
    pub(crate) fn kubeconfig(&self, user: &str) -> PathBuf {
        self.kubeconfigs().join(format!("{user}.yaml"))
    }

    /// Folders that are made anew with each start.
    pub(crate) fn folders(&self) -> [PathBuf; 5] {
        [
            self.logs(),
            self.pki(),
            self.configs(),
            self.kubeconfigs(),
            self.etcd_data(),
        ]
    }

    pub(crate) fn etcd_data(&self) -> PathBuf {
        self.folder.join("etcd")
    }

    /// What the real node reads and writes.
    pub(crate) fn node(&self) -> PathBuf {
        self.folder.join("node")
    }

    /// A Unix socket of the real node. Paths of sockets are short: 107 bytes at most.
    pub(crate) fn node_socket(&self, name: &str) -> PathBuf {
        self.node().join(format!("{name}.sock"))
    }
}

/// Arguments of a component, without the program.
pub(crate) fn arguments(
    component: Component,
    layout: &Layout,
    ports: &Ports,
    gang_scheduling: bool,
) -> Vec<String> {
    let mut arguments = match component {
        Component::Etcd => etcd(layout, ports),
        Component::ApiServer => api_server(layout, ports),
        Component::ControllerManager => controller_manager(layout, ports),
        Component::Scheduler => scheduler(layout, ports),
        Component::Kwok => kwok(layout),
        Component::NodeLink => node::link_arguments(layout, ports),
        Component::Node => node::arguments(layout),
    };
    if gang_scheduling {
        arguments.extend(gang_scheduling_flags(component));
    }
    arguments
}

fn gang_scheduling_flags(component: Component) -> Vec<String> {
    let gate = flag("feature-gates", "GenericWorkload=true");
    match component {
        Component::ApiServer => {
            vec![
                gate,
                flag("runtime-config", "scheduling.k8s.io/v1beta1=true"),
            ]
        }
        Component::ControllerManager | Component::Scheduler => vec![gate],
        Component::Etcd | Component::Kwok | Component::NodeLink | Component::Node => Vec::new(),
    }
}

fn etcd(layout: &Layout, ports: &Ports) -> Vec<String> {
    let client = format!("http://127.0.0.1:{}", ports.etcd);
    let peer = format!("http://127.0.0.1:{}", ports.etcd_peer);
    vec![
        flag("name", "local"),
        file("data-dir", &layout.etcd_data()),
        flag("listen-client-urls", &client),
        flag("advertise-client-urls", &client),
        flag("listen-peer-urls", &peer),
        flag("initial-advertise-peer-urls", &peer),
        flag("initial-cluster", format!("local={peer}")),
        // The data lives no longer than the cluster, so it need not survive a crash of the machine.
        flag("unsafe-no-fsync", "true"),
        flag("quota-backend-bytes", "4294967296"),
        flag("log-level", "warn"),
    ]
}

fn api_server(layout: &Layout, ports: &Ports) -> Vec<String> {
    let pki = layout.pki();
    vec![
        flag("etcd-servers", format!("http://127.0.0.1:{}", ports.etcd)),
        flag("bind-address", "127.0.0.1"),
        flag("advertise-address", "127.0.0.1"),
        flag("secure-port", ports.api_server),
        file("cert-dir", &pki),
        file("tls-cert-file", &pki.join("server.crt")),
        file("tls-private-key-file", &pki.join("server.key")),
        file("client-ca-file", &pki.join("ca.crt")),
        flag("authorization-mode", "RBAC"),
        flag("service-account-issuer", "https://kubernetes.default.svc"),
        file("service-account-key-file", &pki.join("sa.pub")),
        file("service-account-signing-key-file", &pki.join("sa.key")),
        flag("service-cluster-ip-range", SERVICE_RANGE),
        flag("allow-privileged", "true"),
        flag("endpoint-reconciler-type", "none"),
        flag("max-requests-inflight", REQUESTS_PER_SECOND),
        flag("max-mutating-requests-inflight", REQUESTS_PER_SECOND),
        file("audit-policy-file", &layout.config("audit-policy.json")),
        file("audit-log-path", &layout.audit_log()),
        // Requests are counted in this file, so it must not be rotated away.
        flag("audit-log-maxsize", 100_000),
    ]
}

fn controller_manager(layout: &Layout, ports: &Ports) -> Vec<String> {
    let pki = layout.pki();
    vec![
        file(
            "kubeconfig",
            &layout.kubeconfig(Component::ControllerManager.name()),
        ),
        flag("bind-address", "127.0.0.1"),
        flag("secure-port", ports.controller_manager),
        flag(
            "authorization-always-allow-paths",
            "/healthz,/livez,/readyz,/metrics",
        ),
        flag("leader-elect", "false"),
        flag("use-service-account-credentials", "true"),
        file("service-account-private-key-file", &pki.join("sa.key")),
        file("root-ca-file", &pki.join("ca.crt")),
        flag("kube-api-qps", REQUESTS_PER_SECOND),
        flag("kube-api-burst", REQUEST_BURST),
        flag("concurrent-statefulset-syncs", 20),
        flag("concurrent-gc-syncs", 20),
        flag("horizontal-pod-autoscaler-sync-period", "1s"),
        flag("horizontal-pod-autoscaler-cpu-initialization-period", "1s"),
        flag("horizontal-pod-autoscaler-initial-readiness-delay", "1s"),
        flag("horizontal-pod-autoscaler-downscale-stabilization", "1s"),
    ]
}

fn scheduler(layout: &Layout, ports: &Ports) -> Vec<String> {
    vec![
        file("config", &layout.config("scheduler.json")),
        flag("bind-address", "127.0.0.1"),
        flag("secure-port", ports.scheduler),
        flag(
            "authorization-always-allow-paths",
            "/healthz,/livez,/readyz,/metrics",
        ),
    ]
}

fn kwok(layout: &Layout) -> Vec<String> {
    vec![
        file("kubeconfig", &layout.kubeconfig(Component::Kwok.name())),
        file("config", &layout.config("kwok.yaml")),
        // Not all nodes, so that a node with a real kubelet can join.
        flag("manage-nodes-with-label-selector", "type=kwok"),
        flag("cidr", POD_RANGE),
        flag("node-ip", "127.0.0.1"),
        flag("node-lease-duration-seconds", 40),
    ]
}

/// Environment of a component beside the inherited one.
pub(crate) fn environment(component: Component, layout: &Layout) -> Vec<(String, String)> {
    match component {
        // KWOK adds the stages of `~/.kwok/kwok.yaml` to the given ones.
        Component::Kwok => vec![("HOME".to_owned(), layout.folder.display().to_string())],
        Component::Etcd
        | Component::ApiServer
        | Component::ControllerManager
        | Component::Scheduler
        | Component::NodeLink
        | Component::Node => Vec::new(),
    }
}

/// Audit policy: one line per finished request, so that requests can be counted by user agent.
pub(crate) fn audit_policy() -> Value {
    json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived", "ResponseStarted"],
        "rules": [{"level": "Metadata"}],
    })
}

/// Configuration of the scheduler.
pub(crate) fn scheduler_config(layout: &Layout) -> Value {
    json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {
            "kubeconfig": layout.kubeconfig(Component::Scheduler.name()),
            "qps": REQUESTS_PER_SECOND,
            "burst": REQUEST_BURST,
        },
        "leaderElection": {"leaderElect": false},
    })
}

fn flag(name: &str, value: impl std::fmt::Display) -> String {
    format!("--{name}={value}")
}

fn file(name: &str, path: &Path) -> String {
    flag(name, path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(component: Component, gang_scheduling: bool) -> Vec<String> {
        let layout = Layout {
            folder: PathBuf::from("/c"),
        };
        arguments(
            component,
            &layout,
            &Ports::of([1, 2, 3, 4, 5]),
            gang_scheduling,
        )
    }

    #[test]
    fn everything_listens_on_loopback_only() {
        for component in [
            Component::ApiServer,
            Component::ControllerManager,
            Component::Scheduler,
        ] {
            assert!(lines(component, true).contains(&"--bind-address=127.0.0.1".to_owned()));
        }
        let urls = lines(Component::Etcd, true);
        for url in urls.iter().filter(|flag| flag.contains("urls")) {
            assert!(url.contains("=http://127.0.0.1:"), "{url}");
        }
    }

    #[test]
    fn gang_scheduling_is_on_where_it_is_read() {
        let gate = "--feature-gates=GenericWorkload=true".to_owned();
        for component in Component::ALL {
            let reads = !matches!(component, Component::Etcd | Component::Kwok);
            assert_eq!(
                lines(component, true).contains(&gate),
                reads,
                "{component:?}"
            );
            assert!(!lines(component, false).contains(&gate));
        }
    }

    #[test]
    fn audit_log_has_one_stage_a_request() {
        assert_eq!(
            audit_policy()["omitStages"],
            json!(["RequestReceived", "ResponseStarted"])
        );
    }

    #[test]
    fn kwok_reads_no_stages_of_the_user() {
        let layout = Layout {
            folder: PathBuf::from("/c"),
        };
        let home = ("HOME".to_owned(), "/c".to_owned());
        assert_eq!(environment(Component::Kwok, &layout), vec![home]);
    }

    #[test]
    fn ports_are_all_different_fields() {
        assert_eq!(Ports::of([1, 2, 3, 4, 5]).all(), [1, 2, 3, 4, 5]);
    }
}
