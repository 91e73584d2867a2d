//! Whose is the object under a name that we need? (ORD-135; ownership is by UID)
//!
//! Decides from the object's metadata and the expected controller alone. Nothing that is not [`Ownership::Ours`] is ever written to, except that an
//! orphaned leader workload is adopted.

use std::collections::BTreeMap;

use lws_api::names::label;

use crate::model::{Meta, ObjectKey, Uid};

/// The controller that an object of ours has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Kind, e.g. `LeaderWorkerSet` or `Pod`.
    pub kind: &'static str,
    /// Name.
    pub name: String,
    /// UID.
    pub uid: Uid,
}

/// ORD-135: what an object under a wanted name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// Controlled by the expected UID; may be terminating.
    Ours,
    /// Of a predecessor, or terminating: it will be collected; wait.
    Leftover,
    /// Everything else: never touched.
    Foreign,
}

/// ORD-135: judges `meta` for the controller `expected`.
pub fn judge(meta: &Meta, expected: &Expected) -> Ownership {
    if meta.is_controlled_by(&expected.uid) {
        return Ownership::Ours;
    }
    let of_predecessor = meta
        .owner
        .as_ref()
        .is_some_and(|owner| owner.kind == expected.kind && owner.name.as_ref() == expected.name);
    if meta.is_terminating() || of_predecessor {
        Ownership::Leftover
    } else {
        Ownership::Foreign
    }
}

/// ORD-135: a leader workload without controller that is plainly that of the set `lws` is adopted. `selector` is its `matchLabels`.
pub fn is_orphan(
    meta: &Meta,
    selector: Option<&BTreeMap<String, String>>,
    lws: &ObjectKey,
) -> bool {
    !meta.is_terminating()
        && meta.owner.is_none()
        && meta.label(label::NAME) == lws.name.as_ref()
        && selector == Some(&leader_selector(lws))
}

/// Selector of the leader workload (ORD-60).
pub fn leader_selector(lws: &ObjectKey) -> BTreeMap<String, String> {
    BTreeMap::from([
        (label::NAME.to_owned(), lws.name.to_string()),
        (label::WORKER_INDEX.to_owned(), "0".to_owned()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::StatefulSet;
    use serde_json::json;

    fn set(mut metadata: serde_json::Value, selector: serde_json::Value) -> StatefulSet {
        metadata["labels"] = json!({label::NAME: "demo"});
        let object = json!({"metadata": metadata, "spec": {"selector": {"matchLabels": selector}}});
        serde_json::from_value::<k8s_openapi::api::apps::v1::StatefulSet>(object)
            .expect("a statefulset")
            .into()
    }

    fn owned(kind: &str, name: &str, uid: &str) -> serde_json::Value {
        json!({"ownerReferences": [{"apiVersion": "v", "kind": kind, "name": name, "uid": uid, "controller": true}]})
    }

    #[test]
    fn ord_135_lws_api_31_ours_leftover_foreign() {
        let expected = Expected {
            kind: "Pod",
            name: "demo-0".into(),
            uid: "new".into(),
        };
        let judged = |metadata| judge(&set(metadata, json!({})).meta, &expected);
        assert_eq!(judged(owned("Pod", "demo-0", "new")), Ownership::Ours);
        assert_eq!(judged(owned("Pod", "demo-0", "old")), Ownership::Leftover);
        assert_eq!(judged(owned("Pod", "demo-1", "old")), Ownership::Foreign);
        assert_eq!(
            judged(owned("LeaderWorkerSet", "demo-0", "old")),
            Ownership::Foreign
        );
        assert_eq!(judged(json!({})), Ownership::Foreign);
        assert_eq!(
            judged(json!({"deletionTimestamp": "2026-01-01T00:00:00Z"})),
            Ownership::Leftover
        );
    }

    #[test]
    fn ord_135_lws_api_31_orphan_needs_label_selector_and_no_controller() {
        let key = ObjectKey::new("ns", "demo");
        let selector = json!(leader_selector(&key));
        let is_orphan =
            |set: &StatefulSet, lws: &ObjectKey| is_orphan(&set.meta, set.selector.as_ref(), lws);
        assert!(is_orphan(&set(json!({}), selector.clone()), &key));
        assert!(!is_orphan(&set(json!({}), json!({"app": "x"})), &key));
        assert!(!is_orphan(
            &set(owned("LeaderWorkerSet", "demo", "old"), selector.clone()),
            &key
        ));
        assert!(!is_orphan(
            &set(
                json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}),
                selector.clone()
            ),
            &key
        ));
        assert!(!is_orphan(
            &set(json!({}), selector),
            &ObjectKey::new("ns", "other")
        ));
    }
}
