//! HELM-1 to HELM-7: the chart, value by value.

use serde_json::{Value, json};

use crate::documents::{Documents, default, root, template, with};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const DEPLOYMENT: &str = "lws-controller-manager";

fn deployment(documents: &Documents) -> &Value {
    documents.get("Deployment", DEPLOYMENT)
}

#[test]
fn ops_helm_1_names_follow_release_and_overrides() {
    let long = "x".repeat(80);
    let table = [
        (vec![], "lws", "lws"),
        (vec![], "my-lws-2", "my-lws-2"),
        (vec![], "serving", "serving-lws"),
        (
            vec!["--set=nameOverride=groups"],
            "serving",
            "serving-groups",
        ),
        (vec!["--set=fullnameOverride=own"], "serving", "own"),
    ];
    for (arguments, release, fullname) in table {
        let documents = template(release, &arguments);
        let name = format!("{fullname}-controller-manager");
        documents.get("Deployment", &name);
        documents.get("ServiceAccount", &name);
        documents.get("ClusterRole", &format!("{fullname}-manager-role"));
        assert_eq!(documents.pod()["spec"]["serviceAccountName"], name.as_str());
    }
    let overridden = format!("--set=fullnameOverride={long}");
    let documents = template("lws", &[&overridden, "--set=enablePrometheus=true"]);
    documents.get(
        "Deployment",
        &format!("{}-controller-manager", "x".repeat(63)),
    );
    let service = format!("{}-controller-manager-metrics-service", "x".repeat(28));
    documents.get("Service", &service);
    assert!(service.len() <= 63);
}

#[test]
fn ops_helm_1_the_chart_has_the_definitions_of_the_tree() {
    let chart = std::fs::read_to_string(root().join("charts/lws/Chart.yaml")).unwrap();
    let chart: Value = serde_saphyr::from_str(&chart).unwrap();
    assert_eq!(
        (&chart["name"], &chart["type"]),
        (&json!("lws"), &json!("application"))
    );
    let folder = |path: &str| {
        let mut files: Vec<_> = std::fs::read_dir(root().join(path))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| !path.ends_with("kustomization.yaml"))
            .collect();
        files.sort();
        files
    };
    let (tree, copies) = (folder("crds"), folder("charts/lws/crds"));
    assert_eq!((tree.len(), copies.len()), (3, 3));
    for (one, other) in tree.iter().zip(&copies) {
        assert_eq!(one.file_name(), other.file_name());
        assert!(
            std::fs::read(one).unwrap() == std::fs::read(other).unwrap(),
            "{one:?}"
        );
    }
}

#[test]
fn ops_helm_2_configuration_file() {
    assert_eq!(
        default().config(),
        json!({
            "apiVersion": "config.lws.x-k8s.io/v1",
            "kind": "Configuration",
            "leaderElection": {"leaderElect": true},
            "internalCertManagement": {"enable": true},
        })
    );
}

#[test]
fn ops_helm_3_labels_and_fixed_names() {
    let documents = template("serving", &["--set=enablePrometheus=true,replicaCount=2"]);
    for document in &documents.0 {
        let labels = &document["metadata"]["labels"];
        assert_eq!(
            labels["helm.sh/chart"],
            format!("lws-{VERSION}"),
            "{document}"
        );
        assert_eq!(labels["app.kubernetes.io/name"], "lws", "{document}");
        assert_eq!(
            labels["app.kubernetes.io/version"],
            format!("v{VERSION}"),
            "{document}"
        );
        assert_eq!(labels["app.kubernetes.io/managed-by"], "Helm", "{document}");
    }
    let deployment = documents.get("Deployment", "serving-lws-controller-manager");
    assert_eq!(
        deployment["metadata"]["labels"]["app.kubernetes.io/instance"],
        "serving"
    );
    documents.get("Service", "lws-webhook-service");
    documents.get("Secret", "lws-webhook-server-cert");
    documents.get(
        "MutatingWebhookConfiguration",
        "lws-mutating-webhook-configuration",
    );
    documents.get(
        "ValidatingWebhookConfiguration",
        "lws-validating-webhook-configuration",
    );
    let documents = template("serving", &["--set=enableCertManager=true"]);
    documents.get("Issuer", "lws-selfsigned-issuer");
    let certificate = documents.get("Certificate", "lws-serving-cert");
    assert_eq!(certificate["spec"]["secretName"], "lws-webhook-server-cert");
    let certificate = documents.get("Certificate", "lws-metrics-cert");
    assert_eq!(certificate["spec"]["secretName"], "lws-metrics-server-cert");
}

#[test]
fn ops_helm_4_disaggregated_sets_are_validated_unless_switched_off() {
    let configuration = "lws-validating-webhook-configuration";
    let roles = ["admin", "editor", "viewer"].map(|who| format!("lws-disaggregatedset-{who}-role"));
    for (documents, entries) in [(default(), 2), (&with("enableDisaggregatedSet=false"), 1)] {
        let hooks = &documents.get("ValidatingWebhookConfiguration", configuration)["webhooks"];
        assert_eq!(hooks.as_array().unwrap().len(), entries);
        for role in &roles {
            assert_eq!(
                documents.find("ClusterRole", role).is_some(),
                entries == 2,
                "{role}"
            );
        }
        let rules = documents.get("ClusterRole", "lws-manager-role")["rules"].to_string();
        assert!(rules.contains("disaggregatedsets"));
    }
}

#[test]
fn ops_helm_5_monitor_and_its_certificate() {
    let monitor = "lws-controller-manager-metrics-monitor";
    let documents = with("enablePrometheus=true");
    let endpoint = &documents.get("ServiceMonitor", monitor)["spec"]["endpoints"][0];
    assert_eq!(endpoint["tlsConfig"], json!({"insecureSkipVerify": true}));
    let documents = template(
        "lws",
        &["--set=enablePrometheus=true,enableCertManager=true"],
    );
    let endpoint = &documents.get("ServiceMonitor", monitor)["spec"]["endpoints"][0];
    assert_eq!(
        endpoint["tlsConfig"],
        json!({
            "serverName": "lws-controller-manager-metrics-service.lws-system.svc",
            "insecureSkipVerify": false,
            "ca": {"secret": {"name": "lws-metrics-server-cert", "key": "ca.crt"}},
        })
    );
}

#[test]
fn ops_helm_1_enable_prometheus() {
    let kinds = [
        "ServiceMonitor/lws-system/lws-controller-manager-metrics-monitor",
        "Service/lws-system/lws-controller-manager-metrics-service",
        "Role/lws-system/lws-prometheus-k8s",
        "RoleBinding/lws-system/lws-prometheus-k8s",
    ];
    let (on, off) = (with("enablePrometheus=true"), default());
    let added: Vec<_> = on.names().difference(&off.names()).cloned().collect();
    let mut expected = kinds.map(str::to_owned);
    expected.sort();
    assert_eq!(added, expected);
    let ports = |documents: &Documents| {
        let ports = documents.container()["ports"].as_array().unwrap().iter();
        ports
            .map(|port| port["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(ports(off), ["webhook-server"]);
    assert_eq!(ports(&on), ["webhook-server", "metrics"]);
}

#[test]
fn ops_helm_1_service_monitor_extra_labels() {
    let documents = template(
        "lws",
        &["--set=enablePrometheus=true,serviceMonitor.extraLabels.team=ml"],
    );
    let monitor = documents.get("ServiceMonitor", "lws-controller-manager-metrics-monitor");
    assert_eq!(monitor["metadata"]["labels"]["team"], "ml");
}

#[test]
fn ops_crt_9_crt_10_enable_cert_manager() {
    let documents = with("enableCertManager=true");
    assert_eq!(
        documents.config()["internalCertManagement"],
        json!({"enable": false})
    );
    assert!(
        documents
            .find("Secret", "lws-webhook-server-cert")
            .is_none()
    );
    for kind in ["Mutating", "Validating"] {
        let name = format!("lws-{}-webhook-configuration", kind.to_lowercase());
        let configuration = documents.get(&format!("{kind}WebhookConfiguration"), &name);
        let annotation =
            &configuration["metadata"]["annotations"]["cert-manager.io/inject-ca-from"];
        assert_eq!(annotation, "lws-system/lws-serving-cert");
    }
    let certificate = documents.get("Certificate", "lws-serving-cert");
    assert_eq!(
        certificate["spec"]["dnsNames"],
        json!([
            "lws-webhook-service.lws-system.svc",
            "lws-webhook-service.lws-system.svc.cluster.local"
        ])
    );
    let certificate = documents.get("Certificate", "lws-metrics-cert");
    assert_eq!(certificate["spec"]["commonName"], "lws-metrics");
    let mounts = documents.container()["volumeMounts"].to_string();
    assert!(
        mounts.contains("/tmp/k8s-metrics-server/serving-certs"),
        "{mounts}"
    );
    let volumes = documents.pod()["spec"]["volumes"].as_array().unwrap();
    let metrics = volumes
        .iter()
        .find(|volume| volume["name"] == "metrics-cert")
        .unwrap();
    assert_eq!(metrics["secret"].get("optional"), None);
}

/// Values that are copied to one place: the value, the place in the Deployment, what is there then.
#[test]
fn ops_helm_1_helm_7_values_of_the_deployment() {
    let table = [
        ("replicaCount=3", "/spec/replicas", json!(3)),
        (
            r#"imagePullSecrets=[{"name":"s"}]"#,
            "/spec/template/spec/imagePullSecrets",
            json!([{"name": "s"}]),
        ),
        (
            r#"image.manager.repository="example.com/m""#,
            "/spec/template/spec/containers/0/image",
            json!(format!("example.com/m:v{VERSION}")),
        ),
        (
            r#"image.manager.tag="t1""#,
            "/spec/template/spec/containers/0/image",
            json!("ghcr.io/lws-rs/lws:t1"),
        ),
        (
            r#"image.manager.pullPolicy="Always""#,
            "/spec/template/spec/containers/0/imagePullPolicy",
            json!("Always"),
        ),
        (
            r#"podAnnotations={"a":"b"}"#,
            "/spec/template/metadata/annotations/a",
            json!("b"),
        ),
        (
            r#"podSecurityContext={"runAsUser":7,"runAsNonRoot":null}"#,
            "/spec/template/spec/securityContext",
            json!({"runAsUser": 7}),
        ),
        (
            r#"securityContext={"privileged":false,"allowPrivilegeEscalation":null,"capabilities":null,"readOnlyRootFilesystem":null,"seccompProfile":null}"#,
            "/spec/template/spec/containers/0/securityContext",
            json!({"privileged": false}),
        ),
        (
            "service.port=9444",
            "/spec/template/spec/containers/0/ports/0/containerPort",
            json!(9444),
        ),
        (
            r#"resources={"limits":{"memory":"1Gi"}}"#,
            "/spec/template/spec/containers/0/resources/limits",
            json!({"memory": "1Gi"}),
        ),
        (
            r#"priorityClassName="high""#,
            "/spec/template/spec/priorityClassName",
            json!("high"),
        ),
        (
            r#"nodeSelector={"a":"b"}"#,
            "/spec/template/spec/nodeSelector",
            json!({"a": "b"}),
        ),
        (
            r#"tolerations=[{"operator":"Exists"}]"#,
            "/spec/template/spec/tolerations",
            json!([{"operator": "Exists"}]),
        ),
        (
            r#"affinity={"nodeAffinity":{}}"#,
            "/spec/template/spec/affinity",
            json!({"nodeAffinity": {}}),
        ),
        (
            "logLevel=5",
            "/spec/template/spec/containers/0/args/1",
            json!("--zap-log-level=5"),
        ),
        (
            r#"extraArgs=["--pod-concurrency=32"]"#,
            "/spec/template/spec/containers/0/args/2",
            json!("--pod-concurrency=32"),
        ),
    ];
    for (value, place, expected) in table {
        assert_ne!(
            deployment(default()).pointer(place),
            Some(&expected),
            "{value} is the default"
        );
        assert_eq!(
            deployment(&with(value)).pointer(place),
            Some(&expected),
            "{value}"
        );
    }
}

#[test]
fn ops_helm_1_pod_annotations_stand_beside_ours() {
    let documents = with(r#"podAnnotations={"a":"b"}"#);
    let annotations = &documents.pod()["metadata"]["annotations"];
    assert_eq!(
        annotations["kubectl.kubernetes.io/default-container"],
        "manager"
    );
    assert_eq!(annotations["a"], "b");
}

#[test]
fn ops_helm_1_metrics_service_type() {
    let documents = template(
        "lws",
        &["--set=enablePrometheus=true,service.type=NodePort"],
    );
    let service = documents.get("Service", "lws-controller-manager-metrics-service");
    assert_eq!(service["spec"]["type"], "NodePort");
    assert_eq!(
        documents.get("Service", "lws-webhook-service")["spec"].get("type"),
        None
    );
}

#[test]
fn ops_helm_1_gang_scheduling_and_feature_gates() {
    let rule = |documents: &Documents| {
        let role = documents.get("ClusterRole", "lws-manager-role");
        role["rules"].to_string().contains("scheduling.volcano.sh")
    };
    assert!(!rule(default()));
    for (provider, has_rule) in [("volcano", true), ("kubernetes", false)] {
        let value = format!(r#"gangSchedulingManagement={{"schedulerProvider":"{provider}"}}"#);
        let documents = with(&value);
        assert_eq!(
            documents.config()["gangSchedulingManagement"],
            json!({"schedulerProvider": provider})
        );
        assert_eq!(rule(&documents), has_rule, "{provider}");
    }
    let documents = with(r#"featureGates={"WorkloadAwareScheduling":true}"#);
    assert_eq!(
        documents.config()["featureGates"],
        json!({"WorkloadAwareScheduling": true})
    );
}

#[test]
fn ops_helm_7_config_is_put_over_the_file() {
    let documents =
        with(r#"config={"webhook":{"port":9444},"leaderElection":{"leaseDuration":"30s"}}"#);
    let config = documents.config();
    assert_eq!(
        config["leaderElection"],
        json!({"leaderElect": true, "leaseDuration": "30s"})
    );
    assert_eq!(config["internalCertManagement"], json!({"enable": true}));
    let service = documents.get("Service", "lws-webhook-service");
    assert_eq!(service["spec"]["ports"][0]["targetPort"], 9444);
}

/// DEP-3: a mounted single file does not change in a running pod.
#[test]
fn ops_helm_7_dep_3_changed_configuration_restarts_pods() {
    let checksum = |documents: &Documents| {
        documents.pod()["metadata"]["annotations"]["checksum/config"].clone()
    };
    assert!(checksum(default()).is_string());
    assert_eq!(checksum(default()), checksum(&with("logLevel=3")));
    let changed = with(r#"config={"clientConnection":{"qps":50}}"#);
    assert_ne!(checksum(default()), checksum(&changed));
}

#[test]
fn ops_helm_7_dep_4_pod_disruption_budget() {
    let table = [
        ("replicaCount=1", false),
        ("replicaCount=2", true),
        ("replicaCount=2,podDisruptionBudget.enabled=false", false),
    ];
    for (values, has_budget) in table {
        let documents = template("lws", &["--set", values]);
        let budget = documents.find("PodDisruptionBudget", DEPLOYMENT);
        assert_eq!(budget.is_some(), has_budget, "{values}");
        if let Some(budget) = budget {
            assert_eq!(budget["spec"]["minAvailable"], 1);
        }
    }
}

#[test]
fn ops_helm_7_service_account_annotations_and_webhook_timeout() {
    let documents = with(r#"serviceAccount.annotations={"a":"b"}"#);
    let account = documents.get("ServiceAccount", DEPLOYMENT);
    assert_eq!(account["metadata"]["annotations"], json!({"a": "b"}));
    for (documents, seconds) in [(default(), 10), (&with("webhook.timeoutSeconds=7"), 7)] {
        let hooks = documents
            .0
            .iter()
            .filter_map(|document| document["webhooks"].as_array());
        for hook in hooks.flatten() {
            assert_eq!(hook["timeoutSeconds"], seconds, "{hook}");
        }
    }
}
