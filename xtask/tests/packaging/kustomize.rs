//! DEP, RBAC, KUS and WHK-2: what `config/` renders to, as it is and with its switches turned.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::documents::{Documents, kustomize, root, run};

/// `config/default` as it is. Rendered once.
fn tree() -> &'static Documents {
    static TREE: OnceLock<Documents> = OnceLock::new();
    TREE.get_or_init(|| kustomize(&root().join("config/default")))
}

/// A copy of the tree whose `config/default/kustomization.yaml` was edited as its comments say.
fn switched(edit: impl FnOnce(String) -> String) -> Documents {
    let copy = tempfile::tempdir().expect("a folder");
    let folders = ["config", "crds"].map(|folder| root().join(folder));
    run(Command::new("cp").arg("-r").args(folders).arg(copy.path()));
    let folder = copy.path().join("config/default");
    let file = folder.join("kustomization.yaml");
    let text = edit(fs::read_to_string(&file).expect("a kustomization"));
    fs::write(&file, text).expect("written");
    kustomize(&folder)
}

/// Takes the comment signs from the lines of a block, whose first line is `start`.
fn enabled(text: String, start: &str) -> String {
    assert!(text.contains(start), "{start} is not in {text}");
    let mut is_inside = false;
    let lines = text.lines().map(|line| {
        is_inside = line.starts_with("# ") && (is_inside || line == start);
        let is_yaml = is_inside && !line.starts_with("# [");
        line.strip_prefix("# ").filter(|_| is_yaml).unwrap_or(line)
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn ops_dep_5_objects_of_an_installation() {
    let roles = |kind: &str| {
        ["admin", "editor", "viewer"].map(|who| format!("ClusterRole//lws-{kind}-{who}-role"))
    };
    let mut expected: BTreeSet<String> = [
        "Namespace//lws-system",
        "ServiceAccount/lws-system/lws-controller-manager",
        "ClusterRole//lws-manager-role",
        "ClusterRole//lws-proxy-role",
        "ClusterRole//lws-metrics-reader",
        "ClusterRoleBinding//lws-manager-rolebinding",
        "ClusterRoleBinding//lws-proxy-rolebinding",
        "ClusterRoleBinding//lws-metrics-reader-rolebinding",
        "Role/lws-system/lws-leader-election-role",
        "RoleBinding/lws-system/lws-leader-election-rolebinding",
        "Role/lws-system/lws-certificates-role",
        "RoleBinding/lws-system/lws-certificates-rolebinding",
        "PodDisruptionBudget/lws-system/lws-controller-manager",
        "ConfigMap/lws-system/lws-manager-config",
        "Secret/lws-system/lws-webhook-server-cert",
        "Service/lws-system/lws-webhook-service",
        "Service/lws-system/lws-controller-manager-metrics-service",
        "Deployment/lws-system/lws-controller-manager",
        "MutatingWebhookConfiguration//lws-mutating-webhook-configuration",
        "ValidatingWebhookConfiguration//lws-validating-webhook-configuration",
    ]
    .map(str::to_owned)
    .into();
    expected.extend(roles("leaderworkerset"));
    expected.extend(roles("disaggregatedset"));
    assert_eq!(tree().names(), expected);
    assert_eq!(
        tree().get("Secret", "lws-webhook-server-cert").get("data"),
        None
    );
    let services = [
        (
            "lws-webhook-service",
            json!([{"port": 443, "protocol": "TCP", "targetPort": 9443}]),
        ),
        (
            "lws-controller-manager-metrics-service",
            json!([{"name": "https", "port": 8443, "protocol": "TCP", "targetPort": 8443}]),
        ),
    ];
    for (name, ports) in services {
        assert_eq!(tree().get("Service", name)["spec"]["ports"], ports);
    }
}

#[test]
fn ops_dep_2_deployment() {
    let deployment = tree().get("Deployment", "lws-controller-manager");
    let labels = json!({
        "control-plane": "controller-manager",
        "app.kubernetes.io/name": "lws",
        "app.kubernetes.io/instance": "lws",
    });
    let table = [
        ("/spec/replicas", json!(2)),
        ("/spec/selector/matchLabels", labels.clone()),
        ("/spec/template/metadata/labels", labels),
        (
            "/spec/template/metadata/annotations",
            json!({"kubectl.kubernetes.io/default-container": "manager"}),
        ),
        (
            "/spec/template/spec/serviceAccountName",
            json!("lws-controller-manager"),
        ),
        (
            "/spec/template/spec/terminationGracePeriodSeconds",
            json!(10),
        ),
        (
            "/spec/template/spec/securityContext",
            json!({"runAsNonRoot": true}),
        ),
        (
            "/spec/template/spec/affinity/podAntiAffinity/preferredDuringSchedulingIgnoredDuringExecution/0/podAffinityTerm/topologyKey",
            json!("kubernetes.io/hostname"),
        ),
        ("/spec/template/spec/containers/0/name", json!("manager")),
        (
            "/spec/template/spec/containers/0/command",
            json!(["/manager"]),
        ),
        (
            "/spec/template/spec/containers/0/args",
            json!([
                "--config=/controller_manager_config.yaml",
                "--zap-log-level=2"
            ]),
        ),
        (
            "/spec/template/spec/containers/0/ports/0",
            json!({"name": "webhook-server", "containerPort": 9443, "protocol": "TCP"}),
        ),
        (
            "/spec/template/spec/containers/0/ports/1",
            json!({"name": "metrics", "containerPort": 8443, "protocol": "TCP"}),
        ),
        (
            "/spec/template/spec/containers/0/livenessProbe",
            json!({"httpGet": {"path": "/healthz", "port": 8081}, "initialDelaySeconds": 15, "periodSeconds": 20}),
        ),
        (
            "/spec/template/spec/containers/0/readinessProbe",
            json!({"httpGet": {"path": "/readyz", "port": 8081}, "initialDelaySeconds": 5, "periodSeconds": 10}),
        ),
        (
            "/spec/template/spec/containers/0/resources",
            json!({"requests": {"cpu": "100m", "memory": "256Mi"}}),
        ),
        (
            "/spec/template/spec/containers/0/securityContext",
            json!({
                "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
            }),
        ),
        (
            "/spec/template/spec/containers/0/volumeMounts",
            json!([
                {"name": "manager-config", "mountPath": "/controller_manager_config.yaml", "subPath": "controller_manager_config.yaml"},
                {"name": "cert", "mountPath": "/tmp/k8s-webhook-server/serving-certs", "readOnly": true},
            ]),
        ),
        (
            "/spec/template/spec/volumes",
            json!([
                {"name": "manager-config", "configMap": {"name": "lws-manager-config"}},
                {"name": "cert", "secret": {"secretName": "lws-webhook-server-cert", "defaultMode": 420, "optional": true}},
            ]),
        ),
    ];
    for (place, expected) in table {
        assert_eq!(deployment.pointer(place), Some(&expected), "{place}");
    }
    assert_eq!(tree().pod()["spec"].get("priorityClassName"), None);
}

/// KUS-3: selectors have the labels, so the budget and the Services choose the pods of this installation only.
#[test]
fn ops_dep_4_kus_3_selectors() {
    let labels = &tree().pod()["metadata"]["labels"];
    let budget = tree().get("PodDisruptionBudget", "lws-controller-manager");
    assert_eq!(budget["spec"]["minAvailable"], 1);
    assert_eq!(&budget["spec"]["selector"]["matchLabels"], labels);
    for service in [
        "lws-webhook-service",
        "lws-controller-manager-metrics-service",
    ] {
        assert_eq!(&tree().get("Service", service)["spec"]["selector"], labels);
    }
}

/// A rule in the words of the specification: groups, resources, initials of verbs.
type Row = (&'static str, &'static str, &'static str);

/// Every single permission of a list of rows.
fn granted(rows: &[Row]) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for (groups, resources, verbs) in rows {
        for group in groups.split(' ') {
            for resource in resources.split(' ') {
                all.extend(
                    verbs
                        .chars()
                        .map(|verb| format!("{group}/{resource} {}", word(verb))),
                );
            }
        }
    }
    all
}

fn word(initial: char) -> &'static str {
    match initial {
        'C' => "create",
        'D' => "delete",
        'G' => "get",
        'L' => "list",
        'P' => "patch",
        'U' => "update",
        'W' => "watch",
        _ => "*",
    }
}

/// Every single permission of a role.
fn permissions(role: &Value) -> BTreeSet<String> {
    let strings = |value: &Value| -> Vec<String> {
        let list = value.as_array().into_iter().flatten();
        list.map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let mut all = BTreeSet::new();
    for rule in role["rules"].as_array().unwrap() {
        for group in strings(&rule["apiGroups"]) {
            for resource in strings(&rule["resources"]) {
                let group = if group.is_empty() { "core" } else { &group };
                all.extend(
                    strings(&rule["verbs"])
                        .iter()
                        .map(|verb| format!("{group}/{resource} {verb}")),
                );
            }
        }
    }
    all
}

const MANAGER: [Row; 20] = [
    ("core", "nodes", "GLW"),
    ("core", "pods", "DGLPUW"),
    ("core", "pods/status", "GPU"),
    ("core", "pods/finalizers", "U"),
    ("core", "services", "CDGLPUW"),
    ("core events.k8s.io", "events", "CGLPUW"),
    (
        "admissionregistration.k8s.io",
        "mutatingwebhookconfigurations validatingwebhookconfigurations",
        "GLUW",
    ),
    ("apps", "statefulsets controllerrevisions", "CDGLPUW"),
    ("apps", "deployments", "CDGLPUW"),
    ("apps", "replicasets", "GLW"),
    (
        "apps",
        "statefulsets/status controllerrevisions/status",
        "GPU",
    ),
    (
        "apps",
        "statefulsets/finalizers controllerrevisions/finalizers",
        "U",
    ),
    ("leaderworkerset.x-k8s.io", "leaderworkersets", "CDGLPUW"),
    ("leaderworkerset.x-k8s.io", "leaderworkersets/status", "GPU"),
    (
        "leaderworkerset.x-k8s.io",
        "leaderworkersets/finalizers",
        "U",
    ),
    (
        "disaggregatedset.x-k8s.io",
        "disaggregatedsets disaggregatedsetrolescalers",
        "CDGLPUW",
    ),
    (
        "disaggregatedset.x-k8s.io",
        "disaggregatedsets/status disaggregatedsetrolescalers/status",
        "GPU",
    ),
    (
        "disaggregatedset.x-k8s.io",
        "disaggregatedsets/finalizers",
        "U",
    ),
    ("scheduling.k8s.io", "workloads podgroups", "CDGLPUW"),
    ("scheduling.k8s.io", "compositepodgroups", "GLW"),
];

#[test]
fn ops_rbac_1_rbac_8_rights_of_the_manager() {
    let role = tree().get("ClusterRole", "lws-manager-role");
    assert_eq!(permissions(role), granted(&MANAGER));
    let certificates = tree().get("Role", "lws-certificates-role");
    assert_eq!(
        permissions(certificates),
        granted(&[("core", "secrets", "GLUW")])
    );
    assert_eq!(
        certificates["rules"][0]["resourceNames"],
        json!(["lws-webhook-server-cert"])
    );
}

#[test]
fn ops_rbac_2_rbac_3_rbac_4_other_roles_and_bindings() {
    let reviews = [
        ("authentication.k8s.io", "tokenreviews", "C"),
        ("authorization.k8s.io", "subjectaccessreviews", "C"),
    ];
    assert_eq!(
        permissions(tree().get("ClusterRole", "lws-proxy-role")),
        granted(&reviews)
    );
    let metrics = &tree().get("ClusterRole", "lws-metrics-reader")["rules"];
    assert_eq!(
        metrics,
        &json!([{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}])
    );
    let election = [
        ("coordination.k8s.io", "leases", "CDGLPUW"),
        ("core events.k8s.io", "events", "CP"),
    ];
    assert_eq!(
        permissions(tree().get("Role", "lws-leader-election-role")),
        granted(&election)
    );
    let account = json!([{"kind": "ServiceAccount", "name": "lws-controller-manager", "namespace": "lws-system"}]);
    let bindings = [
        (
            "ClusterRoleBinding",
            "lws-manager-rolebinding",
            "lws-manager-role",
        ),
        (
            "ClusterRoleBinding",
            "lws-proxy-rolebinding",
            "lws-proxy-role",
        ),
        (
            "ClusterRoleBinding",
            "lws-metrics-reader-rolebinding",
            "lws-metrics-reader",
        ),
        (
            "RoleBinding",
            "lws-leader-election-rolebinding",
            "lws-leader-election-role",
        ),
        (
            "RoleBinding",
            "lws-certificates-rolebinding",
            "lws-certificates-role",
        ),
    ];
    for (kind, name, role) in bindings {
        let binding = tree().get(kind, name);
        assert_eq!(binding["subjects"], account, "{name}");
        assert_eq!(binding["roleRef"]["name"], role, "{name}");
    }
}

#[test]
fn ops_rbac_6_roles_for_people_are_aggregated() {
    for (set, group, resources) in [
        (
            "leaderworkerset",
            "leaderworkerset.x-k8s.io",
            "leaderworkersets",
        ),
        (
            "disaggregatedset",
            "disaggregatedset.x-k8s.io",
            "disaggregatedsets disaggregatedsetrolescalers",
        ),
    ] {
        let status = resources
            .split(' ')
            .map(|resource| format!("{resource}/status"))
            .collect::<Vec<_>>()
            .join(" ");
        let scale = format!("{}/scale", resources.split(' ').next_back().unwrap());
        for (who, aggregate, verbs, scaling) in [
            ("admin", "admin", "*", "GPU"),
            ("editor", "edit", "CDGLPUW", "GPU"),
            ("viewer", "view", "GLW", "G"),
        ] {
            let role = tree().get("ClusterRole", &format!("lws-{set}-{who}-role"));
            let mut expected = BTreeSet::new();
            for (resources, verbs) in [(resources, verbs), (&status, "G"), (&scale, scaling)] {
                for resource in resources.split(' ') {
                    expected.extend(
                        verbs
                            .chars()
                            .map(|verb| format!("{group}/{resource} {}", word(verb))),
                    );
                }
            }
            assert_eq!(permissions(role), expected, "{set} {who}");
            let label = format!("rbac.authorization.k8s.io/aggregate-to-{aggregate}");
            assert_eq!(role["metadata"]["labels"][label.as_str()], "true");
        }
    }
}

#[test]
fn ops_whk_2_webhook_configurations_lead_to_the_service() {
    let table = [
        (
            "Mutating",
            "mleaderworkerset.kb.io",
            "/mutate-leaderworkerset-x-k8s-io-v1-leaderworkerset",
            "leaderworkerset.x-k8s.io/leaderworkersets",
            json!(["CREATE", "UPDATE"]),
        ),
        (
            "Mutating",
            "mpod.kb.io",
            "/mutate--v1-pod",
            "/pods",
            json!(["CREATE"]),
        ),
        (
            "Validating",
            "vleaderworkerset.kb.io",
            "/validate-leaderworkerset-x-k8s-io-v1-leaderworkerset",
            "leaderworkerset.x-k8s.io/leaderworkersets",
            json!(["CREATE", "UPDATE"]),
        ),
        (
            "Validating",
            "vdisaggregatedset.kb.io",
            "/validate-disaggregatedset-x-k8s-io-v1-disaggregatedset",
            "disaggregatedset.x-k8s.io/disaggregatedsets",
            json!(["CREATE", "UPDATE"]),
        ),
    ];
    let mut found = 0;
    for (kind, name, path, resource, operations) in table {
        let configuration = tree().get(
            &format!("{kind}WebhookConfiguration"),
            &format!("lws-{}-webhook-configuration", kind.to_lowercase()),
        );
        let hooks = configuration["webhooks"].as_array().unwrap();
        let hook = hooks.iter().find(|hook| hook["name"] == name).unwrap();
        let service =
            json!({"name": "lws-webhook-service", "namespace": "lws-system", "path": path});
        assert_eq!(hook["clientConfig"], json!({"service": service}), "{name}");
        let (group, resource) = resource.split_once('/').unwrap();
        assert_eq!(
            hook["rules"],
            json!([{"apiGroups": [group], "apiVersions": ["v1"], "operations": operations, "resources": [resource], "scope": "*"}])
        );
        assert_eq!(
            (&hook["failurePolicy"], &hook["sideEffects"]),
            (&json!("Fail"), &json!("None"))
        );
        assert_eq!(hook["admissionReviewVersions"], json!(["v1"]));
        assert_eq!(hook.get("objectSelector").is_some(), name == "mpod.kb.io");
        found += 1;
    }
    let hooks = tree()
        .0
        .iter()
        .filter_map(|document| document["webhooks"].as_array());
    assert_eq!(hooks.flatten().count(), found);
}

#[test]
fn ops_kus_1_directories() {
    for folder in [
        "default",
        "rbac",
        "manager",
        "webhook",
        "internalcert",
        "certmanager",
        "components/prometheus",
        "components/volcano",
        "prometheus",
    ] {
        let file = root()
            .join("config")
            .join(folder)
            .join("kustomization.yaml");
        assert!(file.is_file(), "{folder}");
    }
    assert!(Path::new(&root().join("config/manager/controller_manager_config.yaml")).is_file());
    assert!(
        root().join("config/samples").is_dir() && root().join("crds/kustomization.yaml").is_file()
    );
}

#[test]
fn ops_kus_2_crt_9_switch_to_cert_manager() {
    let documents = switched(|text| {
        let text = text.replace("- ../internalcert", "- ../certmanager");
        enabled(text, "# [CERTMANAGER]")
    });
    assert_eq!(
        documents.config()["internalCertManagement"],
        json!({"enable": false})
    );
    assert!(
        documents
            .find("Secret", "lws-webhook-server-cert")
            .is_none()
    );
    documents.get("Issuer", "lws-selfsigned-issuer");
    let serving = &documents.get("Certificate", "lws-serving-cert")["spec"];
    assert_eq!(serving["secretName"], "webhook-server-cert");
    assert_eq!(serving["issuerRef"]["name"], "lws-selfsigned-issuer");
    let service = "lws-webhook-service.lws-system.svc";
    assert_eq!(
        serving["dnsNames"],
        json!([service, format!("{service}.cluster.local")])
    );
    let metrics = &documents.get("Certificate", "lws-metrics-cert")["spec"];
    assert_eq!(
        (&metrics["secretName"], &metrics["commonName"]),
        (&json!("metrics-server-cert"), &json!("lws-metrics"))
    );
    assert_eq!(
        metrics["dnsNames"][0],
        "lws-controller-manager-metrics-service.lws-system.svc"
    );
    for kind in ["Mutating", "Validating"] {
        let name = format!("lws-{}-webhook-configuration", kind.to_lowercase());
        let configuration = documents.get(&format!("{kind}WebhookConfiguration"), &name);
        assert_eq!(
            configuration["metadata"]["annotations"]["cert-manager.io/inject-ca-from"],
            "lws-system/lws-serving-cert"
        );
    }
    let volumes = documents.pod()["spec"]["volumes"].as_array().unwrap();
    let secrets: Vec<_> = volumes
        .iter()
        .filter_map(|volume| volume["secret"]["secretName"].as_str())
        .collect();
    assert!(
        secrets.contains(&"webhook-server-cert") && secrets.contains(&"metrics-server-cert"),
        "{secrets:?}"
    );
}

#[test]
fn ops_kus_2_other_namespace() {
    let documents = switched(|text| text.replace("namespace: lws-system", "namespace: tenant"));
    documents.get("Namespace", "tenant");
    let text = serde_json::to_string(&documents.0).unwrap();
    assert!(!text.contains("lws-system") && !text.contains("\"system\""));
}

#[test]
fn ops_kus_2_switch_to_volcano() {
    let documents = switched(|text| enabled(text, "# components:"));
    let mut rows = MANAGER.to_vec();
    rows.push(("scheduling.volcano.sh", "podgroups", "CDGLW"));
    assert_eq!(
        permissions(documents.get("ClusterRole", "lws-manager-role")),
        granted(&rows)
    );
}

#[test]
fn ops_kus_2_kus_4_switch_to_prometheus() {
    let documents = switched(|text| text.replace("# - ../prometheus", "- ../prometheus"));
    let monitor =
        &documents.get("ServiceMonitor", "lws-controller-manager-metrics-monitor")["spec"];
    assert_eq!(
        monitor,
        &json!({
            "endpoints": [{
                "path": "/metrics", "port": "https", "scheme": "https",
                "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
                "tlsConfig": {"insecureSkipVerify": true}, "honorLabels": true,
            }],
            "selector": {"matchLabels": {"control-plane": "controller-manager"}},
        })
    );
    documents.get("PrometheusRule", "lws-controller-manager-rules");
    let dashboard = documents.get("ConfigMap", "lws-dashboard");
    assert_eq!(dashboard["metadata"]["labels"]["grafana_dashboard"], "1");
    let role = documents.get("Role", "lws-prometheus-k8s");
    assert_eq!(
        permissions(role),
        granted(&[
            ("core", "services endpoints pods", "GLW"),
            ("extensions networking.k8s.io", "ingresses", "GLW")
        ])
    );
    let subjects = documents.get("RoleBinding", "lws-prometheus-k8s")["subjects"].to_string();
    for account in ["prometheus-k8s", "prometheus-operator", "monitoring"] {
        assert!(subjects.contains(account), "{subjects}");
    }
}

/// Without cert-manager and Prometheus no object of theirs is installed: their kinds may not exist in the cluster.
#[test]
fn ops_kus_5_the_single_file_needs_no_other_project() {
    let groups: BTreeSet<_> = tree()
        .0
        .iter()
        .map(|document| document["apiVersion"].as_str().unwrap())
        .collect();
    let known = [
        "v1",
        "apps/v1",
        "policy/v1",
        "rbac.authorization.k8s.io/v1",
        "admissionregistration.k8s.io/v1",
    ];
    assert_eq!(groups, BTreeSet::from(known));
}
