//! The webhook configurations for a manager that runs outside the cluster: they name a URL, or a Service that leads to this machine.
//! Names, paths and rules are those of admission.md section 1 and WHK-2. Pure.

use serde_json::{Value, json};

/// Kind and name of the two configurations.
pub(crate) const NAMES: [&str; 2] = [
    "MutatingWebhookConfiguration/lws-mutating-webhook-configuration",
    "ValidatingWebhookConfiguration/lws-validating-webhook-configuration",
];

/// How the API server gets to the webhooks.
pub(crate) enum Route<'a> {
    /// Below a base such as `https://127.0.0.1:9443`; this authority is trusted.
    Url { base: &'a str, ca_bundle: &'a str },
    /// By the Service of this namespace and name. The manager says which authority is trusted (CRT-5).
    Service {
        namespace: &'a str,
        name: &'a str,
        port: u16,
    },
}

impl Route<'_> {
    fn client(&self, path: &str) -> Value {
        match self {
            Self::Url { base, ca_bundle } => {
                json!({"url": format!("{base}{path}"), "caBundle": ca_bundle})
            }
            Self::Service {
                namespace,
                name,
                port,
            } => {
                json!({"service": {"namespace": namespace, "name": name, "path": path, "port": port}})
            }
        }
    }
}

/// Both configurations with webhooks that are reached by `route`.
pub(crate) fn documents(route: &Route<'_>) -> [Value; 2] {
    let webhook = |name: &str, path: &str, rule: Value| {
        json!({
            "name": name,
            "clientConfig": route.client(path),
            "rules": [rule],
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        })
    };
    let mut pods = webhook(
        "mpod.kb.io",
        "/mutate--v1-pod",
        rule("", "pods", &["CREATE"]),
    );
    if let Some(pods) = pods.as_object_mut() {
        pods.insert("objectSelector".to_owned(), group_pods());
    }
    let sets = || {
        rule(
            "leaderworkerset.x-k8s.io",
            "leaderworkersets",
            &["CREATE", "UPDATE"],
        )
    };
    let mutating = [
        webhook(
            "mleaderworkerset.kb.io",
            "/mutate-leaderworkerset-x-k8s-io-v1-leaderworkerset",
            sets(),
        ),
        pods,
    ];
    let validating = [
        webhook(
            "vleaderworkerset.kb.io",
            "/validate-leaderworkerset-x-k8s-io-v1-leaderworkerset",
            sets(),
        ),
        webhook(
            "vdisaggregatedset.kb.io",
            "/validate-disaggregatedset-x-k8s-io-v1-disaggregatedset",
            rule(
                "disaggregatedset.x-k8s.io",
                "disaggregatedsets",
                &["CREATE", "UPDATE"],
            ),
        ),
    ];
    [
        configuration(
            "MutatingWebhookConfiguration",
            "lws-mutating-webhook-configuration",
            &mutating,
        ),
        configuration(
            "ValidatingWebhookConfiguration",
            "lws-validating-webhook-configuration",
            &validating,
        ),
    ]
}

fn configuration(kind: &str, name: &str, webhooks: &[Value]) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "webhooks": webhooks,
    })
}

fn rule(group: &str, resource: &str, operations: &[&str]) -> Value {
    json!({
        "apiGroups": [group],
        "apiVersions": ["v1"],
        "resources": [resource],
        "operations": operations,
    })
}

/// Pods of any LeaderWorkerSet.
fn group_pods() -> Value {
    json!({"matchExpressions": [{"key": "leaderworkerset.sigs.k8s.io/name", "operator": "Exists"}]})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_url() -> [Value; 2] {
        documents(&Route::Url {
            base: "https://127.0.0.1:1",
            ca_bundle: "Y2E=",
        })
    }

    #[test]
    fn route_by_a_service_leaves_trust_to_the_manager() {
        let list = documents(&Route::Service {
            namespace: "lws-system",
            name: "lws-webhook-service",
            port: 7,
        });
        let pods = &list[0]["webhooks"][1]["clientConfig"];
        let service = json!({"namespace": "lws-system", "name": "lws-webhook-service", "path": "/mutate--v1-pod", "port": 7});
        assert_eq!(pods, &json!({"service": service}));
    }

    /// Name, URL and whether an object selector is set, in order, of one configuration.
    fn entries(configuration: &Value) -> Vec<(String, String, bool)> {
        let webhooks = configuration["webhooks"].as_array().unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        webhooks
            .iter()
            .map(|hook| {
                let url = text(&hook["clientConfig"]["url"]);
                (
                    text(&hook["name"]),
                    url,
                    hook.get("objectSelector").is_some(),
                )
            })
            .collect()
    }

    #[test]
    fn ops_whk_2_entries_and_paths() {
        let list = by_url();
        let base = "https://127.0.0.1:1";
        let entry = |name: &str, path: &str, selects: bool| {
            (name.to_owned(), format!("{base}{path}"), selects)
        };
        assert_eq!(
            entries(&list[0]),
            [
                entry(
                    "mleaderworkerset.kb.io",
                    "/mutate-leaderworkerset-x-k8s-io-v1-leaderworkerset",
                    false
                ),
                entry("mpod.kb.io", "/mutate--v1-pod", true),
            ]
        );
        assert_eq!(
            entries(&list[1]),
            [
                entry(
                    "vleaderworkerset.kb.io",
                    "/validate-leaderworkerset-x-k8s-io-v1-leaderworkerset",
                    false
                ),
                entry(
                    "vdisaggregatedset.kb.io",
                    "/validate-disaggregatedset-x-k8s-io-v1-disaggregatedset",
                    false
                ),
            ]
        );
    }

    #[test]
    fn adm_reg_3_rules_name_no_subresource() {
        let list = json!(by_url()).to_string();
        for subresource in ["/scale\"", "/status\"", "/*\""] {
            assert!(!list.contains(subresource), "{subresource}");
        }
    }

    /// REG-6: no validating webhook sees a pod, so that a finalizer can be removed while we are down.
    #[test]
    fn adm_reg_1_reg_4_reg_6_what_entries_leave_to_the_defaults() {
        let list = by_url();
        for hook in list
            .iter()
            .flat_map(|document| document["webhooks"].as_array().unwrap())
        {
            for member in [
                "timeoutSeconds",
                "matchPolicy",
                "reinvocationPolicy",
                "namespaceSelector",
            ] {
                assert_eq!(hook.get(member), None, "{hook}");
            }
            assert_eq!(
                (&hook["failurePolicy"], &hook["sideEffects"]),
                (&json!("Fail"), &json!("None"))
            );
            assert_eq!(hook["admissionReviewVersions"], json!(["v1"]));
        }
        assert!(!list[1].to_string().contains("pod"));
        assert_eq!(
            list[0]["webhooks"][1]["rules"][0]["operations"],
            json!(["CREATE"])
        );
    }

    #[test]
    fn adm_reg_2_names() {
        let names = by_url().map(|document| {
            let name = document["metadata"]["name"].as_str().unwrap();
            format!("{}/{name}", document["kind"].as_str().unwrap())
        });
        assert_eq!(names, NAMES);
    }
}
