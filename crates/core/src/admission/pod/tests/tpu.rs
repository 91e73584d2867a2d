use serde_json::{Value, json};

use super::{Admitted, Pod};
use crate::admission::pod::Denial;

const ALL: [&str; 5] = [
    "TPU_WORKER_HOSTNAMES",
    "TPU_WORKER_ID",
    "TPU_NAME",
    "TPU_PROCESS_ADDRESSES",
    "TPU_PROCESS_PORT",
];

fn tpu_container(env: Value) -> Value {
    json!({"name": "c", "resources": {"limits": {"google.com/tpu": "4"}}, "env": env})
}

fn tpu(pod: Pod) -> Pod {
    pod.containers(json!([tpu_container(json!([]))]))
}

fn hosts(base: &str, domain: &str, members: impl Iterator<Item = u32>) -> Vec<String> {
    let host = |member| {
        if member == 0 {
            format!("{base}.{domain}")
        } else {
            format!("{base}-{member}.{domain}")
        }
    };
    members.map(host).collect()
}

fn assert_slice(pod: &Admitted, hosts: &[String], id: &str, name: &str, port: &str) {
    let addresses: Vec<_> = hosts.iter().map(|host| format!("{host}:{port}")).collect();
    let expected = [
        hosts.join(","),
        id.to_owned(),
        name.to_owned(),
        addresses.join(","),
        port.to_owned(),
    ];
    assert_eq!(ALL.map(|name| pod.variable("containers/0", name)), expected);
}

#[test]
fn pod_tpu_7_tpu_8_tpu_9_groups_without_subgroups() {
    let leader = |name, size| tpu(Pod::leader(name, size)).subdomain("default");
    let worker = |name, size| tpu(Pod::worker(name, size)).subdomain("default");
    let lr = |pod: Pod| pod.annotation("leader-requests-tpus", "true");
    let (zero, one) = ("test-sample-0", "test-sample-1");
    for (pod, base, members, id) in [
        (leader(zero, 2), zero, 0..=1, "0"),
        (lr(leader(zero, 2)), zero, 0..=1, "0"),
        (lr(worker("test-sample-0-1", 2)), zero, 0..=1, "1"),
        (worker("test-sample-0-1", 2), zero, 1..=1, "0"),
        (worker("test-sample-1-3", 5), one, 1..=4, "2"),
    ] {
        assert_slice(
            &pod.admit().unwrap(),
            &hosts(base, "default", members),
            id,
            base,
            "8476",
        );
    }
    let unique = tpu(Pod::leader(one, 5))
        .annotation("subdomainPolicy", "UniquePerReplica")
        .admit()
        .unwrap();
    assert_slice(&unique, &hosts(one, one, 0..=4), "0", one, "8476");
}

#[test]
fn pod_tpu_5_tpu_9_two_containers() {
    let port = |port: &str| json!([{"name": "TPU_PROCESS_PORT", "value": port}]);
    for (first, second, ports) in [
        (json!([]), json!([]), ["8476", "8477"]),
        (port("8478"), port("8479"), ["8478", "8479"]),
    ] {
        let user_ports = first != json!([]);
        let pod = Pod::leader("test-sample-0", 2)
            .subdomain("default")
            .annotation("leader-requests-tpus", "true");
        let pod = pod
            .containers(json!([tpu_container(first), tpu_container(second)]))
            .admit()
            .unwrap();
        let (a, b) = ("test-sample-0.default", "test-sample-0-1.default");
        for (container, id) in [("containers/0", "0"), ("containers/1", "1")] {
            assert_eq!(
                pod.variable(container, "TPU_WORKER_HOSTNAMES"),
                format!("{a},{a},{b},{b}")
            );
            assert_eq!(pod.variable(container, "TPU_WORKER_ID"), id);
            let [p, q] = ports;
            assert_eq!(
                pod.variable(container, "TPU_PROCESS_ADDRESSES"),
                format!("{a}:{p},{a}:{q},{b}:{p},{b}:{q}")
            );
            let own: Vec<_> = pod
                .env(container)
                .into_iter()
                .filter(|entry| entry.starts_with("TPU_PROCESS_PORT="))
                .collect();
            assert_eq!(own.len(), 1);
            assert_eq!(
                user_ports,
                pod.env(container)[3].starts_with("TPU_PROCESS_PORT"),
                "{container}"
            );
        }
        assert_eq!(pod.variable("containers/1", "TPU_PROCESS_PORT"), ports[1]);
    }
}

#[test]
fn pod_pa_6_tpu_1_init_containers_count_after_containers() {
    let pod = Pod::leader("sample-0", 1)
        .subdomain("default")
        .with("/spec/initContainers", json!([tpu_container(json!([]))]));
    let pod = pod.admit().unwrap();
    let values = ALL.map(|name| pod.variable("initContainers/0", name));
    assert_eq!(
        values,
        [
            "sample-0.default",
            "0",
            "sample-0",
            "sample-0.default:8476",
            "8476"
        ]
    );
    assert_eq!(ALL.map(|name| pod.variable("containers/0", name)), ["-"; 5]);
}

#[test]
fn pod_tpu_1_requests_and_zero() {
    let tpu = |value: Value| json!({"google.com/tpu": value});
    for (resources, expected) in [
        (json!({"limits": tpu("4".into())}), true),
        (json!({"limits": tpu(4.into())}), true),
        (json!({"requests": tpu("1".into())}), true),
        (
            json!({"limits": tpu("0".into()), "requests": tpu("1e3".into())}),
            true,
        ),
        (json!({"limits": tpu("0".into())}), false),
        (json!({"limits": tpu("0e3".into())}), false),
        (json!({"limits": tpu(0.into())}), false),
        (json!({"limits": {"nvidia.com/gpu": "1"}}), false),
        (json!({}), false),
    ] {
        let containers = json!([{"name": "c", "resources": resources}]);
        let pod = Pod::leader("demo-0", 2)
            .containers(containers)
            .admit()
            .unwrap();
        let is_named = pod.variable("containers/0", "TPU_NAME") != "-";
        assert_eq!(is_named, expected, "{resources}");
    }
}

#[test]
fn pod_tpu_2_only_true_says_that_the_leader_requests_tpus() {
    for (value, id) in [("true", "1"), ("True", "0"), ("false", "0"), ("", "0")] {
        let pod = tpu(Pod::worker("demo-0-1", 2)).annotation("leader-requests-tpus", value);
        let pod = pod.admit().unwrap();
        assert_eq!(
            pod.variable("containers/0", "TPU_WORKER_ID"),
            id,
            "{value:?}"
        );
    }
}

/// (pod, subgroup size, subgroup index label, type, leader requests TPUs, size, members, id).
#[test]
fn pod_tpu_10_tpu_11_subgroups() {
    let worker = |name: &'static str, size| Pod::worker(name, size);
    for (pod, s, g, excluded, lr, base, members, id) in [
        (
            Pod::leader("test-sample-0", 2),
            "1",
            "0",
            false,
            false,
            "test-sample-0",
            0..=0,
            "0",
        ),
        (
            Pod::leader("test-sample-0", 2),
            "2",
            "0",
            false,
            false,
            "test-sample-0",
            0..=1,
            "0",
        ),
        (
            worker("test-sample-1-3", 5),
            "5",
            "0",
            false,
            true,
            "test-sample-1",
            0..=4,
            "3",
        ),
        (
            worker("test-sample-1-7", 8),
            "4",
            "1",
            false,
            true,
            "test-sample-1",
            4..=7,
            "3",
        ),
        (
            worker("test-sample-1-5", 9),
            "4",
            "1",
            false,
            false,
            "test-sample-1",
            5..=8,
            "0",
        ),
        (
            worker("test-sample-1-7", 11),
            "5",
            "1",
            false,
            false,
            "test-sample-1",
            6..=10,
            "1",
        ),
        (
            worker("test-sample-0-2", 5),
            "2",
            "0",
            true,
            false,
            "test-sample-0",
            1..=2,
            "1",
        ),
        (
            worker("prefill-0-1", 3),
            "1",
            "1",
            false,
            false,
            "prefill-0",
            1..=1,
            "0",
        ),
        (
            worker("prefill-0-1", 3),
            "1",
            "1",
            false,
            true,
            "prefill-0",
            1..=1,
            "0",
        ),
        (
            worker("prefill-0-2", 3),
            "1",
            "2",
            false,
            false,
            "prefill-0",
            2..=2,
            "0",
        ),
        (
            worker("prefill-0-2", 3),
            "1",
            "2",
            false,
            true,
            "prefill-0",
            2..=2,
            "0",
        ),
    ] {
        let kind = if excluded {
            "LeaderExcluded"
        } else {
            "LeaderWorker"
        };
        let pod = tpu(pod)
            .subdomain("default")
            .annotation("subgroup-size", s)
            .annotation("subgroup-policy-type", kind);
        let pod = if lr {
            pod.annotation("leader-requests-tpus", "true")
        } else {
            pod
        };
        let case = format!("{} s={s} lr={lr}", pod.value["metadata"]["name"]);
        let pod = pod.label("subgroup-index", g).admit().unwrap();
        let expected = hosts(base, "default", members);
        assert_eq!(
            pod.variable("containers/0", "TPU_WORKER_HOSTNAMES"),
            expected.join(","),
            "{case}"
        );
        assert_slice(&pod, &expected, id, base, "8476");
    }
}

#[test]
fn pod_tpu_10_only_the_first_container_and_its_own_port() {
    let port = json!([{"name": "TPU_PROCESS_PORT", "value": "8478"}]);
    let pod = Pod::worker("test-sample-1-5", 9)
        .subdomain("default")
        .annotation("subgroup-size", "4");
    let pod = pod
        .containers(json!([tpu_container(port), tpu_container(json!([]))]))
        .admit()
        .unwrap();
    assert_slice(
        &pod,
        &hosts("test-sample-1", "default", 5..=8),
        "0",
        "test-sample-1",
        "8478",
    );
    assert_eq!(ALL.map(|name| pod.variable("containers/1", name)), ["-"; 5]);
}

#[test]
fn pod_tpu_12_excluded_leader_is_denied() {
    let pod = tpu(Pod::leader("demo-0", 5)).annotation("subgroup-size", "2");
    let denied = pod
        .annotation("subgroup-policy-type", "LeaderExcluded")
        .admit()
        .unwrap_err();
    assert!(
        matches!(denied, Denial::Missing { kind: "label", .. }),
        "{denied}"
    );
}

#[test]
fn pod_tpu_13_extra_leader_repeats_an_id() {
    let in_slice = |pod: Pod| {
        let pod = tpu(pod)
            .annotation("subgroup-size", "2")
            .annotation("leader-requests-tpus", "true")
            .admit()
            .unwrap();
        (
            pod.variable("containers/0", "TPU_WORKER_HOSTNAMES"),
            pod.variable("containers/0", "TPU_WORKER_ID"),
        )
    };
    let pair = "demo-0.demo,demo-0-1.demo".to_owned();
    assert_eq!(
        in_slice(Pod::leader("demo-0", 3)),
        (pair.clone(), "0".to_owned())
    );
    assert_eq!(
        in_slice(Pod::worker("demo-0-1", 3)),
        (pair.clone(), "1".to_owned())
    );
    assert_eq!(in_slice(Pod::worker("demo-0-2", 3)), (pair, "0".to_owned()));
}

#[test]
fn pod_pa_7_tpu_4_tpu_6_user_variables() {
    for name in ["TPU_WORKER_HOSTNAMES", "TPU_WORKER_ID"] {
        let env = json!([{"name": name, "value": "7"}]);
        let pod = Pod::worker("demo-0-1", 3)
            .containers(json!([tpu_container(env)]))
            .admit()
            .unwrap();
        assert_eq!(pod.env("containers/0").len(), 4, "{name}");
    }
    let env = json!([{"name": "TPU_NAME", "value": "mine"}]);
    let pod = Pod::worker("demo-0-1", 3)
        .containers(json!([tpu_container(env)]))
        .admit()
        .unwrap();
    let names: Vec<_> = pod
        .env("containers/0")
        .iter()
        .map(|entry| entry.split('=').next().unwrap().to_owned())
        .collect();
    let injected = [
        "LWS_LEADER_ADDRESS",
        "LWS_GROUP_SIZE",
        "LWS_WORKER_INDEX",
        "TPU_NAME",
    ];
    let appended = [
        "TPU_WORKER_HOSTNAMES",
        "TPU_WORKER_ID",
        "TPU_PROCESS_ADDRESSES",
        "TPU_PROCESS_PORT",
    ];
    assert_eq!(names, [injected, appended].concat());
    assert_eq!(pod.variable("containers/0", "TPU_NAME"), "mine");
}

#[test]
fn c09_pods_of_one_slice_agree() {
    let a = |pod: Pod| {
        tpu(pod)
            .annotation("subgroup-size", "1")
            .annotation("subgroup-policy-type", "LeaderWorker")
    };
    let lr = |pod: Pod| pod.annotation("leader-requests-tpus", "true");
    for (pod, member) in [
        (a(Pod::leader("demo-0", 3)), 0),
        (lr(a(Pod::worker("demo-0-1", 3))), 1),
        (lr(a(Pod::worker("demo-0-2", 3))), 2),
    ] {
        let expected = hosts("demo-0", "demo", member..=member);
        assert_slice(&pod.admit().unwrap(), &expected, "0", "demo-0", "8476");
    }
    let b = |name: &str, env: Value| {
        Pod::worker(name, 3)
            .containers(json!([tpu_container(env)]))
            .admit()
            .unwrap()
    };
    let both = hosts("demo-0", "demo", 1..=2);
    assert_slice(&b("demo-0-1", json!([])), &both, "0", "demo-0", "8476");
    assert_slice(&b("demo-0-2", json!([])), &both, "1", "demo-0", "8476");
    assert_eq!(
        ALL.map(|name| Pod::leader("demo-0", 3)
            .admit()
            .unwrap()
            .variable("containers/0", name)),
        ["-"; 5]
    );
    let c = b(
        "demo-0-1",
        json!([{"name": "TPU_PROCESS_PORT", "value": "9000"}]),
    );
    assert_slice(&c, &both, "0", "demo-0", "9000");
}

#[test]
fn pod_tpu_3_hash_hosts_follow_the_host_name() {
    let pod = tpu(Pod::hash_leader(2)).admit().unwrap();
    let host = pod.text("/spec/hostname").to_owned();
    assert_slice(&pod, &hosts(&host, "demo", 0..=1), "0", &host, "8476");
}

#[test]
fn pod_tpu_10_unusable_subgroup_numbers_are_denied() {
    for (size, index) in [
        ("x", "0"),
        ("0", "0"),
        ("2", "x"),
        ("9223372036854775807", "9"),
    ] {
        let pod = tpu(Pod::worker("demo-0-1", 4)).annotation("leader-requests-tpus", "true");
        let pod = pod
            .annotation("subgroup-size", size)
            .label("subgroup-index", index);
        assert!(
            matches!(pod.admit().unwrap_err(), Denial::NotANumber { .. }),
            "{size} {index}"
        );
    }
}

#[test]
fn pod_tpu_8_absurd_size_is_denied_before_a_list_is_built() {
    let pod = tpu(Pod::leader("demo-0", 2)).annotation("size", "9223372036854775807");
    assert!(matches!(
        pod.admit().unwrap_err(),
        Denial::TooManyMembers { .. }
    ));
}
