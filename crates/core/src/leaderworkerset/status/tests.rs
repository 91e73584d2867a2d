use super::*;
use crate::build::tests::{demo, lws};

const LATER: Timestamp = Timestamp::UNIX_EPOCH;

/// Groups by code, as in the rollout tables: `O` old and ready, `o` old, `N` new and ready, `n` new, `-` missing.
fn groups(codes: &str, exhausted: &[u32]) -> Vec<Group> {
    let existing = codes.chars().zip(0..).filter(|(code, _)| *code != '-');
    existing
        .map(|(code, index)| Group {
            index,
            is_in_place: true,
            is_complete: true,
            is_ready: code.is_uppercase(),
            is_updated: code.eq_ignore_ascii_case(&'n'),
            is_exhausted: exhausted.contains(&index),
        })
        .collect()
}

/// A pass over an Ordinal set.
fn decide(
    lws: &Lws,
    groups: &[Group],
    budget: Budget,
    replicas: i32,
    is_clean: bool,
    now: Timestamp,
) -> Decided {
    super::decide(lws, &of_groups(groups, budget, replicas), is_clean, now)
}

fn budget(desired_replicas: u32, user_partition: u32) -> Budget {
    Budget {
        desired_replicas,
        user_partition,
        max_unavailable: 1,
        max_surge: 0,
    }
}

/// `Available=T Degraded=F` as stored conditions of generation 1, with reasons and messages of their own.
fn stored(conditions: &str) -> Vec<Condition> {
    let one = |text: &str| {
        let (kind, status) = text.split_once('=').unwrap();
        Condition {
            type_: kind.to_owned(),
            status: if status == "T" { "True" } else { "False" }.to_owned(),
            reason: format!("Old{kind}"),
            message: format!("old {kind}"),
            observed_generation: Some(1),
            last_transition_time: Time("2026-01-01T00:00:00Z".parse().unwrap()),
        }
    };
    conditions.split_whitespace().map(one).collect()
}

fn shown(conditions: &[Condition]) -> String {
    let mut list: Vec<_> = conditions
        .iter()
        .map(|c| format!("{}={}", c.type_, &c.status[..1]))
        .collect();
    list.sort();
    list.join(" ")
}

fn set_with(conditions: Vec<Condition>) -> Lws {
    let mut set = lws(demo());
    set.status.conditions = conditions;
    set
}

struct Row {
    before: &'static str,
    wanted: (u32, u32),
    groups: &'static str,
    exhausted: &'static [u32],
    numbers: (i32, i32),
    after: &'static str,
}

const fn row(
    before: &'static str,
    wanted: (u32, u32),
    groups: &'static str,
    exhausted: &'static [u32],
    numbers: (i32, i32),
    after: &'static str,
) -> Row {
    Row {
        before,
        wanted,
        groups,
        exhausted,
        numbers,
        after,
    }
}

const TABLE: [Row; 14] = [
    row("", (2, 0), "nn", &[], (0, 2), "Degraded=F Progressing=T"),
    row(
        "Progressing=T",
        (2, 0),
        "NN",
        &[],
        (2, 2),
        "Available=T Degraded=F Progressing=F",
    ),
    row(
        "Available=T Progressing=F",
        (3, 0),
        "NN-",
        &[],
        (2, 2),
        "Available=F Degraded=F Progressing=T",
    ),
    row(
        "Available=T",
        (4, 0),
        "OOOO",
        &[],
        (4, 0),
        "Available=F Degraded=F Progressing=T UpdateInProgress=T",
    ),
    row(
        "Available=F UpdateInProgress=T",
        (4, 0),
        "nNNN",
        &[],
        (3, 4),
        "Available=F Degraded=F Progressing=T UpdateInProgress=T",
    ),
    row(
        "Progressing=T UpdateInProgress=T",
        (4, 0),
        "NNNN",
        &[],
        (4, 4),
        "Available=T Degraded=F Progressing=F UpdateInProgress=F",
    ),
    row("", (6, 4), "OOOONN", &[], (6, 2), "Available=T Degraded=F"),
    row(
        "Available=T",
        (4, 0),
        "OOOOnn",
        &[],
        (4, 2),
        "Available=F Degraded=F Progressing=T UpdateInProgress=T",
    ),
    row("", (0, 0), "", &[], (0, 0), "Available=T Degraded=F"),
    row(
        "Available=T",
        (10, 0),
        "nNNNNNNNNN",
        &[0],
        (9, 10),
        "Available=F Degraded=T Progressing=F UpdateInProgress=F",
    ),
    row(
        "Available=T",
        (10, 0),
        "nNNNNnNNNN",
        &[0],
        (8, 10),
        "Available=F Degraded=T Progressing=T UpdateInProgress=F",
    ),
    row(
        "Available=T",
        (4, 0),
        "oOON",
        &[0],
        (3, 1),
        "Available=F Degraded=T Progressing=T UpdateInProgress=T",
    ),
    row(
        "Available=T",
        (2, 0),
        "NN",
        &[0],
        (2, 2),
        "Available=F Degraded=T Progressing=F UpdateInProgress=F",
    ),
    row("", (2, 0), "NNn", &[2], (2, 3), "Available=T Degraded=T"),
];

#[test]
fn ord_105_106_110_lws_api_22_24_table_of_conditions() {
    for (number, row) in TABLE.iter().enumerate() {
        let (desired, partition) = row.wanted;
        let set = set_with(stored(row.before));
        let decided = decide(
            &set,
            &groups(row.groups, row.exhausted),
            budget(desired, partition),
            5,
            true,
            LATER,
        );
        let status = decided.status;
        assert_eq!(shown(&status.conditions), row.after, "row {}", number + 1);
        assert_eq!(
            (status.ready_replicas, status.updated_replicas),
            row.numbers,
            "row {}",
            number + 1
        );
        assert_eq!(
            of_groups(
                &groups(row.groups, row.exhausted),
                budget(desired, partition),
                5
            )
            .is_update_done,
            matches!(number + 1, 2 | 6 | 9 | 13 | 14),
            "row {}",
            number + 1
        );
    }
}

#[test]
fn ord_104_reasons_and_messages() {
    let told = |codes: &str, exhausted: &[u32], before: &str| {
        let set = set_with(stored(before));
        let wanted = u32::try_from(codes.len()).unwrap();
        let status = decide(
            &set,
            &groups(codes, exhausted),
            budget(wanted, 0),
            0,
            true,
            LATER,
        )
        .status;
        status
            .conditions
            .iter()
            .map(|c| format!("{} {} {}: {}", c.type_, c.status, c.reason, c.message))
            .collect::<Vec<_>>()
    };
    let not_degraded = "Degraded False AsExpected: No replica has exhausted its restart budget";
    assert_eq!(
        told("NN", &[], ""),
        [
            "Available True AllGroupsReady: All replicas are ready",
            not_degraded
        ]
    );
    assert_eq!(
        told("ON", &[], ""),
        [
            "UpdateInProgress True GroupsUpdating: Rolling Upgrade is in progress",
            "Progressing True GroupsProgressing: Replicas are progressing",
            not_degraded
        ]
    );
    assert_eq!(
        told("nN", &[0], ""),
        [
            "Available False ReplicaRestartBudgetExceeded: Not all replicas are ready",
            "Progressing False ReplicaRestartBudgetExceeded: Automatic recovery is stopped for one or more replicas",
            "UpdateInProgress False ReplicaRestartBudgetExceeded: No rolling update is in progress",
            "Degraded True ReplicaRestartBudgetExceeded: Automatic recovery is stopped for one or more replicas",
        ]
    );
    // By exclusivity: reason and message stay.
    assert_eq!(
        told("N-", &[], "Available=T")[0],
        "Available False OldAvailable: old Available"
    );
}

#[test]
fn ord_107_lws_api_23_26_storing_a_condition() {
    for (before, new, after, changes) in [
        ("", AVAILABLE, "Available=T", true),
        (
            "Progressing=T",
            AVAILABLE,
            "Available=T Progressing=F",
            true,
        ),
        (
            "Available=T",
            UPDATING,
            "Available=F UpdateInProgress=T",
            true,
        ),
        (
            "Progressing=T",
            UPDATING,
            "Progressing=T UpdateInProgress=T",
            true,
        ),
        ("Available=F", AVAILABLE, "Available=T", true),
        ("", NOT_DEGRADED, "Degraded=F", true),
        ("Available=T", DEGRADED, "Available=T Degraded=T", true),
    ] {
        let mut conditions = stored(before);
        assert_eq!(
            set(&mut conditions, new, 2, LATER),
            changes,
            "{before} {new:?}"
        );
        assert_eq!(shown(&conditions), after);
        assert!(
            !set(&mut conditions, new, 2, LATER),
            "setting {new:?} twice changes nothing"
        );
    }
}

#[test]
fn ord_107_transition_time_moves_with_the_status_only() {
    let mut conditions = Vec::new();
    let created = "2026-01-01T00:00:00Z".parse().unwrap();
    set(&mut conditions, AVAILABLE, 1, created);
    assert!(
        set(&mut conditions, AVAILABLE, 2, LATER),
        "a new generation is a change"
    );
    assert_eq!(
        (
            conditions[0].last_transition_time.0,
            conditions[0].observed_generation
        ),
        (created, Some(2))
    );
    set(&mut conditions, PROGRESSING, 3, LATER);
    assert_eq!(
        (
            conditions[0].last_transition_time.0,
            conditions[0].observed_generation
        ),
        (LATER, Some(3))
    );
    assert_eq!(conditions[0].reason, "AllGroupsReady");
}

#[test]
fn ord_107_lws_api_23_every_condition_gets_the_current_generation() {
    let mut set = set_with(stored("WorkloadSchedulingCreated=T UpdateInProgress=F"));
    set.meta.generation = 9;
    let status = decide(&set, &groups("NN", &[]), budget(2, 0), 0, true, LATER).status;
    assert!(
        status
            .conditions
            .iter()
            .all(|condition| condition.observed_generation == Some(9))
    );
}

#[test]
fn ord_108_lws_api_25_one_event_about_the_first_condition() {
    let event = |codes: &str, exhausted: &[u32]| {
        decide(
            &set_with(Vec::new()),
            &groups(codes, exhausted),
            budget(2, 0),
            0,
            true,
            LATER,
        )
        .event
    };
    assert_eq!(
        event("NN", &[]),
        Some((
            "AllGroupsReady",
            "All replicas are ready, with 2 groups ready of total 2 groups".to_owned()
        ))
    );
    assert_eq!(
        event("ON", &[]),
        Some((
            "GroupsUpdating",
            "Rolling Upgrade is in progress, with 2 groups ready of total 2 groups".to_owned()
        ))
    );
    assert_eq!(
        event("n", &[]),
        Some((
            "GroupsProgressing",
            "Replicas are progressing, with 0 groups ready of total 2 groups".to_owned()
        ))
    );
    let degraded = "Automatic recovery is stopped for one or more replicas, with 1 groups ready of total 2 groups";
    assert_eq!(
        event("nN", &[0]),
        Some(("ReplicaRestartBudgetExceeded", degraded.to_owned()))
    );
}

#[test]
fn ord_108_ord_109_nothing_changes_in_a_settled_set() {
    let first = decide(
        &set_with(Vec::new()),
        &groups("NN", &[]),
        budget(2, 0),
        2,
        true,
        LATER,
    )
    .status;
    let set = Lws {
        status: first.clone(),
        ..lws(demo())
    };
    let again = decide(
        &set,
        &groups("NN", &[]),
        budget(2, 0),
        2,
        true,
        "2030-01-01T00:00:00Z".parse().unwrap(),
    );
    assert_eq!((again.status, again.event), (first, None));
}

#[test]
fn ord_103_incomplete_groups_count_only_as_exhausted() {
    let mut list = groups("NN", &[1]);
    list[1].is_complete = false;
    let sums = Sums::of(&list, budget(2, 0));
    assert_eq!(
        sums,
        Sums {
            exhausted: 1,
            exhausted_wanted: 1,
            ready: 1,
            updated: 1,
            serving: 1,
            to_update: 1,
            to_update_updated: 1,
            to_update_done: 1
        }
    );
}

#[test]
fn ord_103_kue_kq_2_chk_5_surge_and_partition() {
    let sums = Sums::of(&groups("OONnN", &[4]), budget(4, 2));
    assert_eq!(
        sums,
        Sums {
            exhausted: 1,
            exhausted_wanted: 0,
            ready: 4,
            updated: 3,
            serving: 3,
            to_update: 2,
            to_update_updated: 2,
            to_update_done: 1
        }
    );
}

#[test]
fn ord_102_lws_api_20_kue_usr_9_selector_is_set_once() {
    let mut set = lws(demo());
    let selector =
        "leaderworkerset.sigs.k8s.io/name=demo,leaderworkerset.sigs.k8s.io/worker-index=0";
    assert_eq!(
        decide(&set, &[], budget(2, 0), 0, true, LATER)
            .status
            .hpa_pod_selector,
        selector
    );
    set.status.hpa_pod_selector = "other".to_owned();
    assert_eq!(
        decide(&set, &[], budget(2, 0), 0, true, LATER)
            .status
            .hpa_pod_selector,
        "other"
    );
}

#[test]
fn ord_23_101_generation_is_observed_by_a_clean_pass_only() {
    let mut set = lws(demo());
    (set.meta.generation, set.status.observed_generation) = (5, 4);
    assert_eq!(
        decide(&set, &[], budget(2, 0), 0, true, LATER)
            .status
            .observed_generation,
        5
    );
    assert_eq!(
        decide(&set, &[], budget(2, 0), 0, false, LATER)
            .status
            .observed_generation,
        4
    );
}

#[test]
fn lws_api_19_patch_removes_what_is_zero_or_empty() {
    let empty = patch(&LeaderWorkerSetStatus::default());
    assert!(
        empty["status"]
            .as_object()
            .unwrap()
            .values()
            .all(Value::is_null)
    );
    assert_eq!(empty["status"].as_object().unwrap().len(), 6);
    let status = decide(
        &lws(demo()),
        &groups("Nn", &[]),
        budget(2, 0),
        2,
        true,
        LATER,
    )
    .status;
    let mut stored = json!({"status": {"readyReplicas": 9, "replicas": 9}});
    json_patch::merge(&mut stored, &patch(&status));
    assert_eq!(stored["status"], serde_json::to_value(&status).unwrap());
}
