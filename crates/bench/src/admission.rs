//! How long the admission of one pod takes: the review is decoded, decided on, and the patch is encoded.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use lws_api::names::{annotation, label};
use lws_core::admission::{Environment, pod};
use serde_json::{Value, json};

use crate::samples::Samples;

const WARM_UP: u32 = 2_000;
const RUNS: u32 = 20_000;
/// One every 500 µs is 2,000 a second.
const PERIOD: Duration = Duration::from_micros(500);
const PACED_RUNS: u32 = 10_000;

/// Median of admissions one after the other, and the latency at 2,000 a second, counted from when each was due.
pub fn measure() -> Result<Value> {
    let review = serde_json::to_vec(&json!({"request": {"object": worker()}}))?;
    admit(&review)?;
    let run = || {
        black_box(admit(black_box(&review)).is_ok());
    };
    Samples::of(WARM_UP, run);
    let alone = Samples::of(RUNS, run);
    let paced = paced(run);
    Ok(json!({
        "medianMicroseconds": alone.microseconds(0.5),
        "p99Microseconds": alone.microseconds(0.99),
        "pacedP99Microseconds": paced.microseconds(0.99),
    }))
}

fn admit(review: &[u8]) -> Result<Vec<u8>> {
    let review: Value = serde_json::from_slice(review)?;
    let pod = review.pointer("/request/object").context("no object")?;
    let request = pod::Request {
        pod,
        namespace: "default",
        random: 1,
    };
    let patch = pod::mutate(&request, &Environment::default())?.context("nothing to add")?;
    Ok(serde_json::to_vec(&patch)?)
}

/// Waits for each due time on the core that does the work, as only a core of its own can.
fn paced(run: impl Fn()) -> Samples {
    let start = Instant::now();
    let mut samples = Samples::default();
    for index in 0..PACED_RUNS {
        let due = start + PERIOD * index;
        while Instant::now() < due {
            std::hint::spin_loop();
        }
        run();
        samples.add(due.elapsed());
    }
    samples
}

/// A worker as the StatefulSet controller sends it, of the size of those that serve models.
fn worker() -> Value {
    let variables: Vec<Value> = (0..12)
        .map(|index| json!({"name": format!("ENGINE_OPTION_{index}"), "value": "some value of an option"}))
        .collect();
    let container = |name: &str| {
        json!({
            "name": name, "image": "registry.example.com/serving/engine:v1.2.3", "env": variables,
            "args": ["--nnodes=$(LWS_GROUP_SIZE)", "--node-rank=$(LWS_WORKER_INDEX)", "--master-addr=$(LWS_LEADER_ADDRESS)"],
            "resources": {"limits": {"nvidia.com/gpu": "8", "memory": "512Gi"}, "requests": {"cpu": "64"}},
            "volumeMounts": [{"name": "models", "mountPath": "/models"}, {"name": "shm", "mountPath": "/dev/shm"}],
            "readinessProbe": {"httpGet": {"path": "/health", "port": 8000}, "periodSeconds": 10},
        })
    };
    let labels = json!({
        label::NAME: "llm", label::GROUP_INDEX: "3", label::GROUP_KEY: "689ce1b5e0c5dc0b3ab8f1c2c6bc4c11f7c3a9c2",
        label::REVISION: "6c8f7b9d5", "controller-revision-hash": "llm-3-7c9d8f6b5", "apps.kubernetes.io/pod-index": "2",
        "statefulset.kubernetes.io/pod-name": "llm-3-2",
    });
    let annotations = json!({
        annotation::SIZE: "4", annotation::LEADER_NAME: "llm-3", annotation::LEADER_ADDRESS: "llm-3.llm.default",
    });
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "llm-3-2", "namespace": "default", "labels": labels, "annotations": annotations},
        "spec": {
            "hostname": "llm-3-2", "subdomain": "llm", "containers": [container("engine"), container("proxy")],
            "initContainers": [container("download")],
            "volumes": [{"name": "models", "emptyDir": {}}, {"name": "shm", "emptyDir": {"medium": "Memory"}}],
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worker_gets_its_variables() {
        let review = serde_json::to_vec(&json!({"request": {"object": worker()}})).unwrap();
        let patch = String::from_utf8(admit(&review).unwrap()).unwrap();
        assert!(patch.contains("LWS_LEADER_ADDRESS"), "{patch}");
    }
}
