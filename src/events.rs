//! Posts events (CLI-4, KRS-65): a queue that never makes a reconcile wait, and the task that empties it.
//!
//! Which events are posted and when is decided by [`Sink`]. A failed post is told in the log and nowhere else: nothing may depend on an event.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::{Event, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use lws_api::names::{DS_REPORTING_CONTROLLER, FIELD_MANAGER, REPORTING_CONTROLLER};
use lws_core::intent::{Kind, Plan};
use lws_core::notice::sink::{HOLD, Post, Sink};
use lws_core::notice::{Notice, Reference};
use lws_core::run::Outcome;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::{Instant, sleep_until, timeout};

use crate::fence::Fence;
use crate::identity;
use crate::metrics::Metrics;

const QUEUE: usize = 1024;
const POST_LIMIT: Duration = Duration::from_secs(10);
/// Longest wait when nothing is due.
const IDLE: Duration = Duration::from_secs(3600);

/// Where reconciles leave what is to be told.
#[derive(Clone)]
pub struct Notices {
    queue: mpsc::Sender<Notice>,
    metrics: Arc<Metrics>,
}

/// The queue of notices, and its end for [`run`].
pub fn channel(metrics: Arc<Metrics>) -> (Notices, mpsc::Receiver<Notice>) {
    let (queue, receiver) = mpsc::channel(QUEUE);
    (Notices { queue, metrics }, receiver)
}

impl Notices {
    /// Leaves what a plan tells, and what became of its passes.
    pub fn post(&self, plan: &Plan, passes: &[Outcome]) {
        plan.notices
            .iter()
            .chain(passes.iter().flat_map(|pass| &pass.notices))
            .cloned()
            .for_each(|notice| self.send(notice));
    }

    /// Leaves one notice; when too many wait already, it is dropped.
    pub fn send(&self, notice: Notice) {
        if let Err(error) = self.queue.try_send(notice) {
            let (TrySendError::Full(notice) | TrySendError::Closed(notice)) = &error;
            let controller = reporting_controller(notice.regarding.target.kind);
            self.metrics.dropped_events(controller).inc();
            tracing::warn!(%error, "an event is dropped");
        }
    }
}

/// Posts what is `queued` while `fence` lets this replica write, until `closed` is over; then posts what is left.
pub async fn run(
    mut queued: mpsc::Receiver<Notice>,
    poster: Poster,
    fence: Fence,
    closed: impl Future<Output = ()>,
) {
    let started = Instant::now();
    let mut sink = Sink::default();
    let mut closed = pin!(closed);
    loop {
        let deadline = sink
            .next_deadline()
            .map_or_else(|| Instant::now() + IDLE, |deadline| started + deadline);
        tokio::select! {
            Some(notice) = queued.recv() => sink.offer(notice, started.elapsed()),
            () = sleep_until(deadline) => {}
            () = &mut closed => break,
        }
        poster.post_all(sink.due(started.elapsed()), &fence).await;
    }
    while let Ok(notice) = queued.try_recv() {
        sink.offer(notice, started.elapsed());
    }
    poster
        .post_all(sink.due(started.elapsed() + HOLD), &fence)
        .await;
}

/// Writes events of this process.
#[derive(Clone)]
pub struct Poster {
    client: Client,
    /// Host of this process.
    host: Arc<str>,
    /// Makes names of events that no other process makes.
    nonce: Arc<str>,
}

impl Poster {
    /// A poster with names of its own.
    pub fn new(client: Client) -> Self {
        let nonce: String = identity::new_uuid().chars().take(8).collect();
        Self {
            client,
            host: identity::host_name().into(),
            nonce: nonce.into(),
        }
    }

    async fn post_all(&self, posts: Vec<Post>, fence: &Fence) {
        for post in posts {
            if fence.admit(Instant::now()).is_err() {
                continue;
            }
            match timeout(POST_LIMIT, self.post(&post)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::warn!(reason = post.reason, object = %post.regarding.target.key, %error, "event not posted")
                }
                Err(_) => {
                    tracing::warn!(reason = post.reason, object = %post.regarding.target.key, "event not posted in time")
                }
            }
        }
    }

    /// KRS-64: an event that is gone by the time it happens again is created anew.
    async fn post(&self, post: &Post) -> kube::Result<()> {
        let event = self.event(post);
        let namespace = event.metadata.namespace.clone().unwrap_or_default();
        let api: Api<Event> = Api::namespaced(self.client.clone(), &namespace);
        if let (Some(series), Some(name)) = (&event.series, &event.metadata.name) {
            let patch = Patch::Merge(json!({"series": series}));
            match api
                .patch(name, &PatchParams::apply(FIELD_MANAGER), &patch)
                .await
            {
                Err(kube::Error::Api(status)) if status.is_not_found() => {}
                patched => return patched.map(|_| ()),
            }
        }
        self.create(&api, &event).await
    }

    async fn create(&self, api: &Api<Event>, event: &Event) -> kube::Result<()> {
        let parameters = PostParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PostParams::default()
        };
        api.create(&parameters, event).await.map(|_| ())
    }

    fn event(&self, post: &Post) -> Event {
        let now = MicroTime(Timestamp::now());
        let series = (post.count > 1).then(|| EventSeries {
            count: i32::try_from(post.count).unwrap_or(i32::MAX),
            last_observed_time: now.clone(),
        });
        let controller = reporting_controller(post.regarding.target.kind);
        Event {
            metadata: self.metadata(
                &post.regarding.target.key.namespace,
                &post.regarding.target.key.name,
                post.id,
            ),
            event_time: Some(now),
            reporting_controller: Some(controller.to_owned()),
            reporting_instance: Some(self.instance(controller)),
            action: Some(post.action.as_str().to_owned()),
            reason: Some(post.reason.to_owned()),
            type_: Some(post.severity.as_str().to_owned()),
            note: Some(post.note.clone()),
            regarding: Some(reference(&post.regarding)),
            related: post.related.as_ref().map(reference),
            series,
            ..Event::default()
        }
    }

    /// CLI-4: name of this process in events of `controller`.
    fn instance(&self, controller: &str) -> String {
        format!("{controller}-{}", self.host)
            .chars()
            .take(128)
            .collect()
    }

    fn metadata(&self, namespace: &str, name: &str, id: u64) -> ObjectMeta {
        let name: String = name.chars().take(200).collect();
        ObjectMeta {
            namespace: Some(namespace.to_owned()),
            name: Some(format!("{name}.{}{id:08x}", self.nonce)),
            ..ObjectMeta::default()
        }
    }

    /// LE-3.
    pub async fn tell_of_lease(&self, lease: &ObjectReference, note: &str) {
        let namespace = lease.namespace.clone().unwrap_or_default();
        let id: String = identity::new_uuid().chars().take(8).collect();
        let id = u64::from_str_radix(&id, 16).unwrap_or_default();
        let event = Event {
            metadata: self.metadata(&namespace, lease.name.as_deref().unwrap_or_default(), id),
            event_time: Some(MicroTime(Timestamp::now())),
            reporting_controller: Some(REPORTING_CONTROLLER.to_owned()),
            reporting_instance: Some(self.instance(REPORTING_CONTROLLER)),
            action: Some("LeaderElection".to_owned()),
            reason: Some("LeaderElection".to_owned()),
            type_: Some("Normal".to_owned()),
            note: Some(note.to_owned()),
            regarding: Some(lease.clone()),
            ..Event::default()
        };
        let api: Api<Event> = Api::namespaced(self.client.clone(), &namespace);
        if let Ok(Err(error)) = timeout(POST_LIMIT, self.create(&api, &event)).await {
            tracing::warn!(%error, "event on the Lease not posted");
        }
    }
}

/// CLI-4: the controller that events about an object of this kind come from.
fn reporting_controller(kind: Kind) -> &'static str {
    match kind {
        Kind::DisaggregatedSet | Kind::RoleScaler => DS_REPORTING_CONTROLLER,
        Kind::LeaderWorkerSet
        | Kind::StatefulSet
        | Kind::Deployment
        | Kind::ControllerRevision
        | Kind::Service
        | Kind::Pod
        | Kind::Workload
        | Kind::PodGroup => REPORTING_CONTROLLER,
    }
}

fn reference(of: &Reference) -> ObjectReference {
    let key = &of.target.key;
    ObjectReference {
        api_version: Some(of.target.kind.api_version().to_owned()),
        kind: Some(of.target.kind.name().to_owned()),
        namespace: Some(key.namespace.to_string()),
        name: Some(key.name.to_string()),
        uid: Some(of.uid.to_string()).filter(|uid| !uid.is_empty()),
        ..ObjectReference::default()
    }
}

#[cfg(test)]
mod tests {
    use http::{Method, Request, Response};
    use kube::client::Body;
    use lws_core::intent::{Kind, Target};
    use lws_core::model::ObjectKey;
    use lws_core::notice::{Action, Severity};
    use serde_json::Value;
    use tokio::sync::oneshot;
    use tower_test::mock::{self, Handle};

    use super::*;

    fn regarding() -> Reference {
        Reference {
            target: Target {
                kind: Kind::LeaderWorkerSet,
                key: ObjectKey::new("ns", "demo"),
            },
            uid: "u1".into(),
        }
    }

    fn notice(note: &str) -> Notice {
        Notice::normal(regarding(), "GroupsProgressing", Action::Create, note)
    }

    fn post(count: u32) -> Post {
        Post {
            id: 7,
            count,
            regarding: regarding(),
            related: Some(Reference {
                target: Target {
                    kind: Kind::Pod,
                    key: ObjectKey::new("ns", "demo-0"),
                },
                uid: "u2".into(),
            }),
            severity: Severity::Warning,
            reason: "FailedCreate",
            action: Action::Create,
            note: "words".into(),
        }
    }

    type Server = Handle<Request<Body>, Response<Body>>;

    fn poster() -> (Poster, Server) {
        let (service, handle) = mock::pair::<Request<Body>, Response<Body>>();
        (Poster::new(Client::new(service, "default")), handle)
    }

    /// The next request, answered with `code`.
    async fn answer(server: &mut Server, code: u16) -> (Method, String, Value) {
        let (request, respond) = server.next_request().await.expect("a request");
        let (head, body) = request.into_parts();
        let sent: Value =
            serde_json::from_slice(&body.collect_bytes().await.expect("a body")).expect("JSON");
        let answer = if code == 404 {
            json!({"kind": "Status", "code": 404, "reason": "NotFound"})
        } else {
            json!({"metadata": {}})
        };
        respond.send_response(
            Response::builder()
                .status(code)
                .body(Body::from(answer.to_string().into_bytes()))
                .expect("a response"),
        );
        (head.method, head.uri.path().to_owned(), sent)
    }

    fn metrics() -> Arc<Metrics> {
        Arc::new(Metrics::new().expect("every name once"))
    }

    #[tokio::test]
    async fn ops_cli_4_event_as_posted() {
        let (poster, mut server) = poster();
        let post = post(1);
        let (posted, (method, path, sent)) =
            tokio::join!(poster.post(&post), answer(&mut server, 201));
        posted.expect("posted");
        assert_eq!(
            (method, path.as_str()),
            (Method::POST, "/apis/events.k8s.io/v1/namespaces/ns/events")
        );
        for (pointer, value) in [
            ("/reportingController", "leaderworkerset"),
            (
                "/reportingInstance",
                format!("leaderworkerset-{}", identity::host_name()).as_str(),
            ),
            ("/type", "Warning"),
            ("/reason", "FailedCreate"),
            ("/action", "Create"),
            ("/note", "words"),
            ("/regarding/apiVersion", "leaderworkerset.x-k8s.io/v1"),
            ("/regarding/kind", "LeaderWorkerSet"),
            ("/regarding/uid", "u1"),
            ("/related/kind", "Pod"),
            ("/related/name", "demo-0"),
        ] {
            assert_eq!(
                sent.pointer(pointer).and_then(Value::as_str),
                Some(value),
                "{pointer}"
            );
        }
        assert!(
            sent["metadata"]["name"]
                .as_str()
                .expect("a name")
                .starts_with("demo.")
        );
        assert!(sent.get("series").is_none());
    }

    #[tokio::test]
    async fn krs_64_a_series_is_updated_and_created_when_it_is_gone() {
        let (poster, mut server) = poster();
        let post = post(3);
        let (posted, (patched, created)) = tokio::join!(poster.post(&post), async {
            (
                answer(&mut server, 404).await,
                answer(&mut server, 201).await,
            )
        });
        posted.expect("posted");
        assert_eq!(patched.0, Method::PATCH);
        assert_eq!(patched.2["series"]["count"], 3);
        assert_eq!(created.0, Method::POST);
        assert!(
            patched
                .1
                .ends_with(created.2["metadata"]["name"].as_str().expect("a name"))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn krs_65_notices_wait_a_second_and_what_is_left_at_the_end_is_posted() {
        let (poster, mut server) = poster();
        let (notices, queued) = channel(metrics());
        let (close, closed) = oneshot::channel::<()>();
        let running = tokio::spawn(run(queued, poster, Fence::open(), async move {
            let _ = closed.await;
        }));
        let start = Instant::now();
        notices.send(notice("first"));
        answer(&mut server, 201).await;
        assert_eq!(start.elapsed(), HOLD);
        notices.send(notice("second"));
        close.send(()).expect("runs");
        let (_, _, sent) = answer(&mut server, 201).await;
        assert_eq!(sent["note"], "second");
        running.await.expect("ends");
    }

    #[tokio::test(start_paused = true)]
    async fn krs_65_silent_while_not_leading() {
        let (poster, mut server) = poster();
        let (notices, queued) = channel(metrics());
        let running = tokio::spawn(run(queued, poster, Fence::shut(), std::future::pending()));
        notices.send(notice("first"));
        assert!(
            timeout(Duration::from_secs(60), server.next_request())
                .await
                .is_err()
        );
        running.abort();
    }

    #[test]
    fn krs_65_a_full_queue_makes_nobody_wait() {
        let (notices, mut queued) = channel(metrics());
        (0..QUEUE + 10).for_each(|_| notices.send(notice("x")));
        assert_eq!(std::iter::from_fn(|| queued.try_recv().ok()).count(), QUEUE);
    }
}
