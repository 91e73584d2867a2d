//! Managers that are killed in the middle of work.

use std::time::{Duration, Instant};

use anyhow::Result;
use lws_e2e::{Bench, Kind, Manifest, on_own_cluster};

const SETS: [&str; 5] = ["a", "b", "c", "d", "e"];

/// Kills and restarts the manager for 30 s; the images are updated in between.
async fn crash_all_the_time(bench: &Bench) -> Result<()> {
    let start = Instant::now();
    let mut is_updated = false;
    bench.plant().kill_manager()?;
    while start.elapsed() < Duration::from_secs(30) {
        let manager = bench.plant().spawn_manager()?;
        bench.pass(Duration::from_millis(700)).await;
        if start.elapsed() > Duration::from_secs(5) && !is_updated {
            // Without a manager there is no admission: this needs a moment in which one serves it.
            is_updated = update_all(bench).await.is_ok();
        }
        manager.kill()?;
    }
    bench.plant().start_manager()?;
    update_all(bench).await
}

async fn update_all(bench: &Bench) -> Result<()> {
    for set in SETS {
        bench.update_image(set, "nginx:1.28").await?;
    }
    Ok(())
}

#[tokio::test]
async fn c27_manager_killed_again_and_again_converges() -> Result<()> {
    on_own_cluster("crash", async |bench| {
        for set in SETS {
            bench.create(Manifest::new(set, 2, 2)).await?;
        }
        crash_all_the_time(bench).await?;
        for set in SETS {
            bench.until_available(set).await?;
        }
        bench.settled().await?;
        let world = bench.world();
        for set in SETS {
            let owner = world.set(set);
            let revisions = world.revisions_of(set);
            assert_eq!(revisions.len(), 1, "{set}");
            assert_eq!(world.pods_of(set).count(), 4, "{set}");
            for pod in world.pods_of(set) {
                assert_eq!(pod.container("c")["image"], "nginx:1.28", "{}", pod.name());
            }
            assert!(world.stateful_set(set).is_controlled_by(owner));
            assert!(world.get(Kind::Service, set).is_controlled_by(owner));
            for group in 0..2 {
                let name = format!("{set}-{group}");
                assert!(world.stateful_set(&name).is_controlled_by(world.pod(&name)));
            }
        }
        let owned = world.all(Kind::Revision).filter(|revision| {
            revision
                .controller()
                .is_some_and(|owner| owner["kind"] == "LeaderWorkerSet")
        });
        assert_eq!(owned.count(), 5);
        assert_eq!(world.names(Kind::StatefulSet).len(), 15);
        assert_eq!(world.names(Kind::Service).len(), 5);
        Ok(())
    })
    .await
}
