//! HASH-65, HASH-68, HASH-69 and their tables.

use serde_json::json;

use super::*;
use crate::leaderworkerset::hash::counts::{hand_over, prune};
use crate::leaderworkerset::hash::surplus;
use crate::leaderworkerset::rollout::Budget;
use crate::restart_counts::RestartCounts;

fn counts(pairs: &[(&str, i32)]) -> RestartCounts {
    let text = json!(
        pairs
            .iter()
            .copied()
            .collect::<std::collections::BTreeMap<_, _>>()
    );
    RestartCounts::parse(&text.to_string()).expect("counts")
}

#[test]
fn hash_65_table_of_hand_overs() {
    let new = |group: &str| gated(group, 10);
    let rows = [
        (
            counts(&[("r1/aa", 2)]),
            vec![terminating("aa"), new("bb")],
            "bb",
            counts(&[("r1/bb", 2)]),
        ),
        (
            counts(&[("r1/aa", 1), ("r1/cc", 3), ("r1/dd", 3)]),
            vec![admitted("aa"), new("ee")],
            "ee",
            counts(&[("r1/aa", 1), ("r1/dd", 3), ("r1/ee", 3)]),
        ),
        (
            counts(&[("r1/aa", 1)]),
            vec![admitted("aa"), new("bb")],
            "bb",
            counts(&[("r1/aa", 1)]),
        ),
        (
            counts(&[("r0/aa", 2)]),
            vec![new("bb")],
            "bb",
            counts(&[("r0/aa", 2)]),
        ),
        (
            counts(&[("r1/aa", 5), ("r1/bb", 1)]),
            vec![new("bb")],
            "bb",
            counts(&[("r1/aa", 5), ("r1/bb", 1)]),
        ),
        (
            counts(&[("r1/aa", 2)]),
            vec![exhausted("aa", 0), new("bb")],
            "bb",
            counts(&[("r1/aa", 2)]),
        ),
    ];
    for (row, (before, leaders, admitted, after)) in rows.into_iter().enumerate() {
        let mut counts = before.clone();
        let leader = leaders
            .iter()
            .find(|leader| *leader.key().name == *admitted)
            .expect("the leader");
        let changed = hand_over(&mut counts, &leaders, leader);
        assert_eq!(counts, after, "row {}", row + 1);
        assert_eq!(changed, before != after, "row {}", row + 1);
    }
}

fn budget(desired_replicas: u32, max_surge: u32) -> Budget {
    Budget {
        desired_replicas,
        user_partition: 0,
        max_unavailable: 1,
        max_surge,
    }
}

#[test]
fn hash_69_table_of_kept_counts() {
    let x = ("r1/x", 2);
    let rows = [
        (
            budget(3, 1),
            vec![admitted("a"), exhausted("b", 0), gated("g", 10)],
            counts(&[x, ("r1/y", 1)]),
            counts(&[x]),
        ),
        (
            budget(2, 0),
            vec![admitted("a"), admitted("b")],
            counts(&[("r1/x", 5)]),
            counts(&[]),
        ),
        (
            budget(2, 1),
            vec![admitted("a"), admitted("b"), gated("g", 10)],
            counts(&[("r1/x", 5), ("r1/y", 1)]),
            counts(&[("r1/x", 5)]),
        ),
        (
            budget(4, 0),
            vec![
                admitted("a"),
                gated("g", 10),
                gated("h", 11),
                gated("i", 12),
            ],
            counts(&[("r1/x", 1), ("r1/y", 1), ("r1/z", 1)]),
            counts(&[("r1/x", 1), ("r1/y", 1), ("r1/z", 1)]),
        ),
    ];
    for (row, (budget, leaders, before, after)) in rows.into_iter().enumerate() {
        let mut counts = before.clone();
        let changed = prune(&mut counts, &leaders, REVISION, budget);
        assert_eq!(counts, after, "row {}", row + 1);
        assert_eq!(changed, before != after, "row {}", row + 1);
    }
}

#[test]
fn hash_69_counts_of_groups_of_other_revisions_and_strange_keys_stay() {
    let before = counts(&[("r1/a", 1), ("r0/x", 9), ("r1/t", 3), ("strange", 1)]);
    let mut counts_now = before.clone();
    let leaders = [admitted("a"), terminating("t")];
    assert!(prune(&mut counts_now, &leaders, REVISION, budget(1, 0)));
    assert_eq!(
        counts_now,
        counts(&[("r1/a", 1), ("r0/x", 9), ("strange", 1)])
    );
    assert_eq!(
        counts_now.keys_without_revision().collect::<Vec<_>>(),
        ["strange"]
    );
}

#[test]
fn hash_68_table_of_teardowns() {
    let rows: [(usize, usize, &[&str], &[&str]); 4] = [
        (3, 2, &["x"], &[]),
        (2, 2, &["x"], &["x"]),
        (3, 1, &["x", "y", "z"], &["z"]),
        (0, 0, &["x"], &["x"]),
    ];
    for (row, (replicas, live, retained, torn_down)) in rows.into_iter().enumerate() {
        let mut leaders: Vec<_> = (0..live).map(|n| admitted(&format!("a{n}"))).collect();
        leaders.extend(
            retained
                .iter()
                .zip(0..)
                .map(|(name, age)| exhausted(name, age)),
        );
        leaders.push(labelled(
            admitted("other"),
            lws_api::names::label::REVISION,
            "r0",
        ));
        let found: Vec<_> = retained
            .iter()
            .copied()
            .filter(|name| surplus(&leaders, REVISION, &(*name).into(), replicas))
            .collect();
        assert_eq!(found, torn_down, "row {}", row + 1);
    }
}
