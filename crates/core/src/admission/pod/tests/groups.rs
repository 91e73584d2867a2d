use serde_json::{Value, json};

use super::{Pod, mutate};
use crate::admission::Environment;
use crate::admission::pod::{Denial, Request};
use crate::identity::{group_key, subgroup_key};

#[test]
fn pod_pa_1_adm_pw_1_other_pods_stay_as_they_are() {
    let pod = json!({"metadata": {"name": "x"}, "spec": {"containers": [{"name": "c"}]}});
    let request = Request {
        pod: &pod,
        namespace: "default",
        random: 0,
    };
    assert_eq!(mutate(&request, &Environment::default()), Ok(None));
}

#[test]
fn pod_pa_2_c07_size_annotation_is_needed() {
    let missing = Pod::leader("demo-0", 2)
        .without_annotation("size")
        .admit()
        .unwrap_err();
    assert!(
        missing
            .to_string()
            .contains("annotation leaderworkerset.sigs.k8s.io/size is missing"),
        "{missing}"
    );
    let wrong = Pod::worker("demo-0-1", 2)
        .annotation("size", "two")
        .admit()
        .unwrap_err();
    assert!(wrong.to_string().contains("size"), "{wrong}");
}

#[test]
fn pod_pa_3_ordinal_leader_gets_index_and_key() {
    let pod = Pod::leader("my-lws-0", 2)
        .label("group-index", "7")
        .label("group-key", "old")
        .admit()
        .unwrap();
    assert_eq!(pod.label("group-index"), "0");
    assert_eq!(
        pod.label("group-key"),
        "85c75a5bcf357a993c958ca839ff3faf70ec6b0b"
    );
    assert_eq!(pod.label("subgroup-index"), "-");
    assert!(pod.gates().is_empty());
}

#[test]
fn pod_pa_3_leader_name_needs_an_ordinal() {
    for name in ["demo", "demo-x", ""] {
        let denied = Pod::leader("demo-0", 2)
            .with("/metadata/name", name.into())
            .admit()
            .unwrap_err();
        assert!(
            matches!(denied, Denial::NoOrdinal { role: "leader", .. }),
            "{denied}"
        );
    }
}

#[test]
fn pod_pa_3_unique_subdomain() {
    let ordinal = Pod::leader("test-sample-1", 2)
        .annotation("subdomainPolicy", "UniquePerReplica")
        .admit()
        .unwrap();
    assert_eq!(ordinal.text("/spec/subdomain"), "test-sample-1");
    let hash = Pod::hash_leader(2)
        .annotation("subdomainPolicy", "UniquePerReplica")
        .admit()
        .unwrap();
    assert_eq!(hash.text("/spec/subdomain"), hash.text("/spec/hostname"));
    let shared = Pod::leader("test-sample-1", 2).admit().unwrap();
    assert_eq!(shared.text("/spec/subdomain"), "demo");
}

#[test]
fn pod_gk_3_gate_1_net_3_hash_leader_gets_a_new_key_a_host_name_and_the_gate() {
    let gate = "leaderworkerset.sigs.k8s.io/group-replacement";
    let pod = Pod::hash_leader(1)
        .with("/spec/schedulingGates", json!([{"name": "theirs"}]))
        .admit()
        .unwrap();
    let key = pod.label("group-key").to_owned();
    assert_eq!(key.len(), 40);
    assert_eq!(pod.label("group-index"), key);
    assert_eq!(pod.text("/spec/hostname"), format!("demo-{}", &key[..8]));
    assert_eq!(pod.gates(), ["theirs", gate]);
    assert_eq!(
        pod.annotation("controller.kubernetes.io/pod-deletion-cost"),
        "-100"
    );

    let own = Pod::hash_leader(2)
        .with("/spec/hostname", "mine".into())
        .with("/spec/schedulingGates", json!([{"name": gate}]))
        .annotation("controller.kubernetes.io/pod-deletion-cost", "7")
        .admit()
        .unwrap();
    assert_eq!(own.text("/spec/hostname"), "mine");
    assert_eq!(own.gates(), [gate]);
    assert_eq!(
        own.annotation("controller.kubernetes.io/pod-deletion-cost"),
        "7"
    );
}

#[test]
fn pod_pa_4_worker_gets_its_index() {
    let before = Pod::worker("test-1-1", 2).label("worker-index", "9");
    let mut expected = before.value["metadata"]["labels"]
        .as_object()
        .unwrap()
        .clone();
    expected.insert(
        "leaderworkerset.sigs.k8s.io/worker-index".to_owned(),
        "1".into(),
    );
    assert_eq!(before.admit().unwrap().labels(), expected);

    let denied = Pod::worker("invalidname", 2).admit().unwrap_err();
    assert!(
        matches!(denied, Denial::NoOrdinal { role: "worker", .. }),
        "{denied}"
    );
}

/// C08: (size, subgroup size, type, leader, workers).
#[test]
fn pod_sg_1_sg_2_lws_api_10_c08_subgroup_indexes() {
    for (size, subgroup_size, kind, leader, workers) in [
        (4, "2", "LeaderWorker", "0", vec!["0", "1", "1"]),
        (5, "2", "LeaderWorker", "0", vec!["0", "0", "1", "1"]),
        (4, "3", "LeaderWorker", "0", vec!["0", "0", "0"]),
        (3, "3", "LeaderWorker", "0", vec!["0", "0"]),
        (3, "1", "LeaderWorker", "0", vec!["1", "2"]),
        (5, "2", "LeaderExcluded", "-", vec!["0", "0", "1", "1"]),
        (5, "4", "LeaderExcluded", "-", vec!["0", "0", "0", "0"]),
    ] {
        let in_subgroup = |pod: Pod| {
            let pod = pod
                .annotation("subgroup-size", subgroup_size)
                .annotation("subgroup-policy-type", kind);
            let pod = pod.admit().unwrap();
            (
                pod.label("subgroup-index").to_owned(),
                pod.label("subgroup-key").to_owned(),
            )
        };
        let case = format!("{size}/{subgroup_size}/{kind}");
        let (index, key) = in_subgroup(Pod::leader("demo-0", size));
        assert_eq!(index, leader, "{case}");
        assert_eq!(
            key,
            if leader == "-" {
                "-".to_owned()
            } else {
                subgroup_key("demo-0", "0")
            },
            "{case}"
        );
        for (worker, expected) in (1..).zip(workers) {
            let (index, key) = in_subgroup(Pod::worker(&format!("demo-0-{worker}"), size));
            assert_eq!(index, expected, "{case} worker {worker}");
            assert_eq!(
                key,
                subgroup_key("demo-0", expected),
                "{case} worker {worker}"
            );
        }
    }
}

#[test]
fn pod_pa_3_pa_4_integration_cases() {
    let leader = Pod::leader("test-1", 5)
        .annotation("subgroup-size", "4")
        .admit()
        .unwrap();
    assert_eq!(leader.label("subgroup-index"), "0");
    assert_eq!(leader.label("subgroup-key"), subgroup_key("test-1", "0"));
    assert_eq!(leader.label("group-key"), group_key("default", "test-1"));
    for (name, size, subgroup_size) in [("test-1-3", 4, "2"), ("test-1-4", 5, "2")] {
        let worker = Pod::worker(name, size)
            .annotation("subgroup-size", subgroup_size)
            .admit()
            .unwrap();
        assert_eq!(worker.label("subgroup-index"), "1", "{name}");
    }
}

#[test]
fn pod_sg_3_a_subgroup_on_the_pod_stays() {
    let leader = Pod::leader("demo-0", 4)
        .label("subgroup-index", "3")
        .annotation("subgroup-size", "2")
        .admit()
        .unwrap();
    assert_eq!(
        (leader.label("subgroup-index"), leader.label("subgroup-key")),
        ("3", "-")
    );
    let worker = Pod::worker("demo-0-1", 4)
        .label("subgroup-index", "")
        .annotation("subgroup-size", "2")
        .admit()
        .unwrap();
    assert_eq!(worker.label("subgroup-index"), "0");
}

#[test]
fn pod_sg_1_subgroup_size_must_be_usable() {
    for size in ["two", "0", ""] {
        let denied = Pod::worker("demo-0-1", 4)
            .annotation("subgroup-size", size)
            .admit()
            .unwrap_err();
        assert!(
            matches!(denied, Denial::NotANumber { .. }),
            "{size}: {denied}"
        );
    }
}

#[test]
fn pod_sg_4_hash_subgroups_follow_the_group_key() {
    let leader = Pod::hash_leader(4)
        .annotation("subgroup-size", "2")
        .admit()
        .unwrap();
    assert_eq!(
        leader.label("subgroup-key"),
        subgroup_key(leader.label("group-key"), "0")
    );
    let worker = Pod::worker("demo-c6da7bcc-2", 4)
        .label("group-key", "c6da7bccdf722954dd7b0470ffb1e81e301267bc")
        .annotation("group-identity", "Hash")
        .annotation("leader-address", "demo-c6da7bcc.demo.default")
        .annotation("subgroup-size", "2")
        .admit()
        .unwrap();
    assert_eq!(
        worker.label("subgroup-key"),
        "bd596f06c409f076c7d86eeea719086a483cc506"
    );
}

#[test]
fn pod_rst_2_worker_without_leader_name_uses_its_own_parent() {
    let worker = Pod::worker("my-lws-0-1", 4)
        .without_annotation("leader-name")
        .annotation("subgroup-size", "2");
    assert_eq!(
        worker.admit().unwrap().label("subgroup-key"),
        "5deee8c4a097c2901d4bc8feeb358a6e7ef32eac"
    );
}

/// What Kueue, routers and monitors select by: `group-index` in digits, leaders without `leader-name`.
#[test]
fn kue_kq_4_kq_5_usr_10_labels_and_annotations_of_leader_and_worker() {
    let name = |key: &str| format!("leaderworkerset.sigs.k8s.io/{key}");
    let key = group_key("default", "demo-1");
    let leader = Pod::leader("demo-1", 2)
        .label("name", "demo")
        .admit()
        .unwrap();
    let labels = json!({name("name"): "demo", name("worker-index"): "0", name("group-index"): "1", name("group-key"): key});
    assert_eq!(Value::Object(leader.labels()), labels);
    assert_eq!(leader.annotation("leader-name"), "-");
    for index in ["1", "2"] {
        let worker = Pod::worker(&format!("demo-1-{index}"), 3)
            .label("group-key", &key)
            .admit()
            .unwrap();
        let labels = json!({name("name"): "demo", name("worker-index"): index, name("group-index"): "1", name("group-key"): key});
        assert_eq!(Value::Object(worker.labels()), labels);
        assert_eq!(worker.annotation("leader-name"), "demo-1");
    }
}
