use std::sync::{Arc, Mutex};

use http::{Method, Request, Response, StatusCode};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::*;

/// An API server that holds one Lease. Watches of it never answer.
#[derive(Clone, Default)]
struct Server(Arc<Mutex<Stored>>);

#[derive(Default)]
struct Stored {
    lease: Option<Value>,
    version: u64,
    is_down: bool,
}

impl Server {
    fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move { server.answer(request).await }
        });
        Client::new(service, "default")
    }

    async fn answer(&self, request: Request<Body>) -> Result<Response<Body>, tower::BoxError> {
        let (head, body) = request.into_parts();
        let query = head.uri.query().unwrap_or_default();
        if query.contains("watch=true") || self.stored().is_down {
            std::future::pending::<()>().await;
        }
        let sent =
            serde_json::from_slice::<Value>(&body.collect_bytes().await?).unwrap_or_default();
        let (code, answer) = self.stored().exchange(&head.method, head.uri.path(), sent);
        Ok(Response::builder()
            .status(code)
            .body(Body::from(answer.to_string().into_bytes()))?)
    }

    fn stored(&self) -> std::sync::MutexGuard<'_, Stored> {
        self.0.lock().expect("a lock")
    }

    fn spec(&self, field: &str) -> Value {
        self.stored().lease.as_ref().expect("a lease")["spec"][field].clone()
    }

    fn put(&self, spec: Value) {
        self.stored().store(json!({"metadata": {"name": "b8b2488c.x-k8s.io", "namespace": "lws-system", "uid": "u"}, "spec": spec}));
    }
}

impl Stored {
    fn store(&mut self, mut lease: Value) -> Value {
        self.version += 1;
        lease["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.lease = Some(lease.clone());
        lease
    }

    fn exchange(&mut self, method: &Method, path: &str, sent: Value) -> (StatusCode, Value) {
        let failure = |code: u16, reason: &str| json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": reason});
        if path.ends_with("/events") {
            return (StatusCode::CREATED, json!({"metadata": {}}));
        }
        match *method {
            Method::GET if path.ends_with("/leases") => {
                let version = self.version.max(1).to_string();
                (
                    StatusCode::OK,
                    json!({"metadata": {"resourceVersion": version}, "items": self.lease.iter().collect::<Vec<_>>()}),
                )
            }
            Method::GET => match &self.lease {
                Some(lease) => (StatusCode::OK, lease.clone()),
                None => (StatusCode::NOT_FOUND, failure(404, "NotFound")),
            },
            Method::POST => (StatusCode::CREATED, self.store(sent)),
            _ => {
                let current = self
                    .lease
                    .as_ref()
                    .map(|lease| lease["metadata"]["resourceVersion"].clone());
                if current == Some(sent["metadata"]["resourceVersion"].clone()) {
                    (StatusCode::OK, self.store(sent))
                } else {
                    (StatusCode::CONFLICT, failure(409, "Conflict"))
                }
            }
        }
    }
}

fn election(server: &Server, fence: &Fence) -> Election {
    let gauges = Gauges {
        leads: IntGauge::new("leads", "leads").expect("a gauge"),
        slow: IntCounter::new("slow", "slow").expect("a counter"),
    };
    Election::new(
        server.client(),
        &LeaderElection::default(),
        fence.clone(),
        gauges,
    )
    .expect("good settings")
}

fn may_write(fence: &Fence) -> bool {
    fence.admit(Instant::now()).is_ok()
}

#[tokio::test(start_paused = true)]
async fn ops_le_6_a_lease_that_does_not_exist_is_created_and_given_back() {
    let (server, fence) = (Server::default(), Fence::shut());
    let election = election(&server, &fence);
    let me = election.me.clone();
    let leads_now = election.gauges.leads.clone();
    let (lead, leads) = oneshot::channel();
    let (release, released) = oneshot::channel::<()>();
    let lead = move || lead.send(()).expect("waited for");
    let running = tokio::spawn(election.run(lead, async move {
        let _ = released.await;
    }));
    leads.await.expect("it leads");
    assert!(may_write(&fence));
    assert_eq!(server.spec("holderIdentity"), json!(me));
    assert_eq!(server.spec("leaseDurationSeconds"), json!(15));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(may_write(&fence), "it is renewed");
    assert_eq!(leads_now.get(), 1, "MET-4");

    release.send(()).expect("runs");
    running.await.expect("ends").expect("well");
    assert_eq!(leads_now.get(), 0);
    assert!(!may_write(&fence));
    assert_eq!(server.spec("holderIdentity"), json!(""));
    assert_eq!(server.spec("leaseDurationSeconds"), json!(1));
    assert_eq!(server.spec("leaseTransitions"), json!(0));
}

#[tokio::test(start_paused = true)]
async fn ops_le_6_a_lease_that_is_not_renewed_is_taken_over_after_its_own_duration() {
    let (server, fence) = (Server::default(), Fence::shut());
    let long_ago = "2020-01-01T00:00:00.000000Z";
    server.put(json!({"holderIdentity": "other", "leaseDurationSeconds": 20, "renewTime": long_ago, "leaseTransitions": 4}));
    let (lead, mut leads) = oneshot::channel();
    let start = Instant::now();
    let running = tokio::spawn(election(&server, &fence).run(
        move || lead.send(()).expect("waited for"),
        std::future::pending(),
    ));
    tokio::time::sleep(Duration::from_secs(19)).await;
    assert!(
        leads.try_recv().is_err(),
        "times in the record do not count"
    );
    leads.await.expect("it leads");
    assert!(start.elapsed() < Duration::from_secs(23));
    assert_eq!(server.spec("leaseTransitions"), json!(5));
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn ops_le_7_without_renewal_leadership_is_lost_after_the_deadline() {
    let (server, fence) = (Server::default(), Fence::shut());
    let (lead, leads) = oneshot::channel();
    let running = tokio::spawn(election(&server, &fence).run(
        move || lead.send(()).expect("waited for"),
        std::future::pending(),
    ));
    leads.await.expect("it leads");
    let start = Instant::now();
    server.stored().is_down = true;
    let ended = running.await.expect("ends");
    assert!(matches!(ended, Err(LeaseError::Lost)));
    assert!(
        start.elapsed() <= Duration::from_secs(15),
        "{:?}",
        start.elapsed()
    );
    assert!(!may_write(&fence));
}

#[tokio::test(start_paused = true)]
async fn ops_le_6_another_holder_ends_leadership() {
    let (server, fence) = (Server::default(), Fence::shut());
    let (lead, leads) = oneshot::channel();
    let running = tokio::spawn(election(&server, &fence).run(
        move || lead.send(()).expect("waited for"),
        std::future::pending(),
    ));
    leads.await.expect("it leads");
    server.put(json!({"holderIdentity": "other", "leaseDurationSeconds": 15}));
    let ended = running.await.expect("ends");
    assert!(matches!(ended, Err(LeaseError::Lost)));
    assert_eq!(server.spec("holderIdentity"), json!("other"));
}

#[test]
fn ops_le_5_only_leases() {
    assert!(check_lock("leases").is_ok());
    for removed in [
        "endpoints",
        "configmaps",
        "endpointsleases",
        "configmapsleases",
    ] {
        assert!(
            check_lock(removed)
                .expect_err(removed)
                .to_string()
                .contains("migrate to leases")
        );
    }
    assert!(
        check_lock("other")
            .expect_err("other")
            .to_string()
            .contains("invalid lock type")
    );
}
