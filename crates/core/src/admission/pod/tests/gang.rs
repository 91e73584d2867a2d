use serde_json::Value;

use super::Pod;
use crate::admission::pod::Denial;
use crate::admission::{Environment, SchedulerProvider};

const GATE: &str = "leaderworkerset.sigs.k8s.io/group-replacement";
const WORKLOAD: &str = "vllm-68d7549f75";

fn with(provider: SchedulerProvider) -> Environment {
    Environment {
        scheduler_provider: Some(provider),
        ..Environment::default()
    }
}

fn native(pod: Pod, mode: &str, workload: &str) -> Pod {
    let pod = pod.label("template-revision-hash", "7c9d4f5b8");
    pod.annotation("workload-aware-scheduling", mode)
        .annotation("workload-name", workload)
}

#[test]
fn pod_pa_5_gang_nat_29_d_2_pod_group_names() {
    let incarnation = "vllm-68d7549f75.x7k2p";
    let hash = || Pod::hash_leader(2);
    for (pod, mode, workload, name) in [
        (
            Pod::leader("vllm-0", 2),
            "replica",
            incarnation,
            "vllm-68d7549f75.x7k2p-0-7c9d4f5b8",
        ),
        (
            Pod::leader("vllm-0", 2),
            "true",
            incarnation,
            "vllm-68d7549f75.x7k2p-0-7c9d4f5b8",
        ),
        (
            Pod::worker("vllm-0-1", 2),
            "replica",
            incarnation,
            "vllm-68d7549f75.x7k2p-0-7c9d4f5b8",
        ),
        (
            Pod::leader("vllm-0", 2),
            "role",
            incarnation,
            "vllm-68d7549f75.x7k2p-0-leader-7c9d4f5b8",
        ),
        (
            Pod::worker("vllm-0-1", 2),
            "role",
            incarnation,
            "vllm-68d7549f75.x7k2p-0-worker-7c9d4f5b8",
        ),
        (
            Pod::leader("vllm-0", 2),
            "lws",
            WORKLOAD,
            "vllm-68d7549f75-lws",
        ),
        (
            Pod::worker("vllm-0-1", 2),
            "lws",
            WORKLOAD,
            "vllm-68d7549f75-lws",
        ),
        (
            hash(),
            "replica",
            WORKLOAD,
            "vllm-68d7549f75-<key>-7c9d4f5b8",
        ),
    ] {
        let pod = native(pod, mode, workload)
            .admit_in(&with(SchedulerProvider::Kubernetes))
            .unwrap();
        let name = name.replace("<key>", pod.label("group-key"));
        assert_eq!(
            pod.text("/spec/schedulingGroup/podGroupName"),
            name,
            "{mode}"
        );
    }
}

#[test]
fn pod_gate_2_nat_32_nat_35_ordinal_leaders_start_an_incarnation() {
    let admit = |pod: Pod, mode: &str, workload: &str| {
        native(pod, mode, workload)
            .admit_in(&with(SchedulerProvider::Kubernetes))
            .unwrap()
    };
    for mode in ["replica", "role", "true"] {
        let leader = admit(Pod::leader("vllm-0", 2), mode, WORKLOAD);
        let (base, part) = leader.annotation("workload-name").split_once('.').unwrap();
        assert_eq!((base, part.len()), (WORKLOAD, 5), "{mode}");
        assert_eq!(leader.gates(), [GATE], "{mode}");
        assert!(
            leader
                .text("/spec/schedulingGroup/podGroupName")
                .starts_with(&format!("{base}.{part}-0-"))
        );
    }
    let kept = "vllm-68d7549f75.x7k2p";
    let leader = admit(Pod::leader("vllm-0", 2), "replica", kept);
    assert_eq!(leader.annotation("workload-name"), kept);
    for malformed in [
        "vllm-68d7549f75.aaaaa",
        "vllm-68d7549f75.x7k2p.x7k2p",
        "vllm-68d7549f75.",
    ] {
        let name = admit(Pod::leader("vllm-0", 2), "replica", malformed)
            .annotation("workload-name")
            .to_owned();
        assert_ne!(name, malformed);
        assert!(
            name.starts_with("vllm-68d7549f75.") && name.len() == WORKLOAD.len() + 6,
            "{name}"
        );
    }
}

#[test]
fn pod_gate_2_nat_35_others_keep_the_plain_name_and_no_gate() {
    for (pod, mode) in [
        (Pod::leader("vllm-0", 2), "lws"),
        (Pod::worker("vllm-0-1", 2), "replica"),
    ] {
        let pod = native(pod, mode, WORKLOAD)
            .admit_in(&with(SchedulerProvider::Kubernetes))
            .unwrap();
        assert_eq!(pod.annotation("workload-name"), WORKLOAD);
        assert!(pod.gates().is_empty());
    }
    let hash = native(Pod::hash_leader(2), "replica", WORKLOAD);
    assert_eq!(
        hash.admit_in(&with(SchedulerProvider::Kubernetes))
            .unwrap()
            .annotation("workload-name"),
        WORKLOAD
    );
}

#[test]
fn gang_nat_31_workload_name_falls_back_to_the_set() {
    let pod = native(Pod::worker("vllm-0-1", 2), "lws", "")
        .admit_in(&with(SchedulerProvider::Kubernetes))
        .unwrap();
    assert_eq!(pod.text("/spec/schedulingGroup/podGroupName"), "vllm-lws");
}

#[test]
fn gang_d_2_long_names_are_cut_before_the_suffix() {
    let pod = native(Pod::worker("vllm-0-1", 2), "lws", &"w".repeat(300));
    let pod = pod.admit_in(&with(SchedulerProvider::Kubernetes)).unwrap();
    assert_eq!(
        pod.text("/spec/schedulingGroup/podGroupName"),
        format!("{}-lws", "w".repeat(249))
    );
}

#[test]
fn pod_pa_5_gang_nat_29_nat_30_denials() {
    let denied = native(Pod::leader("vllm-0", 2), "always", WORKLOAD)
        .admit_in(&with(SchedulerProvider::Kubernetes));
    assert_eq!(
        denied.unwrap_err(),
        Denial::SchedulingMode("always".to_owned())
    );
    let denied = native(Pod::leader("vllm-0", 2), "replica", WORKLOAD)
        .admit()
        .unwrap_err();
    assert_eq!(denied, Denial::NoSchedulerProvider("vllm-0".to_owned()));
    assert!(
        denied
            .to_string()
            .contains("no scheduler provider is configured")
    );
}

#[test]
fn kue_usr_5_pod_pa_5_vol_1_every_pod_names_its_pod_group() {
    let revision = |pod: Pod| pod.label("template-revision-hash", "dd6699c7c");
    for pod in [
        Pod::leader("lws-1", 3),
        Pod::worker("lws-1-2", 3),
        native(Pod::worker("lws-1-1", 3), "replica", WORKLOAD),
    ] {
        let pod = revision(pod)
            .admit_in(&with(SchedulerProvider::Volcano))
            .unwrap();
        assert_eq!(
            pod.annotation("scheduling.k8s.io/group-name"),
            "lws-1-dd6699c7c"
        );
        assert_eq!(pod.value.pointer("/spec/schedulingGroup"), None::<&Value>);
    }
    let user = Pod::leader("lws-1", 3)
        .annotation("scheduling.k8s.io/group-name", "mine")
        .admit()
        .unwrap();
    assert_eq!(user.annotation("scheduling.k8s.io/group-name"), "mine");
}
