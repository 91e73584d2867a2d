//! Every manifest under examples/: it is valid, and the pods that come of it get what their launch commands need.
//!
//! Pods are made as in a cluster: the plans of both controllers make the StatefulSets, and admission completes the pods.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lws_core::admission::{Environment, pod};
use lws_core::cache::{Cache, Change};
use lws_core::intent::{Intent, Kind as ObjectKind, Plan};
use lws_core::model::{Lws, Node, ObjectKey};
use lws_core::{group, leaderworkerset};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::cluster::Kind;
use crate::manifest::{self, Manifest};
use crate::validate::{self, Assumed, Provider};

const NAMESPACE: &str = "demo";

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path
            .extension()
            .is_some_and(|extension| extension == "yaml")
        {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

#[test]
fn kc_examples_are_valid_and_described() {
    let files = files(&examples());
    assert!(files.len() >= 15, "{files:?}");
    // As docs/gang-scheduling.md has the manager configured.
    let gangs = Assumed {
        scheduler_provider: Some(Provider::Kubernetes),
    };
    for file in files {
        let has_gangs = file.starts_with(examples().join("gang"));
        let assumed = if has_gangs { gangs } else { Assumed::default() };
        for manifest in manifest::read(&file).unwrap() {
            let judgement = validate::judge(&manifest, None, assumed);
            assert_eq!(judgement.denial, None, "{}", file.display());
            assert_eq!(
                judgement.warnings,
                Vec::<String>::new(),
                "{}",
                file.display()
            );
        }
    }
}

fn of<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// The one object of a kind that a plan creates.
fn created(plan: &Plan, wanted: ObjectKind) -> Option<Value> {
    plan.steps.iter().find_map(|step| match &step.intent {
        Intent::Create { target, body, .. } if target.kind == wanted => Some((**body).clone()),
        _ => None,
    })
}

fn with_identity(mut object: Value, uid: &str) -> Value {
    object["metadata"]["uid"] = json!(uid);
    object["metadata"]["resourceVersion"] = json!("1");
    object["metadata"]["namespace"] = json!(NAMESPACE);
    object
}

/// A pod of a StatefulSet, as admission leaves it.
fn pod(set: &Value, ordinal: u32) -> Value {
    let name = format!("{}-{ordinal}", set["metadata"]["name"].as_str().unwrap());
    let mut pod = with_identity(set["spec"]["template"].clone(), &name);
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    pod["metadata"]["name"] = json!(name);
    pod["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": set["metadata"]["name"], "uid": set["metadata"]["uid"], "controller": true}]);
    pod["spec"]["hostname"] = json!(name);
    pod["spec"]["subdomain"] = set["spec"]["serviceName"].clone();
    let request = pod::Request {
        pod: &pod,
        namespace: NAMESPACE,
        random: 7,
    };
    if let Some(patch) = pod::mutate(&request, &Environment::default()).unwrap() {
        json_patch::patch(&mut pod, &patch).unwrap();
    }
    pod
}

/// The leader and the workers of group 0.
fn first_group(manifest: &Manifest) -> Vec<Value> {
    let set: Lws = of::<lws_api::leaderworkerset::LeaderWorkerSet>(with_identity(
        validate::complete(manifest),
        "set",
    ))
    .into();
    let size = set.spec.size();
    let key = set.key().clone();
    let mut cache = Cache::default();
    cache.apply_sets(Change::Applied(set));
    let snapshot = leaderworkerset::observe(&key, &cache).unwrap();
    let plan = leaderworkerset::plan(&snapshot, Timestamp::UNIX_EPOCH).plan;
    let revision = created(&plan, ObjectKind::ControllerRevision).unwrap();
    cache.apply_revisions(Change::Applied(
        of::<ControllerRevision>(with_identity(revision, "revision")).into(),
    ));
    let leaders = with_identity(created(&plan, ObjectKind::StatefulSet).unwrap(), "leaders");
    cache.apply_stateful_sets(Change::Applied(of::<StatefulSet>(leaders.clone()).into()));
    let mut leader = pod(&leaders, 0);
    leader["spec"]["nodeName"] = json!("n1");
    let labels = json!({"example.com/rack": "r1", "cloud.google.com/gke-nodepool": "p1"});
    let node: ObjectMeta = of(json!({"name": "n1", "uid": "n1", "labels": labels}));
    cache.apply_nodes(Change::Applied(Node::new(&node)));
    cache.apply_pods(Change::Applied(of::<Pod>(leader.clone()).into()));
    let leader_key = ObjectKey::new(NAMESPACE, leader["metadata"]["name"].as_str().unwrap());
    let snapshot = group::observe(&leader_key, &cache).unwrap();
    let plan = group::plan(&snapshot, Timestamp::UNIX_EPOCH).plan;
    let mut pods = vec![leader];
    if let Some(workers) = created(&plan, ObjectKind::StatefulSet) {
        let workers = with_identity(workers, "workers");
        pods.extend((1..size.unsigned_abs()).map(|ordinal| pod(&workers, ordinal)));
    }
    pods
}

/// The command line of the first container with variables expanded, as the kubelet does it.
fn command(pod: &Value) -> String {
    let container = &pod["spec"]["containers"][0];
    let words = ["command", "args"]
        .into_iter()
        .flat_map(|list| container[list].as_array().cloned().unwrap_or_default());
    let words: Vec<String> = words
        .map(|word| word.as_str().unwrap().to_owned())
        .collect();
    let mut line = words.join(" ");
    for (name, value) in variables(pod) {
        line = line.replace(&format!("$({name})"), &value);
    }
    line
}

/// Variables of the first container, those of the downward API included.
fn variables(pod: &Value) -> BTreeMap<String, String> {
    let list = pod["spec"]["containers"][0]["env"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let value = |variable: &Value| match variable["value"].as_str() {
        Some(value) => value.to_owned(),
        None => {
            let path = variable
                .pointer("/valueFrom/fieldRef/fieldPath")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let label = path
                .strip_prefix("metadata.labels['")
                .and_then(|label| label.strip_suffix("']"))
                .unwrap_or_default();
            pod["metadata"]["labels"][label]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        }
    };
    list.iter()
        .map(|variable| {
            (
                variable["name"].as_str().unwrap().to_owned(),
                value(variable),
            )
        })
        .collect()
}

fn example(file: &str) -> Vec<Value> {
    let manifests = manifest::read(&examples().join(file)).unwrap();
    let set = manifests
        .iter()
        .find(|manifest| manifest.kind == Kind::LeaderWorkerSet)
        .unwrap();
    first_group(set)
}

/// USR-1, USR-2, IM-1 … IM-6: per file, parts of the command line of every pod of the first group.
#[test]
fn kue_usr_1_usr_2_launch_commands_of_the_examples() {
    let rows: [(&str, &[&[&str]]); 6] = [
        (
            "vllm/gpu.yaml",
            &[
                &[
                    "vllm serve",
                    "--port=8080",
                    "--nnodes=2 ",
                    "--node-rank=0 ",
                    "--master-addr=vllm-0.vllm.demo",
                ],
                &[
                    "vllm serve",
                    "--headless",
                    "--nnodes=2 ",
                    "--node-rank=1 ",
                    "--master-addr=vllm-0.vllm.demo",
                ],
            ],
        ),
        (
            "vllm/ray.yaml",
            &[
                &["multi-node-serving.sh leader --ray_cluster_size=2; vllm serve"],
                &["multi-node-serving.sh worker --ray_address=vllm-ray-0.vllm-ray.demo"],
            ],
        ),
        (
            "vllm/tpu.yaml",
            &[
                &["leader --ray_cluster_size=4;"],
                &["worker --ray_address=vllm-tpu-0.vllm-tpu.demo"],
                &["worker --ray_address=vllm-tpu-0.vllm-tpu.demo"],
                &["worker --ray_address=vllm-tpu-0.vllm-tpu.demo"],
            ],
        ),
        (
            "sglang/lws.yaml",
            &[
                &[
                    "--dist-init-addr=sglang-0.sglang.demo:20000",
                    "--nnodes=2 ",
                    "--node-rank=0 ",
                    "--port=40000",
                ],
                &[
                    "--dist-init-addr=sglang-0.sglang.demo:20000",
                    "--nnodes=2 ",
                    "--node-rank=1",
                ],
            ],
        ),
        (
            "tensorrt-llm/lws.yaml",
            &[&["--group-size=2", "--group-key="], &["worker"]],
        ),
        (
            "llamacpp/lws.yaml",
            &[
                &["address='llamacpp-llama3-8b-0.llamacpp-llama3-8b.demo'; size='5'"],
                &["rpc-server", "50052"],
                &["rpc-server"],
                &["rpc-server"],
                &["rpc-server"],
            ],
        ),
    ];
    for (file, expected) in rows {
        let pods = example(file);
        assert_eq!(pods.len(), expected.len(), "{file}");
        for (pod, parts) in pods.iter().zip(expected) {
            let line = command(pod);
            for part in *parts {
                assert!(line.contains(part), "{file}: {part} in {line}");
            }
            assert!(!line.contains("$(LWS_"), "{file}: {line}");
        }
    }
}

#[test]
fn pod_tpu_slice_of_the_example() {
    let pods = example("vllm/tpu.yaml");
    let hosts =
        "vllm-tpu-0.vllm-tpu,vllm-tpu-0-1.vllm-tpu,vllm-tpu-0-2.vllm-tpu,vllm-tpu-0-3.vllm-tpu";
    for (pod, id) in pods.iter().zip(["0", "1", "2", "3"]) {
        let variables = variables(pod);
        assert_eq!(
            (
                variables["TPU_WORKER_ID"].as_str(),
                variables["TPU_WORKER_HOSTNAMES"].as_str()
            ),
            (id, hosts)
        );
    }
}

/// IM-5: the key is there at admission, and the same in the whole group.
#[test]
fn pod_group_key_of_the_example() {
    let pods = example("tensorrt-llm/lws.yaml");
    let key = |pod: &Value| {
        pod["metadata"]["labels"]["leaderworkerset.sigs.k8s.io/group-key"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(key(&pods[0]).len(), 40);
    assert_eq!(key(&pods[0]), key(&pods[1]));
    assert_eq!(variables(&pods[0])["GROUP_KEY"], key(&pods[0]));
}

/// IM-6: names of workers follow from the address of the leader.
#[test]
fn kue_usr_2_worker_names_of_the_example() {
    let pods = example("llamacpp/lws.yaml");
    for (index, pod) in pods.iter().enumerate().skip(1) {
        let address = format!(
            "{}.{}",
            pod["spec"]["hostname"].as_str().unwrap(),
            pod["spec"]["subdomain"].as_str().unwrap()
        );
        assert_eq!(
            address,
            format!("llamacpp-llama3-8b-0-{index}.llamacpp-llama3-8b")
        );
    }
}

/// DOC-1: each folder is described.
#[test]
fn kc_examples_have_a_readme() {
    let index = std::fs::read_to_string(examples().join("README.md")).unwrap();
    for entry in std::fs::read_dir(examples()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            assert!(
                index.contains(&format!("({name})")),
                "{name} is not in the index"
            );
            assert!(path.join("README.md").is_file(), "{name} has no README.md");
        }
    }
}
