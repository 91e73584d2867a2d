//! Objects that are no business of ours.

use anyhow::Result;
use lws_api::names::{annotation, label};
use lws_e2e::{Kind, Manifest, Scraper, on_own_cluster};
use serde_json::{Value, json};

const OTHERS: usize = 20;
const CHANGES: usize = 10;
/// Counters of errors; and what was done at all.
const FLAT: [&str; 4] = [
    "controller_runtime_reconcile_errors_total",
    "controller_runtime_terminal_reconcile_errors_total",
    "controller_runtime_reconcile_panics_total",
    "workqueue_retries_total",
];

fn workload(kind: &str, name: &str) -> Value {
    let labels = json!({"app": name});
    let container = json!({"name": "c", "image": "nginx:1.27"});
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [container]}});
    json!({
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template},
    })
}

fn ghost() -> Value {
    let labels = json!({label::NAME: "ghost", label::WORKER_INDEX: "0"});
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "ghost-0", "labels": labels, "annotations": {annotation::SIZE: "1"}},
        "spec": {"containers": [{"name": "c", "image": "nginx:1.27"}]},
    })
}

#[tokio::test]
async fn c36_unlabelled_and_foreign_objects_cause_no_errors() -> Result<()> {
    on_own_cluster("unlabelled", async |bench| {
        let (target, port) = (bench.plant().target(), bench.plant().metrics_port()?);
        let scraper = Scraper::bound(target)?;
        bench.create(Manifest::new("demo", 1, 1)).await?;
        bench.until_available("demo").await?;
        bench.settled().await?;
        let before = scraper.samples(port).await?;
        let (log, position) = (
            bench.plant().manager_log().len(),
            bench.plant().audit_log().position()?,
        );

        let names: Vec<String> = (0..OTHERS).map(|index| format!("other-{index}")).collect();
        for name in &names {
            bench.create(workload("StatefulSet", name)).await?;
            bench.create(workload("Deployment", name)).await?;
        }
        bench.create(ghost()).await?;
        for change in 0..CHANGES {
            for name in &names {
                let value = json!({"change": change.to_string()});
                bench
                    .annotate(Kind::StatefulSet, name, value.clone())
                    .await?;
                bench.annotate(Kind::Deployment, name, value).await?;
            }
        }
        bench.settled().await?;

        let after = scraper.samples(port).await?;
        for counter in FLAT {
            for (sample, value) in after
                .iter()
                .filter(|(sample, _)| sample.starts_with(counter))
            {
                assert_eq!(before.get(sample), Some(value), "{sample}");
            }
        }
        let log = bench.plant().manager_log()[log..].to_owned();
        for line in log.lines() {
            // Pods with our label pass our admission, whoever makes them.
            let is_reconciled = line.contains("ghost") && !line.contains("lws_webhook");
            let is_told = line.contains("ERROR") || line.contains("WARN") || is_reconciled;
            assert!(!is_told, "{line}");
        }
        for request in bench.plant().audit_log().since(position)? {
            let is_allowed = request.resource == "leases" || request.resource.ends_with("reviews");
            assert!(
                !request.is_ours() || !request.is_write() || is_allowed,
                "{request:?}"
            );
        }
        Ok(())
    })
    .await
}
