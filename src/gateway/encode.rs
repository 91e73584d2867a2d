//! Requests as HTTP: URL, verb, body, field manager (CLI-3) and preconditions (KRS-58).

use http::Method;
use http::header::{ACCEPT, CONTENT_TYPE};
use lws_api::names::FIELD_MANAGER;
use lws_core::intent::{Kind, Propagation, Subresource, Target};
use lws_core::run::Request;
use serde_json::{Value, json};

const JSON: &str = "application/json";

/// The HTTP request for `request`; the client adds the server's address.
pub(super) fn encode(request: &Request) -> Result<http::Request<Vec<u8>>, http::Error> {
    let by = format!("fieldManager={FIELD_MANAGER}");
    let (method, uri, media_type, body) = match request {
        Request::Create { target, body } => (
            Method::POST,
            format!("{}?{by}", collection(target)),
            JSON,
            bytes(body),
        ),
        Request::Read { target } => (Method::GET, object(target), JSON, Vec::new()),
        Request::Apply { target, body } => (
            Method::PATCH,
            format!("{}?{by}&force=true", object(target)),
            "application/apply-patch+yaml",
            bytes(body),
        ),
        Request::Patch {
            target,
            subresource,
            body,
        } => {
            let part = match subresource {
                Subresource::None => "",
                Subresource::Status => "/status",
            };
            (
                Method::PATCH,
                format!("{}{part}?{by}", object(target)),
                "application/merge-patch+json",
                bytes(body),
            )
        }
        Request::MergeStatus { target, body } => (
            Method::PATCH,
            format!("{}/status?{by}", object(target)),
            "application/strategic-merge-patch+json",
            bytes(body),
        ),
        Request::Delete {
            target,
            uid,
            resource_version,
            propagation,
        } => {
            let policy = match propagation {
                Propagation::Background => "Background",
                Propagation::Foreground => "Foreground",
            };
            let preconditions = match resource_version {
                Some(version) => json!({"uid": uid.as_str(), "resourceVersion": version}),
                None => json!({"uid": uid.as_str()}),
            };
            let options = json!({
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "preconditions": preconditions,
                "propagationPolicy": policy,
            });
            (Method::DELETE, object(target), JSON, bytes(&options))
        }
    };
    http::Request::builder()
        .method(method)
        .uri(uri)
        .header(ACCEPT, JSON)
        .header(CONTENT_TYPE, media_type)
        .body(body)
}

fn bytes(body: &Value) -> Vec<u8> {
    body.to_string().into_bytes()
}

fn collection(target: &Target) -> String {
    let kind: Kind = target.kind;
    let version = kind.api_version();
    let root = if version.contains('/') { "apis" } else { "api" };
    format!(
        "/{root}/{version}/namespaces/{}/{}",
        target.key.namespace,
        kind.plural()
    )
}

fn object(target: &Target) -> String {
    format!("{}/{}", collection(target), target.key.name)
}
