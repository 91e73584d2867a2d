//! The configuration files of a real node. Pure: from a layout.

use std::path::Path;

use serde_json::{Value, json};

use super::REAL;
use crate::control_plane::Layout;

/// Who the node is to the API server.
pub(crate) const USER: &str = "node";
/// Address of the API server in the node's network: that of the Service `kubernetes`.
pub(crate) const API_ADDRESS: &str = "10.96.0.1";
/// Address of DNS, as the Service `kube-dns` usually has it.
pub(super) const DNS_ADDRESS: &str = "10.96.0.10";
/// Address of the node.
pub(super) const ADDRESS: &str = "10.245.255.1";
/// Addresses of its pods; those of fake pods are others.
const POD_RANGE: &str = "10.245.0.0/24";
/// Image of the container that holds a pod's network.
pub(super) const PAUSE: &str = "lws.example/pause:local";

/// Where the API server finds the proxy into the node's network.
pub(super) fn egress(layout: &Layout) -> Value {
    json!({
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [{
            "name": "cluster",
            "connection": {
                "proxyProtocol": "HTTPConnect",
                "transport": {"uds": {"udsName": layout.node_socket("proxy")}},
            },
        }],
    })
}

/// The kubelet's. Everybody who reaches it may do all: only the API server and the node's own pods do.
pub(super) fn kubelet(layout: &Layout, group: &str, tainted: bool) -> Value {
    let taint = json!({"key": "type", "value": REAL, "effect": "NoSchedule"});
    let taints: Vec<Value> = tainted.then_some(taint).into_iter().collect();
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": ADDRESS,
        "authentication": {"anonymous": {"enabled": true}, "webhook": {"enabled": false}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": format!("/{group}"),
        "cgroupsPerQOS": false,
        "enforceNodeAllocatable": [],
        "failCgroupV1": false,
        "failSwapOn": false,
        "localStorageCapacityIsolation": false,
        "containerRuntimeEndpoint": format!("unix://{}", layout.node_socket("containerd").display()),
        "clusterDomain": "cluster.local",
        "clusterDNS": [DNS_ADDRESS],
        "resolvConf": "",
        "registerWithTaints": taints,
        "podLogsDir": layout.node().join("pods"),
        // The disk and the memory are those of somebody's machine: the node is no judge of them.
        "evictionHard": {"memory.available": "1Mi", "nodefs.available": "1Mi", "imagefs.available": "1Mi"},
        "imageGCHighThresholdPercent": 100,
    })
}

/// containerd's. Without `restrict_oom_score_adj` runc fails where a negative score is not permitted.
pub(super) fn containerd(layout: &Layout, runtime: &Path) -> String {
    let folder = layout.node().join("containerd");
    let text = |path: &Path| path.display().to_string();
    format!(
        r#"version = 2
root = "{root}"
state = "{state}"
[grpc]
  address = "{socket}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{opt}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "{plugins}"
  conf_dir = "{networks}"
[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "overlayfs"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  BinaryName = "{runc}"
"#,
        root = text(&folder.join("root")),
        state = text(&folder.join("state")),
        opt = text(&folder.join("opt")),
        socket = text(&layout.node_socket("containerd")),
        plugins = text(&runtime.join("usr/lib/cni")),
        networks = text(&layout.node().join("cni")),
        runc = text(&runtime.join("usr/sbin/runc")),
    )
}

/// The pods' network: a bridge, with the node as their gateway and nothing behind it.
pub(super) fn pod_network(layout: &Layout) -> Value {
    json!({
        "cniVersion": "0.4.0",
        "name": "pods",
        "plugins": [{
            "type": "bridge",
            "bridge": "cni0",
            "isGateway": true,
            "ipam": {
                "type": "host-local",
                "dataDir": layout.node().join("addresses"),
                "ranges": [[{"subnet": POD_RANGE}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        }],
    })
}

/// Names of Services and pods, and no others.
pub(super) fn corefile(layout: &Layout, cluster: &str) -> String {
    let kubeconfig = layout.kubeconfig(USER);
    format!(
        ".:53 {{\n  bind {DNS_ADDRESS}\n  errors\n  kubernetes cluster.local {{\n    kubeconfig {} lws-{cluster}\n  }}\n}}\n",
        kubeconfig.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn layout() -> Layout {
        Layout {
            folder: PathBuf::from("/c"),
        }
    }

    #[test]
    fn only_a_node_beside_others_is_tainted() {
        let taints = |tainted| kubelet(&layout(), "g", tainted)["registerWithTaints"].clone();
        assert_eq!(taints(false), json!([]));
        assert_eq!(taints(true)[0]["value"], REAL);
    }

    #[test]
    fn pods_have_addresses_of_their_own() {
        let network = pod_network(&layout());
        let range = &network["plugins"][0]["ipam"]["ranges"][0][0]["subnet"];
        assert_eq!(range, POD_RANGE);
        assert!(!POD_RANGE.starts_with("10.244."), "KWOK gives these");
    }

    #[test]
    fn everything_of_the_node_is_in_the_folder_of_the_cluster() {
        let text = containerd(&layout(), Path::new("/r"));
        for line in text.lines().filter(|line| line.contains("= \"/")) {
            assert!(
                line.contains("\"/c/node/") || line.contains("\"/r/"),
                "{line}"
            );
        }
        assert!(corefile(&layout(), "x").contains("kubeconfig /c/kubeconfig/node.yaml lws-x"));
    }
}
