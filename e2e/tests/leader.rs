//! Two managers: who leads, and what happens when the one that does is gone.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams};
use lws_e2e::{Bench, Manifest, on_own_cluster, until};
use lws_local_cluster::{Component, Manager, ManagerOptions};
use serde_json::{Value, json};

const LEASE: &str = "b8b2488c.x-k8s.io";
const NAMESPACE: &str = "lws-system";
const GROUPS: i64 = 50;
const LOST: &str = "leader election lost";

/// Who holds the Lease; empty when nobody does.
async fn holder(bench: &Bench) -> Result<String> {
    let leases: Api<Lease> = Api::namespaced(bench.client(), NAMESPACE);
    let lease = leases.get_opt(LEASE).await?;
    let spec = lease.and_then(|lease| lease.spec).unwrap_or_default();
    Ok(spec.holder_identity.unwrap_or_default())
}

fn free_port() -> Result<u16> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    Ok(listener.local_addr()?.port())
}

/// A manager that leads, and another one that serves the admission of the cluster, so that it goes on when the leader is gone.
async fn leader_and_standby(bench: &Bench, election: Value) -> Result<(Manager, Manager)> {
    let plant = bench.plant();
    plant.terminate_manager()?;
    let port = free_port()?;
    let before = holder(bench).await?;
    let with = |name: &'static str| {
        let election = election.clone();
        move |options: &mut ManagerOptions| {
            options.name = name.to_owned();
            options.config = json!({"leaderElection": election});
        }
    };
    let leader = plant.start_manager_with(|options| {
        with("leader")(options);
        options.webhook_port = Some(port);
    })?;
    until("the first manager leads", async || {
        let holder = holder(bench).await?;
        Ok(!holder.is_empty() && holder != before)
    })
    .await?;
    let standby = plant.start_manager_with(with("standby"))?;
    plant.installation().check_webhooks()?;
    Ok((leader, standby))
}

fn log(manager: &Manager) -> Result<String> {
    Ok(fs::read_to_string(manager.log())?)
}

async fn until_ended(manager: &Manager) -> Result<()> {
    until("the manager ends", async || Ok(!manager.is_running())).await
}

async fn until_taken_over(bench: &Bench, from: &str) -> Result<()> {
    until("the standby leads", async || {
        let holder = holder(bench).await?;
        Ok(!holder.is_empty() && holder != from)
    })
    .await
}

/// Starts a rollout of many groups and waits until it is under way.
async fn start_rollout(bench: &Bench) -> Result<()> {
    bench.create(Manifest::new("demo", GROUPS, 1)).await?;
    bench.until_available("demo").await?;
    let strategy = json!({"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxUnavailable": 10, "maxSurge": 0}});
    bench
        .patch(
            lws_e2e::Kind::Set,
            "demo",
            json!({"spec": {"rolloutStrategy": strategy}}),
        )
        .await?;
    bench.update_image("demo", "nginx:1.28").await?;
    bench
        .until("the rollout is under way", |world| {
            let image = |pod: &lws_e2e::Object| pod.container("c")["image"] == "nginx:1.28";
            world.pods_of("demo").filter(|pod| image(pod)).count() > 5
        })
        .await
}

/// The rollout ended well: all groups are new, and no more than allowed were missing at a time.
async fn rollout_ends(bench: &Bench) -> Result<()> {
    bench
        .until_in(Duration::from_secs(300), "the rollout is over", |world| {
            world.is_available("demo")
                && world
                    .pods_of("demo")
                    .all(|pod| pod.container("c")["image"] == "nginx:1.28")
        })
        .await?;
    bench.settled().await?;
    let world = bench.world();
    assert_eq!(world.revisions_of("demo").len(), 1);
    assert_eq!(i64::try_from(world.pods_of("demo").count())?, GROUPS);
    Ok(())
}

#[tokio::test]
async fn ops_5_leader_killed_during_a_rollout() -> Result<()> {
    on_own_cluster("killed", async |bench| {
        let (leader, standby) = leader_and_standby(bench, json!({})).await?;
        start_rollout(bench).await?;
        let killed = holder(bench).await?;
        leader.kill()?;
        until_taken_over(bench, &killed).await?;
        rollout_ends(bench).await?;
        let lease: Api<Lease> = Api::namespaced(bench.client(), NAMESPACE);
        let spec = lease.get(LEASE).await?.spec.context("a spec")?;
        assert!(spec.lease_transitions.unwrap_or_default() >= 1);
        Ok(standby.terminate()?)
    })
    .await
}

#[tokio::test]
async fn ops_le_7_leader_paused_during_a_rollout_decides_nothing_afterwards() -> Result<()> {
    on_own_cluster("paused", async |bench| {
        let (leader, standby) = leader_and_standby(bench, json!({})).await?;
        start_rollout(bench).await?;
        let paused = holder(bench).await?;
        leader.pause()?;
        let before = log(&leader)?.len();
        until_taken_over(bench, &paused).await?;
        leader.resume()?;
        until_ended(&leader).await?;
        let log = log(&leader)?;
        let after = log.get(before..).unwrap_or_default();
        assert!(after.contains(LOST), "{after}");
        // A write whose answer was on its way is told as done, too: each reconcile has one under way at most.
        let resumed = after.split("stopped leading").nth(1).unwrap_or_default();
        assert!(!resumed.contains("\tdone\t"), "{after}");
        rollout_ends(bench).await?;
        Ok(standby.terminate()?)
    })
    .await
}

#[tokio::test]
async fn ops_6_le_3_le_8_leader_asked_to_stop_hands_over() -> Result<()> {
    on_own_cluster("stopped", async |bench| {
        let (leader, standby) = leader_and_standby(bench, json!({})).await?;
        let stopped = holder(bench).await?;
        leader.terminate()?;
        // Without a hand-over this would take the lease's 15 s; the release is in the log of who gave it back.
        until_taken_over(bench, &stopped).await?;
        let events: Api<Event> = Api::namespaced(bench.client(), NAMESPACE);
        let next = holder(bench).await?;
        for note in [
            format!("{stopped} became leader"),
            format!("{stopped} stopped leading"),
            format!("{next} became leader"),
        ] {
            until(&note, async || {
                let events = events.list(&ListParams::default()).await?;
                Ok(events.iter().any(|event| {
                    event.note.as_deref() == Some(&note)
                        && event.reason.as_deref() == Some("LeaderElection")
                        && event.type_.as_deref() == Some("Normal")
                        && event.regarding.as_ref().and_then(|of| of.kind.as_deref())
                            == Some("Lease")
                }))
            })
            .await?;
        }
        bench.create(Manifest::new("demo", 1, 2)).await?;
        bench.until_available("demo").await?;
        Ok(standby.terminate()?)
    })
    .await
}

#[tokio::test]
async fn ops_7_le_7_leader_without_api_server_ends() -> Result<()> {
    on_own_cluster("unreachable", async |bench| {
        let election = json!({"leaseDuration": "9s", "renewDeadline": "6s", "retryPeriod": "1s"});
        let (leader, standby) = leader_and_standby(bench, election).await?;
        let before = holder(bench).await?;
        bench.plant().stop(Component::ApiServer)?;
        until_ended(&leader).await?;
        assert!(log(&leader)?.contains(LOST));
        assert!(standby.is_running());
        bench.plant().start(Component::ApiServer)?;
        until_taken_over(bench, &before).await?;
        Ok(standby.terminate()?)
    })
    .await
}

#[tokio::test]
async fn ops_17_18_flg_4_what_is_switched_off_does_not_listen() -> Result<()> {
    on_own_cluster("silent", async |bench| {
        let plant = bench.plant();
        plant.terminate_manager()?;
        plant.installation().remove_webhooks()?;
        let before = holder(bench).await?;
        let manager = plant.spawn_manager_with(|options| {
            options.name = "silent".to_owned();
            options.config =
                json!({"metrics": {"bindAddress": "0"}, "health": {"healthProbeBindAddress": "0"}});
            options.environment = vec![("ENABLE_WEBHOOKS".to_owned(), "false".to_owned())];
        })?;
        until_taken_over(bench, &before).await?;
        bench.create(Manifest::new("demo", 1, 1)).await?;
        bench
            .until("reconcilers run", |world| {
                world.has(lws_e2e::Kind::StatefulSet, "demo")
            })
            .await?;
        for port in [
            plant.installation().webhook_port(),
            manager.health_port(),
            manager.metrics_port(),
        ] {
            let connected = std::net::TcpStream::connect(("127.0.0.1", port));
            assert!(connected.is_err(), "{port}");
        }
        Ok(manager.terminate()?)
    })
    .await
}
