use serde_json::{Value, json};

use super::Pod;
use crate::admission::pod::Denial;

/// C07, ENV-1, ENV-3, ENV-4: in containers and init containers alike, and only once.
#[test]
fn pod_env_1_env_3_kue_usr_1_chk_1_c07_group_variables_come_first() {
    let env = json!([
        {"name": "FOO", "value": "$(LWS_LEADER_ADDRESS):80"},
        {"name": "LWS_WORKER_INDEX", "value": "99"},
        {"name": "BAR", "value": "1"},
    ]);
    let containers = |name: &str| json!([{"name": name, "env": env}]);
    let make = |pod: Pod| {
        let pod = pod
            .containers(containers("c"))
            .with("/spec/initContainers", containers("i"));
        pod.with("/metadata/namespace", "t1".into())
            .with("/spec/ephemeralContainers", json!([{"name": "e"}]))
            .admit()
            .unwrap()
    };
    for (pod, index) in [
        (make(Pod::worker("demo-0-1", 2)), 1),
        (make(Pod::leader("demo-0", 2)), 0),
    ] {
        let expected = [
            "LWS_LEADER_ADDRESS=demo-0.demo.t1".to_owned(),
            "LWS_GROUP_SIZE=2".to_owned(),
            format!("LWS_WORKER_INDEX={index}"),
            "FOO=$(LWS_LEADER_ADDRESS):80".to_owned(),
            "BAR=1".to_owned(),
        ];
        assert_eq!(pod.env("containers/0"), expected);
        assert_eq!(pod.env("initContainers/0"), expected);
        assert!(pod.env("ephemeralContainers/0").is_empty());
    }
}

#[test]
fn pod_env_2_leader_address() {
    let no_hostname = |pod: Pod| pod.with("/spec/hostname", Value::Null);
    let ns = |pod: Pod| pod.with("/metadata/namespace", "ns".into());
    let unique = |pod: Pod| pod.annotation("subdomainPolicy", "UniquePerReplica");
    for (pod, address) in [
        (
            Pod::leader("test-sample-0", 3).subdomain("test-sample"),
            "test-sample-0.test-sample.default",
        ),
        (
            Pod::worker("test-sample-0-1", 3).subdomain("test-sample"),
            "test-sample-0.test-sample.default",
        ),
        (
            ns(unique(Pod::leader("test-sample-1", 2))),
            "test-sample-1.test-sample-1.ns",
        ),
        (
            no_hostname(Pod::leader("test-lws-3", 2).subdomain("test-lws")),
            "test-lws-3.test-lws.default",
        ),
        (
            Pod::worker("demo-c6da7bcc-1", 2)
                .annotation("leader-address", "demo-c6da7bcc.demo.default"),
            "demo-c6da7bcc.demo.default",
        ),
    ] {
        assert_eq!(
            pod.admit()
                .unwrap()
                .variable("containers/0", "LWS_LEADER_ADDRESS"),
            address
        );
    }
}

#[test]
fn pod_env_2_address_that_cannot_be_derived_is_denied() {
    let no_group = Pod::worker("demo-0-1", 2).with(
        "/metadata/labels/leaderworkerset.sigs.k8s.io~1group-index",
        Value::Null,
    );
    let hash = Pod::worker("demo-c6da7bcc-1", 2)
        .annotation("group-identity", "Hash")
        .annotation("leader-address", "");
    for (pod, key) in [(no_group, "group-index"), (hash, "leader-address")] {
        let denied = pod.admit().unwrap_err();
        assert!(matches!(&denied, Denial::Missing { .. }), "{denied}");
        assert!(denied.to_string().contains(key), "{denied}");
    }
}

#[test]
fn pod_env_4_first_of_equal_names_stays() {
    let env = json!([{"name": "A", "value": "1"}, {"name": "LWS_GROUP_SIZE", "valueFrom": {}}, {"name": "A", "value": "2"}]);
    let pod = Pod::worker("demo-0-2", 4)
        .containers(json!([{"name": "c", "env": env}]))
        .admit()
        .unwrap();
    let expected = [
        "LWS_LEADER_ADDRESS=demo-0.demo.default",
        "LWS_GROUP_SIZE=4",
        "LWS_WORKER_INDEX=2",
        "A=1",
    ];
    assert_eq!(pod.env("containers/0"), expected);
}

#[test]
fn pod_env_4_what_stands_already_is_not_written_again() {
    let once = Pod::worker("demo-0-2", 4).admit().unwrap();
    let twice = Pod {
        value: once.value.clone(),
    };
    let request = super::Request {
        pod: &twice.value,
        namespace: "default",
        random: 1,
    };
    assert_eq!(
        super::mutate(&request, &super::Environment::default()),
        Ok(None)
    );
}

#[test]
fn pod_net_2_addresses_of_both_identities() {
    let key8 = |pod: &super::Admitted| pod.label("group-key")[..8].to_owned();
    let shared = Pod::hash_leader(2)
        .subdomain("my-lws")
        .label("name", "my-lws")
        .admit()
        .unwrap();
    let address = shared.variable("containers/0", "LWS_LEADER_ADDRESS");
    assert_eq!(address, format!("my-lws-{}.my-lws.default", key8(&shared)));
    let unique = Pod::hash_leader(2)
        .label("name", "my-lws")
        .annotation("subdomainPolicy", "UniquePerReplica")
        .admit()
        .unwrap();
    let host = format!("my-lws-{}", key8(&unique));
    assert_eq!(
        unique.variable("containers/0", "LWS_LEADER_ADDRESS"),
        format!("{host}.{host}.default")
    );
}

#[test]
fn pod_env_5_nothing_else_is_injected() {
    let worker = Pod::worker("demo-0-1", 4)
        .annotation("subgroup-size", "2")
        .annotation("exclusive-topology", "rack");
    let names: Vec<_> = worker
        .admit()
        .unwrap()
        .env("containers/0")
        .iter()
        .map(|entry| entry.split('=').next().unwrap().to_owned())
        .collect();
    assert_eq!(
        names,
        ["LWS_LEADER_ADDRESS", "LWS_GROUP_SIZE", "LWS_WORKER_INDEX"]
    );
}
