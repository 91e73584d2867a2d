//! DisaggregatedSets with their children and scalers, as the API server would show them. Everything is in namespace `ns`, and the UID of an
//! object is its name followed by `-uid`.

use std::sync::Arc;

use lws_api::disaggregatedset::DisaggregatedSet;
use lws_api::leaderworkerset::LeaderWorkerSet;
use lws_api::names::{ds_annotation, ds_label};
use lws_api::rolescaler::DisaggregatedSetRoleScaler;
use serde_json::{Value, json};

use crate::build::child_set::{ChildSet, child_set};
use crate::disaggregatedset::Snapshot;
use crate::disaggregatedset::children::{Child, Children};
use crate::disaggregatedset::readiness::Group;
use crate::disaggregatedset::revision::Target;
use crate::model::{Ds, Lws, Pod, RoleScaler};

/// A DisaggregatedSet whose revisions are of our making.
pub(crate) fn ds(name: &str, spec: Value) -> Ds {
    ds_with(name, spec, json!({}))
}

/// The same with a patch of the whole object.
pub(crate) fn ds_with(name: &str, spec: Value, patch: Value) -> Ds {
    let metadata = json!({
        "namespace": "ns", "name": name, "uid": format!("{name}-uid"), "resourceVersion": "1", "generation": 1,
        "annotations": {ds_annotation::REVISION_HASH_VERSION: "v2"},
    });
    let mut object = json!({"apiVersion": "disaggregatedset.x-k8s.io/v1", "kind": "DisaggregatedSet",
        "metadata": metadata, "spec": spec});
    json_patch::merge(&mut object, &patch);
    serde_json::from_value::<DisaggregatedSet>(object)
        .expect("a set")
        .into()
}

/// The set of REV-8, with patches of the specs of its roles.
pub(crate) fn nginx(prefill: Value, decode: Value) -> Ds {
    let container = json!({"name": "nginx", "image": "nginx:1.27",
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}}});
    let role = |name: &str, replicas: i32, patch: &Value| {
        let template = json!({"size": 1, "workerTemplate": {"spec": {"containers": [container]}}});
        let mut spec = json!({"replicas": replicas, "leaderWorkerTemplate": template});
        json_patch::merge(&mut spec, patch);
        json!({"name": name, "spec": spec})
    };
    let roles = [role("prefill", 1, &prefill), role("decode", 2, &decode)];
    ds("nginx-disagg", json!({"roles": roles}))
}

/// A LeaderWorkerSet with a patch of the whole object.
pub(crate) fn lws(name: &str, patch: Value) -> Arc<Lws> {
    let template = json!({"workerTemplate": {"spec": {"containers": []}}});
    let mut object = json!({
        "apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet",
        "metadata": {"namespace": "ns", "name": name, "uid": format!("{name}-uid"), "resourceVersion": "1", "generation": 1},
        "spec": {"leaderWorkerTemplate": template},
    });
    json_patch::merge(&mut object, &patch);
    Arc::new(
        serde_json::from_value::<LeaderWorkerSet>(object)
            .expect("a set")
            .into(),
    )
}

/// A child of the set `set` with a patch of the whole object.
pub(crate) fn child(set: &str, slice: u32, revision: &str, role: &str, patch: Value) -> Child {
    let owner = json!({"apiVersion": "disaggregatedset.x-k8s.io/v1", "kind": "DisaggregatedSet", "name": set,
        "uid": format!("{set}-uid"), "controller": true});
    let labels = json!({
        ds_label::NAME: set, ds_label::SLICE: slice.to_string(), ds_label::REVISION: revision, ds_label::ROLE: role,
    });
    let mut object = json!({"metadata": {"labels": labels, "ownerReferences": [owner]}});
    json_patch::merge(&mut object, &patch);
    let lws = lws(&format!("{set}-{slice}-{revision}-{role}"), object);
    Child { lws, slice }
}

/// A child as we create it for a role of `set`, standing for `revision`.
pub(crate) fn built_child(set: &Ds, slice: u32, revision: &str, role: &str) -> Child {
    let role = set
        .spec
        .roles
        .iter()
        .find(|other| other.name == role)
        .expect("a role");
    let replicas = role.spec.as_ref().map_or(1, |spec| spec.replicas());
    let replicas = u32::try_from(replicas).expect("a number of groups");
    let object = child_set(&ChildSet {
        set,
        role,
        slice,
        revision,
        content_hash: revision,
        replicas,
        initial_replicas: replicas,
        budget: (0, 1),
    });
    let name = object["metadata"]["name"]
        .as_str()
        .expect("a name")
        .to_owned();
    Child {
        lws: lws(&name, object),
        slice,
    }
}

/// The same as upstream would have made it: without an annotation of ours.
pub(crate) fn upstream_child(set: &Ds, slice: u32, revision: &str, role: &str) -> Child {
    let child = built_child(set, slice, revision, role);
    patched(
        &child,
        json!({"metadata": {"annotations": {ds_annotation::CONTENT_HASH: null}}}),
    )
}

/// A child with a merge patch on its labels, annotations and spec.
pub(crate) fn patched(child: &Child, patch: Value) -> Child {
    let meta = &child.lws.meta;
    let pairs = |pairs: &crate::model::Pairs| -> Value {
        pairs
            .iter()
            .map(|(key, value)| (key.to_owned(), json!(value)))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    let owner = meta.owner.as_ref().map(|owner| {
        json!([{"apiVersion": owner.api_version, "kind": owner.kind, "name": &*owner.name, "uid": owner.uid.as_str(), "controller": true}])
    });
    let mut object = json!({
        "metadata": {"labels": pairs(&meta.labels), "annotations": pairs(&meta.annotations), "ownerReferences": owner},
        "spec": child.lws.spec,
        "status": child.lws.status,
    });
    json_patch::merge(&mut object, &patch);
    Child {
        lws: lws(child.name(), object),
        slice: child.slice,
    }
}

/// A scaler of a role, or of a sub-role if that is not empty.
pub(crate) fn scaler(set: &str, role: &str, sub_role: &str, replicas: i32) -> Arc<RoleScaler> {
    let name = if sub_role.is_empty() {
        format!("{set}-{role}")
    } else {
        format!("{set}-{role}-{sub_role}")
    };
    scaler_object(&name, scaler_json(set, role, sub_role, replicas))
}

fn scaler_json(set: &str, role: &str, sub_role: &str, replicas: i32) -> Value {
    let mut labels = json!({ds_label::NAME: set, ds_label::ROLE: role});
    if !sub_role.is_empty() {
        labels[ds_label::SUBROLE] = json!(sub_role);
    }
    let owner = json!({"apiVersion": "disaggregatedset.x-k8s.io/v1", "kind": "DisaggregatedSet", "name": set,
        "uid": format!("{set}-uid"), "controller": true});
    json!({"metadata": {"labels": labels, "ownerReferences": [owner]}, "spec": {"replicas": replicas}})
}

fn scaler_object(name: &str, patch: Value) -> Arc<RoleScaler> {
    let mut object = json!({
        "apiVersion": "disaggregatedset.x-k8s.io/v1", "kind": "DisaggregatedSetRoleScaler",
        "metadata": {"namespace": "ns", "name": name, "uid": format!("{name}-uid"), "resourceVersion": "1", "generation": 1},
    });
    json_patch::merge(&mut object, &patch);
    Arc::new(
        serde_json::from_value::<DisaggregatedSetRoleScaler>(object)
            .expect("a scaler")
            .into(),
    )
}

/// A scaler with a merge patch.
pub(crate) fn patched_scaler(scaler: &RoleScaler, patch: Value) -> Arc<RoleScaler> {
    let (role, sub_role) = scaler.drives();
    let set = scaler.meta.disaggregated_set_key().expect("a set");
    let mut object = scaler_json(&set.name, role, sub_role, scaler.replicas);
    object["status"] = json!(scaler.status);
    json_patch::merge(&mut object, &patch);
    scaler_object(&scaler.key().name, object)
}

/// A snapshot of `set` with these children.
pub(crate) fn snapshot(set: Ds, children: Vec<Child>) -> Snapshot {
    let children = Children {
        list: children,
        without_slice: Vec::new(),
    };
    let target = Target::of(&set, &children);
    Snapshot {
        set: Arc::new(set),
        children,
        target,
        occupied: Default::default(),
        scalers: Vec::new(),
        named_scalers: Default::default(),
        told_of: Vec::new(),
        observations: Default::default(),
    }
}

/// A Ready group of size 1.
pub(crate) fn ready_group(ordinal: u32) -> Group {
    labelled_group("x", ordinal, &[""])
}

/// A Ready group of the set `set` with one pod per sub-role label, the leader first; an empty label is none.
pub(crate) fn labelled_group(set: &str, ordinal: u32, labels: &[&str]) -> Group {
    let leader = format!("{set}-{ordinal}");
    let pods = labels.iter().enumerate().map(|(index, label)| {
        let name = if index == 0 {
            leader.clone()
        } else {
            format!("{leader}-{index}")
        };
        let mut object = json!({"metadata": {
            "namespace": "ns", "name": name, "uid": format!("{name}-uid"), "resourceVersion": "4", "labels": {},
        }});
        if !label.is_empty() {
            object["metadata"]["labels"][ds_label::SUBROLE] = json!(label);
        }
        let pod: k8s_openapi::api::core::v1::Pod = serde_json::from_value(object).expect("a pod");
        Arc::new(Pod::from(pod))
    });
    let mut pods = pods.collect::<Vec<_>>().into_iter();
    Group {
        leader: pods.next().expect("a leader"),
        workers: pods.collect(),
        ordinal: Some(ordinal),
        is_ready: true,
        is_staying: true,
    }
}
