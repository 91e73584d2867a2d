//! Requests and their answers over real TLS (WHK-1, WHK-2, WHK-4, ADM-2, ADM-3).

use crate::client::Running;
use serde_json::{Value, json};

const MUTATE_LWS: &str = "/mutate-leaderworkerset-x-k8s-io-v1-leaderworkerset";
const VALIDATE_LWS: &str = "/validate-leaderworkerset-x-k8s-io-v1-leaderworkerset";
const VALIDATE_DS: &str = "/validate-disaggregatedset-x-k8s-io-v1-disaggregatedset";
const MUTATE_POD: &str = "/mutate--v1-pod";
const VALIDATE_POD: &str = "/validate--v1-pod";

fn review(operation: &str, object: &Value, old: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u-1",
            "kind": {"group": "", "version": "v1", "kind": "X"},
            "operation": operation,
            "namespace": "t1",
            "name": "demo",
            "userInfo": {"username": "someone"},
            "object": object,
            "oldObject": old,
            "dryRun": false,
        },
    })
}

fn lws(spec: Value) -> Value {
    let mut object = json!({
        "metadata": {"name": "demo", "namespace": "t1"},
        "spec": {"replicas": 1, "leaderWorkerTemplate": {"workerTemplate": {"spec": {"containers": []}}}},
    });
    json_patch::merge(&mut object["spec"], &spec);
    object
}

fn leader() -> Value {
    json!({
        "metadata": {
            "name": "demo-0",
            "labels": {"leaderworkerset.sigs.k8s.io/name": "demo", "leaderworkerset.sigs.k8s.io/worker-index": "0"},
            "annotations": {"leaderworkerset.sigs.k8s.io/size": "2"},
        },
        "spec": {"hostname": "demo-0", "subdomain": "demo", "containers": [{"name": "c"}]},
    })
}

async fn ask(server: &Running, path: &str, review: &Value) -> Value {
    let answer = server
        .client()
        .post(path, review.to_string().as_bytes())
        .await
        .unwrap();
    assert_eq!(answer.status, 200);
    let body = answer.json();
    assert_eq!(body["apiVersion"], "admission.k8s.io/v1");
    assert_eq!(body["kind"], "AdmissionReview");
    body["response"].clone()
}

fn patched(response: &Value, object: &Value) -> Value {
    assert_eq!(response["patchType"], "JSONPatch");
    let patch: k8s_openapi::ByteString = serde_json::from_value(response["patch"].clone()).unwrap();
    let patch: json_patch::Patch = serde_json::from_slice(&patch.0).unwrap();
    let mut object = object.clone();
    json_patch::patch(&mut object, &patch).unwrap();
    object
}

#[tokio::test]
async fn adm_adm_3_ops_whk_2_verdicts_by_path_and_operation() {
    let server = Running::start().await;
    let (good, bad) = (lws(json!({})), lws(json!({"replicas": -1})));
    let mut deleting = bad.clone();
    deleting["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    let mut no_size = leader();
    no_size["metadata"]["annotations"] = json!({});
    let roles = json!({"metadata": {"name": "pd"}, "spec": {"roles": [{"name": "decode"}]}});
    for (path, operation, object, old, denied) in [
        (VALIDATE_LWS, "CREATE", &good, &Value::Null, None),
        (
            VALIDATE_LWS,
            "CREATE",
            &bad,
            &Value::Null,
            Some("spec.replicas: Invalid value: -1: "),
        ),
        (
            VALIDATE_LWS,
            "UPDATE",
            &bad,
            &good,
            Some("spec.replicas: Invalid value: -1: "),
        ),
        (VALIDATE_LWS, "UPDATE", &bad, &bad, None),
        (VALIDATE_LWS, "UPDATE", &deleting, &good, None),
        (VALIDATE_LWS, "DELETE", &Value::Null, &bad, None),
        (
            VALIDATE_DS,
            "CREATE",
            &roles,
            &Value::Null,
            Some("spec.roles[0].spec: Required value: "),
        ),
        (VALIDATE_DS, "UPDATE", &roles, &roles, None),
        (VALIDATE_DS, "DELETE", &Value::Null, &roles, None),
        (
            MUTATE_POD,
            "CREATE",
            &no_size,
            &Value::Null,
            Some("annotation leaderworkerset.sigs.k8s.io/size is missing"),
        ),
    ] {
        let response = ask(&server, path, &review(operation, object, old)).await;
        assert_eq!(response["uid"], "u-1");
        assert_eq!(
            response["allowed"],
            denied.is_none(),
            "{path} {operation}: {response}"
        );
        if let Some(text) = denied {
            assert_eq!(response["status"]["code"], 403);
            assert_eq!(response["status"]["reason"], "Forbidden");
            assert!(
                response["status"]["message"]
                    .as_str()
                    .unwrap()
                    .contains(text),
                "{response}"
            );
        }
        assert_eq!(response.get("patch"), None, "{path} {operation}");
    }
}

#[tokio::test]
async fn adm_reg_6_pw_2_pw_3_pod_pa_8_pods_are_judged_at_creation_only() {
    let server = Running::start().await;
    let mut no_size = leader();
    no_size["metadata"]["annotations"] = json!({});
    for (path, operation, allowed) in [
        (MUTATE_POD, "CREATE", false),
        (MUTATE_POD, "UPDATE", true),
        (VALIDATE_POD, "CREATE", true),
        (VALIDATE_POD, "UPDATE", true),
    ] {
        let old = if operation == "UPDATE" {
            &no_size
        } else {
            &Value::Null
        };
        let response = ask(&server, path, &review(operation, &no_size, old)).await;
        assert_eq!(
            response["allowed"], allowed,
            "{path} {operation}: {response}"
        );
        assert_eq!(response.get("patch"), None, "{path} {operation}");
    }
}

#[tokio::test]
async fn adm_adm_2_mutations_are_json_patches() {
    let server = Running::start().await;
    let set = lws(json!({}));
    for operation in ["CREATE", "UPDATE"] {
        let response = ask(&server, MUTATE_LWS, &review(operation, &set, &Value::Null)).await;
        let stored = patched(&response, &set);
        assert_eq!(stored["spec"]["networkConfig"]["subdomainPolicy"], "Shared");
        let again = ask(
            &server,
            MUTATE_LWS,
            &review(operation, &stored, &Value::Null),
        )
        .await;
        assert_eq!(
            (&again["allowed"], again.get("patch")),
            (&json!(true), None),
            "nothing left to do"
        );
    }
    let pod = leader();
    let response = ask(&server, MUTATE_POD, &review("CREATE", &pod, &Value::Null)).await;
    let env = &patched(&response, &pod)["spec"]["containers"][0]["env"];
    assert_eq!(
        env[0],
        json!({"name": "LWS_LEADER_ADDRESS", "value": "demo-0.demo.t1"}),
        "namespace of the request"
    );
}

#[tokio::test]
async fn adm_adm_8_warnings_reach_the_client() {
    let server = Running::start().await;
    let mut set = lws(json!({}));
    set["metadata"]["name"] = "n".repeat(60).into();
    let response = ask(&server, VALIDATE_LWS, &review("CREATE", &set, &Value::Null)).await;
    assert_eq!(response["allowed"], true);
    assert_eq!(response["warnings"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn ops_whk_1_unreadable_requests_are_answered_as_reviews() {
    let server = Running::start().await;
    let client = server.client();
    let good = review("CREATE", &lws(json!({})), &Value::Null).to_string();
    let other_version = good.replace("admission.k8s.io/v1", "admission.k8s.io/v1beta1");
    let no_object = review("CREATE", &Value::Null, &Value::Null).to_string();
    let padded = |length: usize| good.clone() + &" ".repeat(length - good.len());
    let limit = 7 * 1024 * 1024;
    for (content_type, body, code) in [
        ("application/json", String::new(), Some(400)),
        ("application/json", "{".to_owned(), Some(400)),
        (
            "application/json",
            "{\"apiVersion\": \"admission.k8s.io/v1\", \"kind\": \"AdmissionReview\"}".to_owned(),
            Some(400),
        ),
        ("application/json", other_version, Some(400)),
        ("application/json", no_object, Some(400)),
        ("application/yaml", good.clone(), Some(400)),
        ("application/json; charset=utf-8", good.clone(), Some(400)),
        ("application/json", padded(limit), Some(413)),
        ("application/json", padded(limit + 3_000_000), Some(413)),
        ("application/json", padded(limit - 1), None),
    ] {
        let answer = client
            .send("POST", VALIDATE_LWS, content_type, body.as_bytes())
            .await
            .unwrap();
        let response = answer.json()["response"].clone();
        assert_eq!(answer.status, 200);
        assert_eq!(
            response["allowed"],
            code.is_none(),
            "{content_type} {}",
            body.len()
        );
        assert_eq!(
            response["status"]["code"].as_u64(),
            code,
            "{content_type} {}",
            body.len()
        );
    }
    assert_eq!(
        client
            .send("GET", VALIDATE_LWS, "application/json", b"")
            .await
            .unwrap()
            .status,
        405
    );
    assert_eq!(client.post("/other", b"{}").await.unwrap().status, 404);
}

#[tokio::test]
async fn ops_whk_4_conversion_returns_what_it_got() {
    let server = Running::start().await;
    let objects = json!([{"apiVersion": "leaderworkerset.x-k8s.io/v1", "spec": {"x": 1}}]);
    let review = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "ConversionReview",
        "request": {"uid": "c-1", "desiredAPIVersion": "leaderworkerset.x-k8s.io/v1", "objects": objects},
    });
    let answer = server
        .client()
        .post("/convert", review.to_string().as_bytes())
        .await
        .unwrap()
        .json();
    assert_eq!(answer["response"]["uid"], "c-1");
    assert_eq!(answer["response"]["convertedObjects"], objects);
    assert_eq!(answer["response"]["result"]["status"], "Success");
    let answer = server.client().post("/convert", b"{").await.unwrap();
    assert_eq!(answer.status, 400);
}
