//! The paths of the server and who answers there (WHK-1, WHK-2, WHK-4).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use http_body_util::BodyExt;
use lws_core::admission::{Environment, Findings, disaggregatedset, lws, pod};
use rustls::crypto::{CryptoProvider, SecureRandom};
use serde_json::{Value, json};
use tracing::{debug, error, info};

use crate::metrics::Metrics;
use crate::review::{Failure, Operation, Request, Verdict, decode, encode};

/// From this size on a body is refused; reviews hold at most two objects of 3 MiB each.
const BODY_LIMIT: usize = 7 * 1024 * 1024;
/// The API server waits no longer than this for any webhook.
const READ_LIMIT: Duration = Duration::from_secs(30);

/// What the answers depend on besides the request.
#[derive(Debug)]
pub struct Admission {
    environment: ArcSwap<Environment>,
    random: &'static dyn SecureRandom,
    metrics: Metrics,
}

/// How one path answers a request.
type Hook = fn(&Admission, &Request) -> Verdict;

impl Admission {
    /// Random parts of names are drawn from `provider`.
    pub fn new(environment: Environment, provider: &CryptoProvider, metrics: Metrics) -> Self {
        Self {
            environment: ArcSwap::from_pointee(environment),
            random: provider.secure_random,
            metrics,
        }
    }

    /// Decides by another environment from now on, for instance when the API server starts to serve a kind.
    pub fn set_environment(&self, environment: Environment) {
        self.environment.store(Arc::new(environment));
    }

    /// The paths of the admission server.
    pub fn router(self: &Arc<Self>) -> Router {
        router(self)
    }

    fn draw(&self) -> Result<u128, Failure> {
        let mut bytes = [0; 16];
        let failed = |_| Failure::Internal("no random numbers are available".to_owned());
        self.random.fill(&mut bytes).map_err(failed)?;
        Ok(u128::from_ne_bytes(bytes))
    }
}

fn router(admission: &Arc<Admission>) -> Router {
    let hooks: [(&'static str, Hook); 5] = [
        (
            "/mutate-leaderworkerset-x-k8s-io-v1-leaderworkerset",
            default_lws,
        ),
        (
            "/validate-leaderworkerset-x-k8s-io-v1-leaderworkerset",
            validate_lws,
        ),
        (
            "/validate-disaggregatedset-x-k8s-io-v1-disaggregatedset",
            validate_disaggregated_set,
        ),
        ("/mutate--v1-pod", complete_pod),
        ("/validate--v1-pod", allow),
    ];
    let router = Router::new().route("/convert", post(convert));
    hooks.into_iter().fold(router, |router, (path, hook)| {
        let admission = Arc::clone(admission);
        admission.metrics.announce(path);
        let answer = move |headers, body| answer(path, hook, admission, headers, body);
        router.route(path, post(answer))
    })
}

fn default_lws(_admission: &Admission, request: &Request) -> Verdict {
    match request.operation {
        Operation::Create | Operation::Update => with_object(request, |object| Verdict::Allowed {
            patch: lws::mutate(object),
            warnings: Vec::new(),
        }),
        Operation::Delete | Operation::Connect => allowed(),
    }
}

fn validate_lws(admission: &Admission, request: &Request) -> Verdict {
    validate(admission, request, lws::validate)
}

fn validate_disaggregated_set(admission: &Admission, request: &Request) -> Verdict {
    validate(admission, request, disaggregatedset::validate)
}

fn validate(
    admission: &Admission,
    request: &Request,
    rules: fn(&Value, Option<&Value>, &Environment) -> Findings,
) -> Verdict {
    let old = match request.operation {
        Operation::Create => None,
        Operation::Update => Some(&request.old_object),
        Operation::Delete | Operation::Connect => return allowed(),
    };
    with_object(request, |object| {
        judge(&rules(object, old, &admission.environment.load()))
    })
}

fn complete_pod(admission: &Admission, request: &Request) -> Verdict {
    match request.operation {
        Operation::Create => with_object(request, |pod| mutate_pod(admission, request, pod)),
        Operation::Update | Operation::Delete | Operation::Connect => allowed(),
    }
}

fn mutate_pod(admission: &Admission, request: &Request, pod: &Value) -> Verdict {
    let random = match admission.draw() {
        Ok(random) => random,
        Err(failure) => return Verdict::Failed(failure),
    };
    let request = pod::Request {
        pod,
        namespace: &request.namespace,
        random,
    };
    match pod::mutate(&request, &admission.environment.load()) {
        Ok(patch) => Verdict::Allowed {
            patch,
            warnings: Vec::new(),
        },
        Err(denial) => Verdict::Denied {
            message: denial.to_string(),
            warnings: Vec::new(),
            field: "metadata".to_owned(),
        },
    }
}

/// REG-6: configurations that older manifests left behind may still ask.
fn allow(_admission: &Admission, _request: &Request) -> Verdict {
    allowed()
}

fn allowed() -> Verdict {
    Verdict::Allowed {
        patch: None,
        warnings: Vec::new(),
    }
}

fn judge(findings: &Findings) -> Verdict {
    let warnings = findings.warnings().to_vec();
    if findings.is_empty() {
        Verdict::Allowed {
            patch: None,
            warnings,
        }
    } else {
        Verdict::Denied {
            message: findings.to_string(),
            warnings,
            field: findings
                .iter()
                .next()
                .map_or("", |found| field(&found.path))
                .to_owned(),
        }
    }
}

/// MET-7: the first name in a path, below spec or metadata, without an index.
fn field(path: &str) -> &str {
    let path = path
        .strip_prefix("spec.")
        .or_else(|| path.strip_prefix("metadata."))
        .unwrap_or(path);
    path.split(['.', '[']).next().unwrap_or_default()
}

/// What the objects of a path are called in the metrics.
fn kind(path: &str) -> &'static str {
    if path.ends_with("-leaderworkerset") {
        "leaderworkerset"
    } else if path.ends_with("-disaggregatedset") {
        "disaggregatedset"
    } else {
        "pod"
    }
}

fn with_object(request: &Request, judge: impl FnOnce(&Value) -> Verdict) -> Verdict {
    if request.object.is_object() {
        judge(&request.object)
    } else {
        Verdict::Failed(Failure::BadRequest("the review holds no object".to_owned()))
    }
}

/// One request from its headers and body to its answer. Errors are answered as reviews, too.
async fn answer(
    path: &'static str,
    hook: Hook,
    admission: Arc<Admission>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let running = admission.metrics.begin(path);
    let request = match read(&headers, body).await.and_then(|body| decode(&body)) {
        Ok(request) => request,
        Err(failure) => {
            info!(webhook = path, ?failure, "review could not be read");
            running.answered();
            return respond("", &Verdict::Failed(failure));
        }
    };
    let verdict = guard(path, &admission.metrics, || hook(&admission, &request));
    admission.metrics.judged(kind(path), &verdict);
    log(path, &request, &verdict);
    running.answered();
    respond(&request.uid, &verdict)
}

/// WHK-1: one request that we cannot cope with must not take the server down.
fn guard(path: &'static str, metrics: &Metrics, hook: impl FnOnce() -> Verdict) -> Verdict {
    catch_unwind(AssertUnwindSafe(hook)).unwrap_or_else(|_| {
        metrics.panicked();
        error!(webhook = path, "panic in an admission handler");
        Verdict::Failed(Failure::Internal(
            "panic in an admission handler".to_owned(),
        ))
    })
}

fn log(path: &'static str, request: &Request, verdict: &Verdict) {
    let Request {
        uid,
        operation,
        namespace,
        name,
        ..
    } = request;
    match verdict {
        Verdict::Allowed { .. } => {
            debug!(webhook = path, %uid, ?operation, %namespace, %name, "allowed")
        }
        Verdict::Denied { message, .. } => {
            info!(webhook = path, %uid, ?operation, %namespace, %name, %message, "denied");
        }
        Verdict::Failed(failure) => {
            info!(webhook = path, %uid, ?operation, %namespace, %name, ?failure, "not judged")
        }
    }
}

fn respond(uid: &str, verdict: &Verdict) -> Response {
    match encode(uid, verdict) {
        Ok(body) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// The body of a request that says it is JSON. One that is too large is read to its end, without keeping it: a client
/// that is still sending would not see an answer.
async fn read(headers: &HeaderMap, body: Body) -> Result<Vec<u8>, Failure> {
    let content_type = headers
        .get(header::CONTENT_TYPE)
        .map(|value| value.as_bytes())
        .unwrap_or_default();
    let is_json = content_type == b"application/json";
    let body = tokio::time::timeout(READ_LIMIT, collect(body)).await;
    let body = body.unwrap_or_else(|_| {
        Err(Failure::BadRequest(
            "the body did not come in time".to_owned(),
        ))
    })?;
    if !is_json {
        let found = String::from_utf8_lossy(content_type);
        return Err(Failure::BadRequest(format!(
            "Content-Type is {found:?}, must be \"application/json\""
        )));
    }
    Ok(body)
}

async fn collect(mut body: Body) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let mut length = 0_usize;
    while let Some(frame) = body.frame().await {
        let frame = frame
            .map_err(|error| Failure::BadRequest(format!("failed to read the body: {error}")))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        length = length.saturating_add(data.len());
        if length < BODY_LIMIT {
            bytes.extend_from_slice(&data);
        } else {
            bytes = Vec::new();
        }
    }
    if length < BODY_LIMIT {
        Ok(bytes)
    } else {
        Err(Failure::TooLarge)
    }
}

/// WHK-4: a cluster whose CRD still names this path gets its objects back as they are; there is one version only.
async fn convert(headers: HeaderMap, body: Body) -> Response {
    let review = read(&headers, body)
        .await
        .ok()
        .and_then(|body| serde_json::from_slice::<Value>(&body).ok());
    let Some(mut review) = review else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let mut take = |pointer| {
        review
            .pointer_mut(pointer)
            .map(Value::take)
            .unwrap_or_default()
    };
    let answer = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "ConversionReview",
        "response": {
            "uid": take("/request/uid"),
            "convertedObjects": take("/request/objects"),
            "result": {"status": "Success"},
        },
    });
    axum::Json(answer).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ops_whk_1_a_panic_is_an_answer() {
        let registry = prometheus::Registry::new();
        let metrics = Metrics::register(&registry).unwrap();
        let verdict = guard("/x", &metrics, || panic!("on purpose"));
        assert!(matches!(verdict, Verdict::Failed(Failure::Internal(_))));
        let body: Value = serde_json::from_slice(&encode("u", &verdict).unwrap()).unwrap();
        assert_eq!(body["response"]["status"]["code"], 500);
        assert_eq!(body["response"]["allowed"], false);
        let text = prometheus::TextEncoder::new().encode_to_string(&registry.gather());
        let counted = "controller_runtime_webhook_panics_total 1";
        assert!(text.unwrap().contains(counted));
    }
}
