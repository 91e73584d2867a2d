//! Certificates, connections and the end of the server (WHK-1, WHK-5, CRT-7, HLT-3, SHD-1).

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::client::{Authority, Pem, Running, head, store};
use lws_webhook::{CertFiles, CertificateError, NotReady, Tls};
use prometheus::Registry;
use rustls::version::{TLS12, TLS13};
use serde_json::json;

const PATH: &str = "/validate--v1-pod";

fn review() -> Vec<u8> {
    let request = json!({"uid": "u", "operation": "CREATE", "object": {}});
    let review =
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
    review.to_string().into_bytes()
}

#[tokio::test]
async fn ops_whk_1_http_1_1_and_our_certificate() {
    let server = Running::start().await;
    let connection = server.client().connect().await.unwrap();
    assert_eq!(
        connection.stream.get_ref().1.alpn_protocol(),
        Some(b"http/1.1".as_slice()),
        "h2 was offered too"
    );
    assert!(
        server.client_of(&Authority::new()).connect().await.is_err(),
        "a stranger's authority does not vouch for it"
    );
}

#[tokio::test]
async fn ops_met_4_met_7_requests_denials_and_certificates_are_counted() {
    let server = Running::start().await;
    server.client().post(PATH, &review()).await.unwrap();
    server.client().post(PATH, b"no review").await.unwrap();
    let set = "/validate-leaderworkerset-x-k8s-io-v1-leaderworkerset";
    let object = json!({"metadata": {"name": "demo", "namespace": "default"}, "spec": {"replicas": -1, "leaderWorkerTemplate": {"size": 1}}});
    let request = json!({"uid": "u", "operation": "CREATE", "object": object});
    let body =
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
    let denied = server.client().post(set, body.to_string().as_bytes()).await;
    assert_eq!(denied.unwrap().json()["response"]["allowed"], false);
    assert!(server.certificates.set_pem(b"", b"").is_err());
    let text = prometheus::TextEncoder::new()
        .encode_to_string(&server.registry.gather())
        .unwrap();
    for line in [
        format!("controller_runtime_webhook_requests_total{{code=\"200\",webhook=\"{PATH}\"}} 2"),
        format!("controller_runtime_webhook_requests_total{{code=\"500\",webhook=\"{PATH}\"}} 0"),
        format!("controller_runtime_webhook_requests_in_flight{{webhook=\"{PATH}\"}} 0"),
        format!("controller_runtime_webhook_latency_seconds_count{{webhook=\"{PATH}\"}} 2"),
        "lws_admission_denied_total{field=\"replicas\",kind=\"leaderworkerset\"} 1".to_owned(),
        "controller_runtime_webhook_panics_total 0".to_owned(),
        "certwatcher_read_certificate_total 2".to_owned(),
        "certwatcher_read_certificate_errors_total 1".to_owned(),
    ] {
        assert!(text.contains(&line), "{line} is not in {text}");
    }
}

#[tokio::test]
async fn ops_tls_1_versions_offered() {
    for (tls, has_1_2) in [
        (Tls::default(), true),
        (Tls::from_1_2(Vec::new()), true),
        (Tls::only_1_3(), false),
    ] {
        let server = Running::start_with(tls.clone()).await;
        let old = server.client_of_versions(&[&TLS12]).connect().await;
        assert_eq!(old.is_ok(), has_1_2, "{tls:?}");
        server
            .client_of_versions(&[&TLS13])
            .connect()
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn ops_tls_2_suites_of_tls_1_2_are_chosen_and_those_of_1_3_are_not() {
    for suite in Tls::known_suites() {
        let server = Running::start_with(Tls::from_1_2(vec![suite])).await;
        let old = server.client_of_versions(&[&TLS12]).connect().await;
        // The certificate of the test is ECDSA.
        let name = format!("{:?}", suite.suite());
        assert_eq!(old.is_ok(), name.contains("ECDSA"), "{name}");
        if let Ok(connection) = old {
            let used = connection.stream.get_ref().1.negotiated_cipher_suite();
            assert_eq!(used, Some(suite));
        }
        server
            .client_of_versions(&[&TLS13])
            .connect()
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn ops_whk_1_several_requests_on_one_connection() {
    let server = Running::start().await;
    let mut connection = server.client().connect().await.unwrap();
    for _ in 0..3 {
        let body = review();
        connection
            .write(head("POST", PATH, "application/json", body.len()).as_bytes())
            .await
            .unwrap();
        connection.write(&body).await.unwrap();
        assert_eq!(
            connection.answer().await.unwrap().json()["response"]["allowed"],
            true
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ops_whk_5_renewal_under_load_fails_no_request() {
    let server = Running::start().await;
    let done = Arc::new(AtomicBool::new(false));
    let load: Vec<_> = (0..4)
        .map(|_| {
            let (client, done) = (server.client(), Arc::clone(&done));
            tokio::spawn(async move {
                let mut answered = 0;
                while !done.load(Ordering::Relaxed) {
                    let answer = client.post(PATH, &review()).await.unwrap();
                    assert_eq!(answer.json()["response"]["allowed"], true);
                    answered += 1;
                }
                answered
            })
        })
        .collect();
    for _ in 0..20 {
        server.renew();
        server.probe.ready().await.unwrap();
        assert_eq!(
            server.client().post(PATH, &review()).await.unwrap().status,
            200
        );
    }
    done.store(true, Ordering::Relaxed);
    for task in load {
        assert!(task.await.unwrap() > 0);
    }
}

#[tokio::test]
async fn ops_hlt_3_probe_sees_whether_we_serve_the_current_certificate() {
    let server = Running::start().await;
    let probe = server.probe.clone();
    probe.ready().await.unwrap();
    server.stop().await.unwrap();
    assert!(matches!(probe.ready().await, Err(NotReady::Connect(_))));
}

#[tokio::test]
async fn ops_shd_1_open_requests_are_answered_and_idle_connections_closed() {
    let server = Running::start().await;
    let client = server.client();
    let idle = client.connect().await.unwrap();
    let mut open = client.connect().await.unwrap();
    let body = review();
    open.write(head("POST", PATH, "application/json", body.len()).as_bytes())
        .await
        .unwrap();
    open.write(&body[..10]).await.unwrap();
    // A second exchange that is complete shows that the server has read what came before it.
    client.post(PATH, &review()).await.unwrap();
    let served = server.stop();
    open.write(&body[10..]).await.unwrap();
    assert_eq!(
        open.answer().await.unwrap().json()["response"]["allowed"],
        true
    );
    served.await.unwrap();
    assert!(client.connect().await.is_err(), "nobody listens any more");
    drop(idle);
}

fn write(folder: &Path, pem: &Pem) {
    std::fs::write(folder.join("tls.crt"), &pem.chain).unwrap();
    std::fs::write(folder.join("tls.key"), &pem.key).unwrap();
}

/// A folder of its own under the target folder, empty.
fn folder(name: &str) -> std::path::PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[tokio::test]
async fn ops_whk_5_files_are_read_again_when_they_change() {
    let (authority, folder) = (Authority::new(), folder("reload"));
    let store = Arc::new(store(&Registry::new()));
    let mut files = CertFiles::new(folder.clone(), Arc::clone(&store));
    assert!(matches!(
        files.reload().await,
        Err(CertificateError::Read { .. })
    ));

    write(&folder, &authority.issue());
    assert!(files.reload().await.unwrap());
    assert!(!files.reload().await.unwrap(), "nothing new");
    let first = store.leaf();

    let next = authority.issue();
    std::fs::write(folder.join("tls.crt"), &next.chain).unwrap();
    assert!(
        matches!(files.reload().await, Err(CertificateError::Pair(_))),
        "half of a new pair"
    );
    assert_eq!(store.leaf(), first);
    std::fs::write(folder.join("tls.key"), &next.key).unwrap();
    assert!(files.reload().await.unwrap());
    assert_ne!(store.leaf(), first);

    std::fs::write(folder.join("tls.key"), "no key").unwrap();
    assert!(matches!(
        files.reload().await,
        Err(CertificateError::Key(_))
    ));
    std::fs::write(folder.join("tls.crt"), "").unwrap();
    assert!(matches!(
        files.reload().await,
        Err(CertificateError::Certificate(_))
    ));
}

#[tokio::test(start_paused = true)]
async fn ops_whk_5_a_changed_pair_is_served_after_the_poll() {
    let (authority, folder) = (Authority::new(), folder("follow"));
    let store = Arc::new(store(&Registry::new()));
    write(&folder, &authority.issue());
    let mut files = CertFiles::new(folder.clone(), Arc::clone(&store));
    files.wait().await.unwrap();
    let first = store.leaf();
    write(&folder, &authority.issue());
    let poll = tokio::time::timeout(std::time::Duration::from_secs(15), files.follow());
    assert!(poll.await.is_err(), "follows for ever");
    assert_ne!(store.leaf(), first);
}

#[tokio::test(start_paused = true)]
async fn ops_crt_7_waits_for_files_and_gives_up_at_last() {
    let (authority, folder) = (Authority::new(), folder("wait"));
    let begin = tokio::time::Instant::now();
    let mut never = CertFiles::new(folder.clone(), Arc::new(store(&Registry::new())));
    let error = never.wait().await.unwrap_err();
    assert_eq!(error.to_string(), "could not mount certs");
    let waited = begin.elapsed().as_secs();
    assert!((8 * 60..=18 * 60).contains(&waited), "{waited} s");

    let store = Arc::new(store(&Registry::new()));
    let mut late = CertFiles::new(folder.clone(), Arc::clone(&store));
    let waiting = tokio::spawn(async move { late.wait().await });
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    write(&folder, &authority.issue());
    waiting.await.unwrap().unwrap();
    assert!(store.leaf().is_some());
}
