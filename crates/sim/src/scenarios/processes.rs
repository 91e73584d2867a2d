//! Stories of our processes: they die, hand over, come back in another version, and find their way on (L-6 … L-8, L-10, S-22).

use serde_json::json;

use super::{Scenario, ended, story, well};
use crate::actors::user::{Deed, Wanted, delete_pod, force_delete_pod, image, key};
use crate::planted::Bug;
use crate::store::{Kind, is_terminating};
use crate::world::{Setup, World};

/// L-7: the length of the Lease, and five seconds.
const TAKE_OVER: i64 = 20;
/// OPS-6: when the Lease was given back. A candidate waits up to a second, and the pod is deleted one second after the process was asked to end.
const HAND_OVER: i64 = 3;

pub(super) fn all() -> Vec<Scenario> {
    vec![
        Scenario {
            name: "back_off_ends_although_we_die_meanwhile",
            setup: || {
                let more = json!({"leaderWorkerTemplate": {"restartBackoff": {"baseSeconds": 60, "capSeconds": 60}}});
                let wanted = Wanted {
                    more,
                    ..Wanted::default()
                };
                let deeds = [force_delete_pod("demo-0-1"), Deed::Wait(5), Deed::Kill];
                story(wanted, deeds)
            },
            judge: |world| ended(world, &[("demo-0", 1), ("demo-1", 0)]),
            guard: Some(Bug::NoPendingMark),
            lags: false,
        },
        Scenario {
            name: "standby_takes_over",
            setup: || elected([Deed::Kill, Deed::Wait(1), force_delete_pod("demo-0-1")]),
            judge: |world| took_over(world, TAKE_OVER),
            guard: Some(Bug::LeadWithoutLook),
            lags: false,
        },
        Scenario {
            name: "standby_takes_over_in_the_middle_of_a_rollout",
            setup: || elected([image("v2"), Deed::Wait(2), Deed::Kill]),
            judge: |world| ended(world, &[("demo-0", 1), ("demo-1", 1)]),
            guard: Some(Bug::LeadWithoutLook),
            lags: false,
        },
        Scenario {
            name: "standby_takes_over_at_once_when_the_leader_ends",
            setup: || elected([Deed::Stop, Deed::Wait(1), force_delete_pod("demo-0-1")]),
            judge: |world| took_over(world, HAND_OVER),
            guard: Some(Bug::KeepsLease),
            lags: false,
        },
        Scenario {
            name: "leaders_end_in_the_middle_of_rollouts",
            setup: || {
                let deeds = ["v2", "v3", "v1", "v2"].map(|name| [image(name), Deed::Stop]);
                elected(deeds.into_iter().flatten())
            },
            judge: well,
            guard: Some(Bug::LeavesInHaste),
            lags: false,
        },
        Scenario {
            name: "only_the_holder_of_the_lease_writes",
            setup: || elected([image("v2"), Deed::Settle, delete_pod("demo-0")]),
            judge: well,
            guard: Some(Bug::TakesLease),
            lags: false,
        },
        Scenario {
            name: "pods_come_when_the_webhook_is_back",
            setup: || {
                let deeds = [Deed::RefusePods(120), delete_pod("demo-0")];
                story(Wanted::default(), deeds)
            },
            judge: |world| ended(world, &[("demo-0", 1), ("demo-1", 0)]),
            guard: None,
            lags: true,
        },
        Scenario {
            name: "our_requests_fail_when_a_worker_is_gone",
            setup: || {
                let deeds = [Deed::FailUs(20), force_delete_pod("demo-0-1")];
                story(Wanted::default(), deeds)
            },
            judge: |world| ended(world, &[("demo-0", 1), ("demo-1", 0)]),
            guard: Some(Bug::JudgeAnyway),
            lags: true,
        },
        Scenario {
            name: "objects_of_another_version",
            setup: another_version,
            judge: |world| match world.pod_ends() {
                0 => Ok(()),
                n => Err(format!("L-10: {n} pods ended")),
            },
            guard: None,
            lags: false,
        },
    ]
}

fn elected(deeds: impl IntoIterator<Item = Deed>) -> Setup {
    Setup {
        processes: 2,
        election: true,
        ..story(Wanted::default(), deeds)
    }
}

/// The next process ends the leader whose worker is gone.
fn took_over(world: &World, within: i64) -> Result<(), String> {
    ended(world, &[("demo-0", 1), ("demo-1", 0)])?;
    let log = || world.store.log().iter();
    let lost = log().find(|commit| commit.by == "user" && commit.key.kind == Kind::Pod);
    let answered = log().find(|commit| {
        commit.by.starts_with("lws")
            && commit.key.kind == Kind::Pod
            && is_terminating(&commit.object)
    });
    let (Some(lost), Some(answered)) = (lost, answered) else {
        return Err("L-7: nobody took over".to_owned());
    };
    match answered.at.duration_since(lost.at).as_secs() {
        seconds if seconds <= within => Ok(()),
        seconds => Err(format!("L-7: it took {seconds} s to take over")),
    }
}

/// FM-16, L-10: while we are away, another version leaves its marks on all that is ours.
fn another_version() -> Setup {
    let mark = |kind, name| {
        let meta = json!({"annotations": {"example.com/version": "0"}, "labels": {"example.com/of": "another"}});
        Deed::Patch(
            key(kind, name),
            json!({"metadata": meta, "unknown": {"field": 1}}),
        )
    };
    let sets = ["demo", "demo-0", "demo-1"].map(|name| mark(Kind::StatefulSet, name));
    let pods = ["demo-0", "demo-1", "demo-0-1"].map(|name| mark(Kind::Pod, name));
    let deeds = [Deed::Kill, mark(Kind::Service, "demo")];
    story(Wanted::default(), deeds.into_iter().chain(sets).chain(pods))
}
