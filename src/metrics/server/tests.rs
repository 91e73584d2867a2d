use std::sync::Mutex;

use http::{Request, Response as Answer};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::*;

/// An API server that knows the tokens `good` and `bound`, of which only the latter may scrape, and counts reviews.
#[derive(Clone, Default)]
struct Reviews(Arc<Mutex<Vec<String>>>);

impl Reviews {
    fn client(&self) -> Client {
        let reviews = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let reviews = reviews.clone();
            async move { reviews.answer(request).await }
        });
        Client::new(service, "default")
    }

    async fn answer(&self, request: Request<Body>) -> Result<Answer<Body>, tower::BoxError> {
        let path = request.uri().path().to_owned();
        let sent: Value = serde_json::from_slice(&request.into_body().collect_bytes().await?)?;
        self.0.lock().expect("a lock").push(path.clone());
        let spec = &sent["spec"];
        let (code, status) = if path.ends_with("/tokenreviews") {
            let token = spec["token"].as_str().unwrap_or_default();
            let is_known = ["good", "bound", "odd"].contains(&token);
            let user = json!({"username": token, "groups": ["system:authenticated"]});
            let code = if token == "broken" { 500 } else { 201 };
            (code, json!({"authenticated": is_known, "user": user}))
        } else {
            let attributes = &spec["nonResourceAttributes"];
            assert_eq!(attributes, &json!({"path": "/metrics", "verb": "get"}));
            assert_eq!(spec["groups"], json!(["system:authenticated"]));
            let code = if spec["user"] == "odd" { 500 } else { 201 };
            (code, json!({"allowed": spec["user"] == "bound"}))
        };
        let mut body = sent.clone();
        body["status"] = status;
        Ok(Answer::builder()
            .status(code)
            .body(Body::from(body.to_string().into_bytes()))?)
    }

    fn count(&self) -> usize {
        self.0.lock().expect("a lock").len()
    }
}

fn router(reviews: &Reviews) -> Router {
    let answers = Answers {
        metrics: Arc::new(Metrics::new().expect("metrics")),
        access: Access::new(&reviews.client()),
    };
    Router::new()
        .route(PATH, any(answer))
        .with_state(Arc::new(answers))
}

async fn get(router: &Router, token: &str, encoding: &str) -> (u16, HeaderMap, Vec<u8>) {
    let mut request = Request::builder()
        .uri(PATH)
        .header("accept-encoding", encoding);
    if !token.is_empty() {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let request = request.body(axum::body::Body::empty()).expect("a request");
    let answer = router.clone().oneshot(request).await.expect("an answer");
    let (head, body) = answer.into_parts();
    let body = body.collect().await.expect("a body").to_bytes();
    (head.status.as_u16(), head.headers, body.to_vec())
}

#[tokio::test(start_paused = true)]
async fn ops_met_3_who_may_scrape() {
    let reviews = Reviews::default();
    let router = router(&reviews);
    for (token, code, text) in [
        ("", 401, "Unauthorized\n"),
        ("unknown", 401, "Unauthorized\n"),
        ("broken", 500, "Authentication failed\n"),
        ("odd", 500, "Authorization for user odd failed\n"),
        ("good", 403, "Authorization denied for user good\n"),
    ] {
        let (found, _, body) = get(&router, token, "").await;
        assert_eq!(
            (found, String::from_utf8_lossy(&body).as_ref()),
            (code, text)
        );
    }
    assert_eq!(get(&router, "bound", "").await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn ops_met_3_answers_are_kept_for_a_while() {
    let reviews = Reviews::default();
    let router = router(&reviews);
    let asked = async |token: &'static str, wait: u64| {
        tokio::time::advance(std::time::Duration::from_secs(wait)).await;
        let before = reviews.count();
        get(&router, token, "").await;
        reviews.count() - before
    };
    assert_eq!(asked("bound", 0).await, 2);
    assert_eq!(asked("bound", 59).await, 0);
    assert_eq!(asked("bound", 2).await, 1, "the token after a minute");
    assert_eq!(asked("bound", 240).await, 2, "both after five minutes");
    assert_eq!(asked("good", 0).await, 2);
    assert_eq!(asked("good", 29).await, 0);
    assert_eq!(asked("good", 2).await, 1, "a refusal after half a minute");
    assert_eq!(asked("unknown", 0).await, 1);
    assert_eq!(asked("unknown", 59).await, 0);
}

#[tokio::test]
async fn ops_met_1_text_of_prometheus_compressed_when_accepted() {
    let router = router(&Reviews::default());
    let (code, headers, plain) = get(&router, "bound", "").await;
    assert_eq!(code, 200);
    assert_eq!(
        headers["content-type"],
        "text/plain; version=0.0.4; charset=utf-8"
    );
    assert!(!headers.contains_key("content-encoding"));
    let text = String::from_utf8(plain).expect("a text");
    assert!(
        text.contains("# TYPE controller_runtime_reconcile_total counter"),
        "{text}"
    );
    let (_, headers, packed) = get(&router, "bound", "deflate, gzip;q=1.0").await;
    assert_eq!(headers["content-encoding"], "gzip");
    let mut unpacked = String::new();
    let mut decoder = flate2::read::GzDecoder::new(packed.as_slice());
    std::io::Read::read_to_string(&mut decoder, &mut unpacked).expect("gzip");
    assert!(unpacked.contains("controller_runtime_reconcile_total"));
    assert!(!accepts_gzip(&HeaderMap::from_iter([(
        header::ACCEPT_ENCODING,
        HeaderValue::from_static("gzip;q=0")
    )])));
}

fn shown(certificate: &CertStore) -> bool {
    certificate.leaf().is_some()
}

#[tokio::test]
async fn ops_met_2_own_certificate_unless_both_files_are_there() {
    let metrics = Arc::new(Metrics::new().expect("metrics"));
    let own = CertStore::new(&metrics.certificates);
    set_own(&own).expect("a certificate");
    assert!(shown(&own));
    let folder = std::env::temp_dir().join(format!("lws-metrics-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let bind = async || {
        let access = Access::new(&Reviews::default().client());
        let tls = Tls::default();
        let bound =
            MetricsServer::bind_in(&folder, "127.0.0.1:0", &tls, metrics.clone(), access).await;
        bound.map(|bound| bound.files.is_some())
    };
    assert!(matches!(bind().await, Ok(false)));
    std::fs::write(folder.join("tls.crt"), "x").expect("written");
    assert!(matches!(bind().await, Ok(false)), "half a pair");
    std::fs::write(folder.join("tls.key"), "x").expect("written");
    assert!(matches!(bind().await, Err(MetricsError::Certificate(_))));
    let key = KeyPair::generate().expect("a key");
    let certificate = CertificateParams::new(vec!["x".to_owned()])
        .expect("names")
        .self_signed(&key)
        .expect("signed");
    std::fs::write(folder.join("tls.crt"), certificate.pem()).expect("written");
    std::fs::write(folder.join("tls.key"), key.serialize_pem()).expect("written");
    assert!(matches!(bind().await, Ok(true)));
    std::fs::remove_dir_all(&folder).expect("removed");
}
