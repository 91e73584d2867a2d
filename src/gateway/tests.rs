use std::sync::Arc;

use http::{Method, Response, StatusCode};
use kube::client::Body;
use lws_core::intent::{Accept, IfFailed, Intent, Kind, Propagation, Subresource, Target, Why};
use lws_core::model::ObjectKey;
use lws_core::ownership::Expected;
use lws_core::run::SeenAs;
use serde_json::json;
use tower_test::mock;

use super::*;

type Handle = mock::Handle<http::Request<Body>, Response<Body>>;

fn gateway(fence: Fence) -> (Gateway, Handle) {
    let (service, handle) = mock::pair::<http::Request<Body>, Response<Body>>();
    (
        Gateway::new(
            Client::new(service, "default"),
            Limiter::new(-1.0, 1),
            fence,
        ),
        handle,
    )
}

fn target(kind: Kind) -> Target {
    Target {
        kind,
        key: ObjectKey::new("ns", "demo"),
    }
}

fn create() -> Intent {
    let by = Expected {
        kind: "LeaderWorkerSet",
        name: "demo".into(),
        uid: "owner".into(),
    };
    Intent::Create {
        target: target(Kind::Service),
        body: Arc::new(json!({"kind": "Service"})),
        accept: Accept::Controlled {
            by,
            foreign: "foreign".into(),
        },
        claim: false,
    }
}

fn apply() -> Intent {
    Intent::Apply {
        target: target(Kind::StatefulSet),
        uid: "u1".into(),
        resource_version: None,
        body: Arc::new(json!({"spec": {}})),
        claim: false,
    }
}

fn patch(subresource: Subresource) -> Intent {
    Intent::Patch {
        target: target(Kind::LeaderWorkerSet),
        uid: "u1".into(),
        resource_version: Some("7".into()),
        subresource,
        body: json!({"status": {"replicas": 1}}),
    }
}

fn delete(propagation: Propagation) -> Intent {
    Intent::Delete {
        target: target(Kind::Pod),
        uid: "u1".into(),
        resource_version: None,
        propagation,
    }
}

/// What was sent for one step, and what became of it when the server answered so.
async fn exchange(
    intent: Intent,
    code: u16,
    headers: &[(&str, &str)],
    body: Value,
) -> (http::request::Parts, Value, Outcome) {
    let (gateway, mut handle) = gateway(Fence::open());
    let server = async {
        let (request, respond) = handle.next_request().await.expect("a request");
        let (head, sent) = request.into_parts();
        let sent = sent.collect_bytes().await.expect("a body");
        let mut response = Response::builder().status(code);
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        respond.send_response(
            response
                .body(Body::from(body.to_string().into_bytes()))
                .expect("a response"),
        );
        drop(handle);
        (
            head,
            if sent.is_empty() {
                Value::Null
            } else {
                serde_json::from_slice(&sent).expect("JSON")
            },
        )
    };
    let steps = vec![Step::new(Why::StatusDiffers, intent).if_failed(IfFailed::Continue)];
    let ((head, sent), outcome) = tokio::join!(server, gateway.perform(steps));
    (head, sent, outcome)
}

#[tokio::test]
async fn krs_76_requests_as_sent() {
    let json = "application/json";
    for (intent, method, uri, media_type, body) in [
        (
            create(),
            Method::POST,
            "/api/v1/namespaces/ns/services?fieldManager=lws",
            json,
            json!({"kind": "Service"}),
        ),
        (
            apply(),
            Method::PATCH,
            "/apis/apps/v1/namespaces/ns/statefulsets/demo?fieldManager=lws&force=true",
            "application/apply-patch+yaml",
            json!({"metadata": {"uid": "u1"}, "spec": {}}),
        ),
        (
            patch(Subresource::None),
            Method::PATCH,
            "/apis/leaderworkerset.x-k8s.io/v1/namespaces/ns/leaderworkersets/demo?fieldManager=lws",
            "application/merge-patch+json",
            json!({"metadata": {"uid": "u1", "resourceVersion": "7"}, "status": {"replicas": 1}}),
        ),
        (
            patch(Subresource::Status),
            Method::PATCH,
            "/apis/leaderworkerset.x-k8s.io/v1/namespaces/ns/leaderworkersets/demo/status?fieldManager=lws",
            "application/merge-patch+json",
            json!({"metadata": {"uid": "u1", "resourceVersion": "7"}, "status": {"replicas": 1}}),
        ),
        (
            Intent::SetCondition {
                target: target(Kind::Pod),
                uid: "u1".into(),
                condition: json!({"type": "t"}),
            },
            Method::PATCH,
            "/api/v1/namespaces/ns/pods/demo/status?fieldManager=lws",
            "application/strategic-merge-patch+json",
            json!({"metadata": {"uid": "u1"}, "status": {"conditions": [{"type": "t"}]}}),
        ),
        (
            delete(Propagation::Foreground),
            Method::DELETE,
            "/api/v1/namespaces/ns/pods/demo",
            json,
            json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "u1"}, "propagationPolicy": "Foreground"}),
        ),
        (
            delete(Propagation::Background),
            Method::DELETE,
            "/api/v1/namespaces/ns/pods/demo",
            json,
            json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "u1"}, "propagationPolicy": "Background"}),
        ),
    ] {
        let answer = json!({"metadata": {"name": "demo", "namespace": "ns", "uid": "u1", "resourceVersion": "8"}});
        let (head, sent, outcome) = exchange(intent, 200, &[], answer).await;
        assert_eq!((head.method, head.uri.to_string().as_str()), (method, uri));
        assert_eq!(head.headers["content-type"], media_type, "{uri}");
        assert_eq!(sent, body, "{uri}");
        assert!(outcome.is_complete(), "{uri}: {outcome:?}");
        assert_eq!(outcome.written.len(), 1, "{uri}");
    }
}

fn status(code: u16, reason: &str, details: Value) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": "words", "details": details})
}

#[tokio::test]
async fn krs_20_every_class() {
    let none = json!({});
    let uid = json!({"causes": [{"field": "metadata.uid", "reason": "FieldValueInvalid", "message": "m"}]});
    let ending = json!({"causes": [{"reason": "NamespaceTerminating", "message": "m", "field": "metadata.namespace"}]});
    let namespace = json!({"kind": "namespaces", "name": "ns"});
    for (intent, code, reason, details, class) in [
        (apply(), 404, "NotFound", &none, Class::Gone),
        (create(), 404, "NotFound", &namespace, Class::Terminating),
        (create(), 404, "NotFound", &none, Class::Rejected),
        (create(), 409, "AlreadyExists", &none, Class::Exists),
        (apply(), 409, "Conflict", &none, Class::Conflict),
        (
            delete(Propagation::Background),
            409,
            "Conflict",
            &none,
            Class::Conflict,
        ),
        (apply(), 422, "Invalid", &uid, Class::Conflict),
        (apply(), 422, "Invalid", &none, Class::Rejected),
        (apply(), 400, "BadRequest", &none, Class::Rejected),
        (apply(), 403, "Forbidden", &none, Class::Rejected),
        (create(), 403, "Forbidden", &ending, Class::Terminating),
        (apply(), 405, "MethodNotAllowed", &none, Class::Rejected),
        (
            apply(),
            413,
            "RequestEntityTooLarge",
            &none,
            Class::Rejected,
        ),
        (apply(), 401, "Unauthorized", &none, Class::Unknown),
        (apply(), 429, "TooManyRequests", &none, Class::Throttled),
        (apply(), 500, "InternalError", &none, Class::Unknown),
        (apply(), 502, "", &none, Class::Unknown),
        (apply(), 503, "ServiceUnavailable", &none, Class::Unknown),
        (apply(), 504, "Timeout", &none, Class::Unknown),
    ] {
        let encoded = match &intent {
            Intent::Create { target, body, .. } => Request::Create {
                target: target.clone(),
                body: body.clone(),
            },
            Intent::Apply { target, body, .. } => Request::Apply {
                target: target.clone(),
                body: (**body).clone(),
            },
            Intent::Patch { target, .. }
            | Intent::SetCondition { target, .. }
            | Intent::Delete { target, .. } => Request::Delete {
                target: target.clone(),
                uid: "u1".into(),
                resource_version: None,
                propagation: Propagation::Background,
            },
        };
        let body = status(code, reason, details.clone()).to_string();
        let failure = classify::failure(
            &encoded,
            StatusCode::from_u16(code).expect("a code"),
            None,
            body.as_bytes(),
        );
        assert_eq!(failure.class, class, "{code} {reason} {details}");
        assert_eq!(failure.message, "words");
    }
}

#[tokio::test]
async fn krs_18_throttled_waits_as_long_as_the_server_says() {
    let throttled = || status(429, "TooManyRequests", json!({}));
    let (_, _, outcome) = exchange(apply(), 429, &[("retry-after", "7")], throttled()).await;
    assert_eq!(
        outcome.failure.expect("a failure").retry_after,
        Some(Duration::from_secs(7))
    );
    let (_, _, outcome) = exchange(apply(), 429, &[], throttled()).await;
    assert_eq!(
        outcome.failure.expect("a failure").retry_after,
        Some(Duration::from_secs(1))
    );
}

#[tokio::test]
async fn krs_56_duplicate_keys_in_an_apply_are_rejected() {
    let mut answer = status(500, "InternalError", json!({}));
    answer["message"] = json!(
        "failed to create typed patch object (ns/demo; apps/v1, Kind=StatefulSet): errors: duplicate entries for key"
    );
    let (_, _, outcome) = exchange(apply(), 500, &[], answer).await;
    assert_eq!(outcome.failure.expect("a failure").class, Class::Rejected);
}

#[tokio::test]
async fn krs_20_answers_that_are_not_readable_leave_the_outcome_unknown() {
    let (_, _, outcome) = exchange(apply(), 502, &[], json!("<html>")).await;
    let failure = outcome.failure.expect("a failure");
    assert_eq!(
        (failure.class, failure.message.as_str()),
        (Class::Unknown, "502 Bad Gateway")
    );
}

#[tokio::test(start_paused = true)]
async fn krs_14_no_answer_within_30_s_leaves_the_outcome_unknown() {
    let (gateway, mut handle) = gateway(Fence::open());
    let start = Instant::now();
    let steps = vec![Step::new(Why::LeaderSetDiffers, apply())];
    let (held, outcome) = tokio::join!(handle.next_request(), gateway.perform(steps));
    assert!(held.is_some());
    assert_eq!(outcome.failure.expect("a failure").class, Class::Unknown);
    assert_eq!(start.elapsed(), WRITE_LIMIT);
}

#[tokio::test(start_paused = true)]
async fn ops_le_7_a_write_ends_with_the_lease() {
    let fence = Fence::shut();
    let (gateway, mut handle) = gateway(fence.clone());
    let start = Instant::now();
    fence.hold(
        start + Duration::from_secs(10),
        start + Duration::from_secs(15),
    );
    let steps = vec![Step::new(Why::LeaderSetDiffers, apply())];
    let (held, outcome) = tokio::join!(handle.next_request(), gateway.perform(steps));
    assert!(held.is_some());
    assert_eq!(outcome.failure.expect("a failure").class, Class::Unknown);
    assert_eq!(start.elapsed(), Duration::from_secs(15));
}

#[tokio::test]
async fn ops_le_7_no_write_starts_without_the_lease() {
    let fence = Fence::open();
    fence.close();
    let (gateway, mut handle) = gateway(fence);
    let outcome = gateway
        .perform(vec![Step::new(Why::LeaderSetDiffers, apply())])
        .await;
    assert_eq!(outcome.failure.expect("a failure").class, Class::Unknown);
    drop(gateway);
    assert!(handle.next_request().await.is_none(), "nothing was sent");
}

#[tokio::test]
async fn krs_58_a_delete_of_what_is_gone_is_done() {
    for (code, reason) in [(404, "NotFound"), (409, "Conflict")] {
        let (_, _, outcome) = exchange(
            delete(Propagation::Background),
            code,
            &[],
            status(code, reason, json!({})),
        )
        .await;
        assert!(outcome.is_complete());
        assert_eq!(outcome.written[0].seen_as, SeenAs::Deleted);
    }
}
