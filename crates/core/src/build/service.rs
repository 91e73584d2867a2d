//! Headless Services (ORD-70 … ORD-74).

use std::collections::BTreeMap;

use lws_api::names::label;
use serde_json::{Map, Value, json};

use super::owner_reference;
use crate::intent::Kind;
use crate::model::{Lws, Meta, Pod, Service};

/// ORD-70: selector of the Service that all groups share.
pub fn shared_selector(lws: &Lws) -> BTreeMap<String, String> {
    BTreeMap::from([(label::NAME.to_owned(), lws.key().name.to_string())])
}

/// ORD-71: selector of the Service of one group.
pub fn replica_selector(lws: &Lws, leader: &Pod) -> BTreeMap<String, String> {
    let mut selector = shared_selector(lws);
    selector.insert(
        label::GROUP_INDEX.to_owned(),
        leader.meta.label(label::GROUP_INDEX).to_owned(),
    );
    selector
}

/// ORD-70: the Service that all groups of a set share.
pub fn shared_service(lws: &Lws) -> Value {
    service(
        lws,
        &lws.key().name,
        &shared_selector(lws),
        Kind::LeaderWorkerSet,
        &lws.meta,
    )
}

/// ORD-71: the Service of one group, named after the leader's subdomain.
pub fn replica_service(lws: &Lws, leader: &Pod) -> Value {
    service(
        lws,
        &leader.subdomain,
        &replica_selector(lws, leader),
        Kind::Pod,
        &leader.meta,
    )
}

/// ORD-72.
fn service(
    lws: &Lws,
    name: &str,
    selector: &BTreeMap<String, String>,
    owner_kind: Kind,
    owner: &Meta,
) -> Value {
    json!({
        "apiVersion": Kind::Service.api_version(),
        "kind": Kind::Service.name(),
        "metadata": {
            "name": name,
            "namespace": &*lws.key().namespace,
            "labels": {label::NAME: &*lws.key().name},
            "ownerReferences": owner_reference(owner_kind, owner),
        },
        "spec": {"clusterIP": "None", "selector": selector, "publishNotReadyAddresses": true},
    })
}

/// ORD-73: the merge patch that gives a Service of ours back what peers rely on, if it lost it. Other edits stay.
pub fn repair(service: &Service, selector: &BTreeMap<String, String>) -> Option<Value> {
    if service.selector == *selector && service.publishes_not_ready {
        return None;
    }
    let foreign = service
        .selector
        .keys()
        .filter(|key| !selector.contains_key(*key))
        .map(|key| (key.clone(), Value::Null));
    let wanted = selector
        .iter()
        .map(|(key, value)| (key.clone(), json!(value)));
    let patch: Map<String, Value> = foreign.chain(wanted).collect();
    Some(json!({"spec": {"selector": patch, "publishNotReadyAddresses": true}}))
}
