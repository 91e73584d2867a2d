//! What a settled set costs.

use std::time::Duration;

use anyhow::Result;
use lws_e2e::{Manifest, on_own_cluster};

#[tokio::test]
async fn settled_sets_cost_no_requests() -> Result<()> {
    on_own_cluster("idle", async |bench| {
        bench.create(Manifest::new("demo", 2, 3)).await?;
        bench.create(Manifest::new("solo", 2, 1)).await?;
        for set in ["demo", "solo"] {
            bench.until_available(set).await?;
        }
        // Events may be sent late, joined with others of the same second.
        bench.quiet_for(Duration::from_secs(5)).await?;
        let log = bench.plant().audit_log();
        let position = log.position()?;
        bench.pass(Duration::from_secs(60)).await;
        let requests: Vec<_> = log
            .since(position)?
            .into_iter()
            .filter(|request| request.is_ours())
            .collect();
        assert!(
            requests.iter().any(|request| request.resource == "leases"),
            "the manager is at work and holds its Lease"
        );
        let others: Vec<_> = requests
            .iter()
            .filter(|request| request.resource != "leases" && request.verb != "watch")
            .collect();
        assert!(others.is_empty(), "{others:?}");
        Ok(())
    })
    .await
}
