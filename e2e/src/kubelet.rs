//! The test as kubelet: it sets what a kubelet reports of pods, and holds deletions back.

use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use lws_local_cluster::HOLD_DELETION;
use serde_json::{Value, json};

use crate::{Bench, Kind, Object};

impl Bench {
    /// READY(pod), as soon as it is bound to a node.
    pub async fn make_ready(&self, name: &str) -> Result<()> {
        let pod = self.bound(name).await?;
        let status = json!({
            "phase": "Running",
            "startTime": now(),
            "conditions": conditions(&pod, "True"),
            "containerStatuses": statuses(&pod, "containers", "containerStatuses"),
            "initContainerStatuses": statuses(&pod, "initContainers", "initContainerStatuses"),
        });
        self.report(&pod, status).await
    }

    /// UNREADY(pod).
    pub async fn make_unready(&self, name: &str) -> Result<()> {
        let pod = self.bound(name).await?;
        self.report(&pod, json!({"conditions": conditions(&pod, "False")}))
            .await
    }

    /// READY(group).
    pub async fn make_group_ready(&self, set: &str, group: i64) -> Result<()> {
        let names: Vec<String> = {
            let world = self.world();
            let pods = world.group(set, group);
            pods.iter().map(|pod| pod.name().to_owned()).collect()
        };
        for name in names {
            self.make_ready(&name).await?;
        }
        Ok(())
    }

    /// RESTART(pod, container): it ended with code 137 (`OOMKilled`) and was started once more.
    pub async fn restart(&self, name: &str, container: &str) -> Result<()> {
        let pod = self.bound(name).await?;
        let lists = [
            ("containers", "containerStatuses"),
            ("initContainers", "initContainerStatuses"),
        ];
        for (list, field) in lists {
            let mut statuses = statuses(&pod, list, field);
            let entries = statuses.as_array_mut().context("statuses are a list")?;
            if let Some(entry) = entries.iter_mut().find(|entry| entry["name"] == container) {
                restarted(entry);
                return self.report(&pod, json!({field: statuses})).await;
            }
        }
        bail!("pod {name} has no container {container}")
    }

    /// FAILED(pod): evicted.
    pub async fn fail(&self, name: &str) -> Result<()> {
        let pod = self.bound(name).await?;
        let status = json!({
            "phase": "Failed",
            "reason": "Evicted",
            "message": "The node was low on resource: memory.",
            "conditions": conditions(&pod, "False"),
        });
        self.report(&pod, status).await
    }

    /// The containers of a pod that is kept while terminating have ended.
    pub async fn end(&self, name: &str) -> Result<()> {
        let pod = self.world().pod(name).clone();
        let status = json!({"phase": "Failed", "conditions": conditions(&pod, "False")});
        self.report(&pod, status).await
    }

    /// HOLD: deletions of these pods do not finish.
    pub async fn hold(&self, names: &[&str]) -> Result<()> {
        for name in names {
            self.annotate(Kind::Pod, name, json!({HOLD_DELETION: "true"}))
                .await?;
        }
        Ok(())
    }

    /// ACK: held deletions of these pods finish.
    pub async fn release(&self, names: &[&str]) -> Result<()> {
        for name in names {
            self.annotate(Kind::Pod, name, json!({HOLD_DELETION: null}))
                .await?;
        }
        Ok(())
    }

    async fn bound(&self, name: &str) -> Result<Object> {
        self.until(&format!("pod {name} is bound to a node"), |world| {
            world
                .find(Kind::Pod, name)
                .is_some_and(|pod| !pod.text("/spec/nodeName").is_empty() && !pod.is_terminating())
        })
        .await?;
        let pod = self.world().pod(name).clone();
        Ok(pod)
    }

    /// A pod that was replaced meanwhile refuses the report.
    async fn report(&self, pod: &Object, status: Value) -> Result<()> {
        let patch = json!({"metadata": {"uid": pod.uid()}, "status": status});
        self.patch_status(Kind::Pod, pod.name(), patch).await?;
        Ok(())
    }
}

fn restarted(status: &mut Value) {
    let count = status["restartCount"].as_i64().unwrap_or_default() + 1;
    status["restartCount"] = count.into();
    status["lastState"] = json!({"terminated": {
        "exitCode": 137,
        "reason": "OOMKilled",
        "startedAt": now(),
        "finishedAt": now(),
    }});
}

fn now() -> String {
    Timestamp::now().to_string()
}

/// The pod's conditions, with those of a running pod set.
fn conditions(pod: &Object, ready: &str) -> Value {
    let set = [
        ("Initialized", "True"),
        ("ContainersReady", ready),
        ("Ready", ready),
    ];
    let known = pod.at("/status/conditions").as_array();
    let mut conditions: Vec<Value> = known
        .into_iter()
        .flatten()
        .filter(|condition| !set.iter().any(|(name, _)| condition["type"] == *name))
        .cloned()
        .collect();
    for (name, status) in set {
        conditions.push(json!({"type": name, "status": status, "lastTransitionTime": now()}));
    }
    Value::Array(conditions)
}

/// The statuses of the containers of one list of a pod; what is known stays.
fn statuses(pod: &Object, list: &str, field: &str) -> Value {
    let known = pod.at("/status")[field].as_array();
    let containers = pod.at("/spec")[list].as_array();
    let status = |container: &Value| {
        let mut entries = known.into_iter().flatten();
        match entries.find(|entry| entry["name"] == container["name"]) {
            Some(entry) => entry.clone(),
            None => json!({
                "name": container["name"],
                "image": container["image"],
                "imageID": "",
                "ready": true,
                "restartCount": 0,
                "state": {"running": {"startedAt": now()}},
            }),
        }
    };
    containers.into_iter().flatten().map(status).collect()
}
