use super::*;
use crate::intent::{Kind, Why};
use crate::model::ObjectKey;
use crate::notice::{Action, Reference};
use crate::ownership::Expected;

fn target(name: &str) -> Target {
    Target {
        kind: Kind::StatefulSet,
        key: ObjectKey::new("ns", name),
    }
}

fn notice(note: &str) -> Notice {
    let regarding = Reference {
        target: target("x"),
        uid: "set".into(),
    };
    Notice::normal(regarding, "GroupsProgressing", Action::Create, note)
}

fn create(name: &str, claim: bool) -> Step {
    let by = Expected {
        kind: "LeaderWorkerSet",
        name: "x".into(),
        uid: "set".into(),
    };
    let accept = Accept::Controlled {
        by,
        foreign: "it is foreign".into(),
    };
    Step::new(
        Why::LeaderSetMissing,
        Intent::Create {
            target: target(name),
            body: Arc::new(json!({"data": 1})),
            accept,
            claim,
        },
    )
    .then(notice("created"))
    .or_else(notice("failed"))
}

fn delete() -> Step {
    let intent = Intent::Delete {
        target: target("x"),
        uid: "u".into(),
        resource_version: None,
        propagation: Propagation::Foreground,
    };
    Step::new(Why::GroupFailed, intent).then(notice("deleted"))
}

fn object(owner: &str) -> Value {
    json!({"metadata": {"name": "x", "namespace": "ns", "uid": "u", "resourceVersion": "7", "ownerReferences":
        [{"apiVersion": "v", "kind": "LeaderWorkerSet", "name": "other", "uid": owner, "controller": true}]}})
}

fn failure(class: Class) -> Failure {
    Failure {
        class,
        message: "words".into(),
        retry_after: None,
    }
}

fn texts(outcome: &Outcome) -> Vec<String> {
    outcome.notices.iter().map(|n| n.note.text()).collect()
}

#[test]
fn create_posts_its_event_and_notes_the_version() {
    let mut run = Run::new(vec![create("x", false)]);
    assert!(matches!(run.next_request(), Some(Request::Create { .. })));
    run.answer(Ok(object("set")));
    assert_eq!(run.next_request(), None);
    let outcome = run.finish();
    assert!(outcome.is_complete());
    assert_eq!(texts(&outcome), ["created"]);
    assert_eq!(
        outcome.written,
        [Written {
            target: target("x"),
            uid: "u".into(),
            seen_as: SeenAs::Version("7".into())
        }]
    );
}

#[test]
fn krs_20_exists_and_ours_goes_on_without_event() {
    let mut run = Run::new(vec![create("x", false), create("y", false)]);
    run.next_request();
    run.answer(Err(failure(Class::Exists)));
    assert_eq!(
        run.next_request(),
        Some(Request::Read {
            target: target("x")
        })
    );
    run.answer(Ok(object("set")));
    assert!(
        matches!(run.next_request(), Some(Request::Create { target, .. }) if &*target.key.name == "y")
    );
    assert_eq!(texts(run.outcome()), Vec::<String>::new());
}

#[test]
fn ord_135_exists_and_foreign_tells_the_reason() {
    let mut run = Run::new(vec![
        create("x", false).if_failed(IfFailed::Continue),
        create("y", false),
    ]);
    run.next_request();
    run.answer(Err(failure(Class::Exists)));
    run.next_request();
    run.answer(Ok(object("somebody")));
    assert_eq!(texts(run.outcome()), ["failed: it is foreign"]);
    assert_eq!(
        run.outcome().failure.as_ref().map(|f| f.class),
        Some(Class::Exists)
    );
    assert!(run.next_request().is_some(), "the rest goes on");
}

#[test]
fn ord_74_exists_and_serves_as_well() {
    let selector = BTreeMap::from([("app".to_owned(), "x".to_owned())]);
    let judged = |spec: Value, owner: Value| {
        let mut step = create("x", false);
        let Intent::Create { accept, .. } = &mut step.intent else {
            panic!("a create")
        };
        let Accept::Controlled { by, foreign } = accept.clone() else {
            panic!("controlled")
        };
        *accept = Accept::Serving {
            by,
            selector: selector.clone(),
            foreign,
        };
        let mut run = Run::new(vec![step]);
        run.next_request();
        run.answer(Err(failure(Class::Exists)));
        run.next_request();
        run.answer(Ok(json!({"metadata": {"name": "x", "resourceVersion": "7", "ownerReferences": owner}, "spec": spec})));
        run.finish()
    };
    let same = json!({"clusterIP": "None", "selector": {"app": "x"}});
    let outcome = judged(same.clone(), json!([]));
    assert!(outcome.is_complete() && outcome.written.is_empty() && outcome.notices.is_empty());
    let somebody =
        json!([{"apiVersion": "v", "kind": "K", "name": "n", "uid": "u", "controller": true}]);
    for (spec, owner) in [
        (same, somebody),
        (
            json!({"clusterIP": "10.0.0.1", "selector": {"app": "x"}}),
            json!([]),
        ),
        (json!({"clusterIP": "None", "selector": {}}), json!([])),
    ] {
        assert_eq!(texts(&judged(spec, owner)), ["failed: it is foreign"]);
    }
}

#[test]
fn ord_135_exists_and_leftover_waits_without_event() {
    let mut run = Run::new(vec![create("x", false)]);
    run.next_request();
    run.answer(Err(failure(Class::Exists)));
    run.next_request();
    let mut leftover = object("somebody");
    leftover["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    run.answer(Ok(leftover));
    let outcome = run.finish();
    assert!(outcome.conflict && outcome.stopped);
    assert_eq!(outcome.notices, []);
}

#[test]
fn ord_23_if_failed_decides_about_the_rest() {
    for (what, next_is_sent, stopped) in [
        (IfFailed::Stop, false, true),
        (IfFailed::Report, false, false),
        (IfFailed::Continue, true, false),
    ] {
        let mut run = Run::new(vec![create("x", false).if_failed(what), create("y", false)]);
        run.next_request();
        run.answer(Err(failure(Class::Rejected)));
        assert_eq!(run.next_request().is_some(), next_is_sent, "{what:?}");
        assert_eq!(run.outcome().stopped, stopped, "{what:?}");
        assert_eq!(texts(run.outcome()), ["failed: words"]);
    }
}

#[test]
fn fail_44_the_error_says_what_the_write_was_for() {
    for (step, message) in [
        (create("x", false), "words"),
        (
            create("x", false).doing("counting".into()),
            "counting: words",
        ),
    ] {
        let mut run = Run::new(vec![step]);
        run.next_request();
        run.answer(Err(failure(Class::Rejected)));
        let outcome = run.finish();
        assert_eq!(texts(&outcome), ["failed: words"]);
        assert_eq!(
            outcome.failure.map(|failure| failure.message),
            Some(message.into())
        );
    }
}

#[test]
fn krs_58_delete_of_what_is_gone_is_done_without_event() {
    for class in [Class::Gone, Class::Conflict] {
        let mut run = Run::new(vec![delete()]);
        run.next_request();
        run.answer(Err(failure(class)));
        let outcome = run.finish();
        assert!(outcome.is_complete());
        assert_eq!(outcome.notices, []);
        assert_eq!(outcome.written.len(), 1);
    }
}

#[test]
fn krs_20_conflict_stops_without_error_and_waits_for_a_newer_version() {
    let intent = Intent::Patch {
        target: target("x"),
        uid: "u".into(),
        resource_version: Some("5".into()),
        subresource: Subresource::None,
        body: json!({"metadata": {"annotations": {"a": "b"}}}),
    };
    let mut run = Run::new(vec![Step::new(Why::GroupFailed, intent), delete()]);
    let Some(Request::Patch { body, .. }) = run.next_request() else {
        panic!("a patch")
    };
    assert_eq!(
        body,
        json!({"metadata": {"annotations": {"a": "b"}, "uid": "u", "resourceVersion": "5"}})
    );
    run.answer(Err(failure(Class::Conflict)));
    assert_eq!(run.next_request(), None, "the leader is not deleted");
    let outcome = run.finish();
    assert!(outcome.conflict && outcome.failure.is_none());
    assert_eq!(
        outcome.written.first().map(|w| w.seen_as.clone()),
        Some(SeenAs::NotVersion("5".into()))
    );
}

#[test]
fn krs_54_fields_of_a_post_are_claimed_once() {
    let mut created = object("set");
    created["metadata"]["managedFields"] = json!([
        {"manager": "lws", "operation": "Update", "apiVersion": "apps/v1"},
        {"manager": "kube-controller-manager", "operation": "Update", "subresource": "status"}]);
    let mut run = Run::new(vec![create("x", true)]);
    run.next_request();
    run.answer(Ok(created));
    let Some(Request::Patch { body, .. }) = run.next_request() else {
        panic!("a claim")
    };
    assert_eq!(body["metadata"]["managedFields"][0]["operation"], "Apply");
    assert_eq!(body["metadata"]["managedFields"][1]["operation"], "Update");
    assert_eq!(body["metadata"]["resourceVersion"], "7");
    run.answer(Err(failure(Class::Conflict)));
    assert_eq!(run.next_request(), None);
    assert!(
        run.finish().is_complete(),
        "the next apply makes up for a lost claim"
    );
}

#[test]
fn krs_54_apply_after_a_crash_claims_first() {
    let intent = Intent::Apply {
        target: target("x"),
        uid: "u".into(),
        resource_version: None,
        body: Arc::new(json!({"kind": "StatefulSet"})),
        claim: true,
    };
    let mut run = Run::new(vec![Step::new(Why::LeaderSetDiffers, intent)]);
    assert!(matches!(run.next_request(), Some(Request::Read { .. })));
    run.answer(Ok(object("set")));
    assert!(matches!(run.next_request(), Some(Request::Patch { .. })));
    run.answer(Ok(object("set")));
    assert!(
        matches!(run.next_request(), Some(Request::Apply { body, .. }) if body["metadata"]["uid"] == "u")
    );
    run.answer(Ok(object("set")));
    assert!(run.next_request().is_none());
    assert!(run.finish().is_complete());
}
