use super::*;
use crate::build::tests::{demo, lws};
use serde_json::json;

fn changed(patch: Value) -> Lws {
    let mut set = demo();
    json_patch::merge(&mut set, &patch);
    lws(set)
}

fn stored(key: &str, number: i64, owner: Option<&str>, data: &Value) -> Arc<Revision> {
    let owners = owner.map(|uid| json!([{"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "demo", "uid": uid, "controller": true}]));
    let object = json!({
        "metadata": {"name": format!("demo-{key}-{number}"), "namespace": "ns", "uid": format!("uid-{key}-{number}"), "ownerReferences": owners,
            "labels": {"leaderworkerset.sigs.k8s.io/name": "demo", "leaderworkerset.sigs.k8s.io/template-revision-hash": key}},
        "revision": number,
        "data": data,
    });
    let object: k8s_openapi::api::apps::v1::ControllerRevision =
        serde_json::from_value(object).unwrap();
    Arc::new(object.into())
}

fn ours(key: &str, number: i64, spec: &LeaderWorkerSetSpec) -> Arc<Revision> {
    stored(key, number, Some("demo-uid"), &revision_data(spec))
}

/// With leaders that are made of the live spec.
fn current(live: &Lws, revisions: &[Arc<Revision>], named: Option<&str>) -> Current {
    super::current(live, revisions, named, || true)
}

impl Current {
    fn created(&self) -> Option<&NewRevision> {
        match &self.object {
            Stored::New(new) => Some(new),
            Stored::Existing(_) => None,
        }
    }
}

fn hash_of(lws: &Lws) -> String {
    revision_hash(&canonical(&revision_data(&lws.spec)))
}

fn is_changed(stored_data: &Value, live: &Lws) -> bool {
    current(
        live,
        &[stored("key", 1, Some("demo-uid"), stored_data)],
        Some("key"),
    )
    .template_changed
}

#[test]
fn ord_34_what_an_orphaned_stateful_set_leaves_is_no_revision_of_a_set() {
    let live = lws(demo());
    let mine = ours("key", 1, &live.spec);
    let left = stored("key", 2, None, &json!({"spec": {"template": {"spec": {}}}}));
    let found = current(&live, &[mine.clone(), left], Some("key"));
    assert!(!found.template_changed);
    assert_eq!(found.object, Stored::Existing(mine));
}

#[test]
fn ord_36_revision_table() {
    let live = lws(demo());
    let data = revision_data(&live.spec);
    assert!(
        !current(
            &live,
            &[ours(
                "other",
                1,
                &changed(json!({"spec": {"leaderWorkerTemplate": {"size": 9}}})).spec
            )],
            None
        )
        .template_changed
    );
    assert!(!is_changed(&data, &live));

    let mut with_timestamp = data.clone();
    with_timestamp["spec"]["leaderWorkerTemplate"]["workerTemplate"]["metadata"]["creationTimestamp"] =
        Value::Null;
    with_timestamp["spec"]["leaderWorkerTemplate"]["leaderTemplate"]["metadata"] =
        json!({"creationTimestamp": null});
    assert!(!is_changed(&with_timestamp, &live));

    let mut other_name = data.clone();
    other_name["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"][0]["name"] =
        json!("b");
    assert!(is_changed(&other_name, &live));

    let shared = changed(json!({"spec": {"networkConfig": {"subdomainPolicy": "Shared"}}}));
    assert!(!is_changed(&data, &shared));
    let unique =
        changed(json!({"spec": {"networkConfig": {"subdomainPolicy": "UniquePerReplica"}}}));
    assert!(is_changed(&data, &unique));

    let limits = json!({"maxGroupRestarts": 3, "restartBackoff": {"baseSeconds": 1}});
    let limited = changed(json!({"spec": {"leaderWorkerTemplate": limits}}));
    assert!(!is_changed(&data, &limited));
    assert_eq!(hash_of(&limited), hash_of(&live));

    let mut with_backoff = data.clone();
    with_backoff["spec"]["leaderWorkerTemplate"]["restartBackoff"] = json!({"baseSeconds": 99});
    assert!(!is_changed(&with_backoff, &live));
}

#[test]
fn ord_37_revisions_of_the_reference_implementation_mean_the_live_spec() {
    let golden: Vec<Value> = serde_json::from_str(include_str!("golden.json")).unwrap();
    assert_eq!(golden.len(), 4);
    for item in golden {
        let live =
            lws(json!({"metadata": {"name": "demo", "uid": "demo-uid"}, "spec": item["spec"]}));
        assert!(!is_changed(&item["revision"], &live), "{}", item["name"]);
        let mut other = item["spec"].clone();
        other["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"][0]["image"] =
            json!("nginx:1.28");
        let other = lws(json!({"metadata": {"name": "demo", "uid": "demo-uid"}, "spec": other}));
        assert!(is_changed(&item["revision"], &other), "{}", item["name"]);
    }
}

#[test]
fn ord_37_what_cannot_be_restored_counts_as_changed() {
    let live = lws(demo());
    for data in [
        json!(null),
        json!("x"),
        json!({"spec": {}}),
        json!({"spec": {"leaderWorkerTemplate": 7}}),
        json!({"spec": {"leaderWorkerTemplate": {"size": "x"}}}),
    ] {
        assert!(is_changed(&data, &live), "{data}");
    }
}

#[test]
fn ord_38_everything_outside_of_the_revision_stays_live() {
    let old = changed(json!({"spec": {
        "replicas": 7,
        "networkConfig": {"subdomainPolicy": "UniquePerReplica"},
        "leaderWorkerTemplate": {"size": 2, "leaderTemplate": null},
    }}));
    let mut data = revision_data(&old.spec);
    data["spec"]["leaderWorkerTemplate"]["maxGroupRestarts"] = json!(1);
    let live = changed(
        json!({"spec": {"startupPolicy": "LeaderReady", "leaderWorkerTemplate": {"maxGroupRestarts": 5, "size": 4}}}),
    );
    let restored = restore(&live, &stored("key", 1, Some("demo-uid"), &data)).unwrap();
    assert_eq!(
        (restored.replicas, restored.startup_policy),
        (live.spec.replicas, live.spec.startup_policy)
    );
    assert_eq!(restored.network_config, old.spec.network_config);
    assert_eq!(
        (
            restored.size(),
            restored.leader_worker_template.max_group_restarts
        ),
        (2, Some(5))
    );
    assert_eq!(restored.leader_worker_template.leader_template, None);
}

#[test]
fn ord_38_what_a_revision_does_not_store_stays_live() {
    let live = changed(json!({"spec": {"networkConfig": {"subdomainPolicy": "UniquePerReplica"}}}));
    let mut data = revision_data(&live.spec);
    data["spec"]
        .as_object_mut()
        .unwrap()
        .remove("networkConfig");
    let restored = restore(&live, &stored("key", 1, Some("demo-uid"), &data)).unwrap();
    assert_eq!(restored.network_config, live.spec.network_config);
    let error = restore(&live, &stored("key", 1, Some("demo-uid"), &json!({}))).unwrap_err();
    assert_eq!(error.to_string(), "revision demo-key-1 stores no template");
}

#[test]
fn ord_33_new_set_gets_revision_1() {
    let live = lws(demo());
    let current = current(&live, &[], None);
    let created = current.created().unwrap().clone();
    assert_eq!(current.key, hash_of(&live));
    assert_eq!(
        (created.name, created.number, created.occasion),
        (format!("demo-{}-1", current.key), 1, Occasion::NewSet)
    );
    assert!(!current.template_changed);
}

#[test]
fn ord_33_missing_revision_is_made_under_the_key_that_is_there() {
    let live = lws(demo());
    let current = current(&live, &[ours("other", 4, &live.spec)], Some("gone"));
    let created = current.created().unwrap().clone();
    assert_eq!(
        (current.key.as_str(), current.template_changed),
        ("gone", false)
    );
    assert_eq!(
        (created.name, created.number, created.occasion),
        (format!("demo-{}-5", hash_of(&live)), 5, Occasion::Missing)
    );
}

#[test]
fn ord_33_36_leaders_of_another_template_are_rolled_when_their_revision_is_not_seen() {
    let live = lws(demo());
    let of = |key| super::current(&live, &[], Some(key), || false);
    let changed = of("unseen");
    assert_eq!(
        (changed.key.clone(), changed.template_changed),
        (hash_of(&live), true)
    );
    assert_eq!(changed.created().unwrap().occasion, Occasion::Changed);
    let key = hash_of(&live);
    let same = of(&key);
    assert_eq!(
        (same.template_changed, same.created().unwrap().occasion),
        (false, Occasion::Missing)
    );
}

#[test]
fn ord_33_leader_set_without_key_gets_a_new_one() {
    let live = lws(demo());
    let current = current(&live, &[], Some(""));
    assert_eq!(
        (current.key.clone(), current.template_changed),
        (hash_of(&live), false)
    );
    assert_eq!(current.created().unwrap().occasion, Occasion::NewSet);
}

#[test]
fn ord_34_35_newest_of_a_key_and_none_of_others() {
    let spec = lws(demo()).spec;
    let data = revision_data(&spec);
    let list = [
        ours("a", 1, &spec),
        ours("a", 3, &spec),
        ours("a", 2, &spec),
        stored("b", 9, Some("predecessor"), &data),
        stored("c", 1, None, &data),
    ];
    let set = Uid::from("demo-uid");
    assert_eq!(
        by_key(&list, &set, "a").map(|revision| revision.number),
        Some(3)
    );
    assert_eq!(by_key(&list, &set, "b"), None);
    assert_eq!(
        by_key(&list, &set, "c").map(|revision| revision.number),
        Some(1)
    );
    assert_eq!(by_key(&list, &set, ""), None);
    let [first, second, third, ..] = &list;
    let names = [first, second, third].map(|revision| revision.meta.key.name.as_ref());
    let remark = format!("several revisions have key a: {}", names.join(", "));
    assert_eq!(ambiguous_keys(&list, &set), [remark]);
    assert_eq!(eligible(&list, &set).count(), 4);
}

#[test]
fn ord_36_changed_template_gets_the_next_number() {
    let old = changed(json!({"spec": {"leaderWorkerTemplate": {"size": 2}}}));
    let live = lws(demo());
    let current = current(&live, &[ours("old", 7, &old.spec)], Some("old"));
    let created = current.created().unwrap().clone();
    assert!(current.template_changed);
    assert_eq!(
        (current.key.clone(), created.number, created.occasion),
        (hash_of(&live), 8, Occasion::Changed)
    );
    assert_eq!(created.data, revision_data(&live.spec));
}

#[test]
fn ord_39_rolling_back_finds_the_earlier_revision() {
    let first = lws(demo());
    let second = changed(json!({"spec": {"leaderWorkerTemplate": {"size": 2}}}));
    let list = [
        ours(&hash_of(&first), 1, &first.spec),
        ours("second", 2, &second.spec),
    ];
    let back = current(&first, &list, Some("second"));
    assert_eq!(
        (back.key, back.template_changed, back.object),
        (hash_of(&first), true, Stored::Existing(list[0].clone()))
    );
}

#[test]
fn ord_39_only_own_revisions_with_the_same_bytes_are_used_again() {
    let live = lws(demo());
    let key = hash_of(&live);
    let other =
        revision_data(&changed(json!({"spec": {"leaderWorkerTemplate": {"size": 2}}})).spec);
    for unusable in [
        stored(&key, 1, None, &revision_data(&live.spec)),
        stored(&key, 1, Some("demo-uid"), &other),
    ] {
        let current = current(&live, &[unusable], None);
        assert_eq!(current.created().map(|new| new.number), Some(2));
    }
}

#[test]
fn ord_32_numbers_do_not_overflow() {
    let live = lws(demo());
    let current = current(&live, &[ours("x", i64::MAX, &live.spec)], None);
    assert_eq!(current.created().map(|new| new.number), Some(i64::MAX));
}
