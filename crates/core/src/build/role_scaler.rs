//! Scalers of roles (api-disaggregatedset section 8).

use lws_api::names::ds_label;
use serde_json::{Map, Value, json};

use super::owner_reference;
use crate::intent::Kind;
use crate::model::Ds;

/// SCR-4: name of the scaler of a role, or of a sub-role.
pub fn name(set: &str, role: &str, sub_role: Option<&str>) -> String {
    match sub_role {
        None => format!("{set}-{role}"),
        Some(sub_role) => format!("{set}-{role}-{sub_role}"),
    }
}

/// SCR-4, SCR-5: the scaler with `replicas` groups to begin with.
pub fn role_scaler(set: &Ds, role: &str, sub_role: Option<&str>, replicas: u32) -> Value {
    let key = set.key();
    let mut labels = Map::from_iter([
        (ds_label::NAME.to_owned(), json!(&*key.name)),
        (ds_label::ROLE.to_owned(), json!(role)),
    ]);
    labels.extend(sub_role.map(|sub_role| (ds_label::SUBROLE.to_owned(), json!(sub_role))));
    json!({
        "apiVersion": Kind::RoleScaler.api_version(),
        "kind": Kind::RoleScaler.name(),
        "metadata": {
            "name": name(&key.name, role, sub_role),
            "namespace": &*key.namespace,
            "labels": labels,
            "ownerReferences": owner_reference(Kind::DisaggregatedSet, &set.meta),
        },
        "spec": {"replicas": replicas},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disaggregatedset::tests::fixture::ds;

    #[test]
    fn ds_scr_4_scr_5_a_scaler_as_it_is_created() {
        let set = ds("pd", json!({"roles": []}));
        let scaler = role_scaler(&set, "decode", Some("long"), 3);
        assert_eq!(
            scaler,
            json!({
                "apiVersion": "disaggregatedset.x-k8s.io/v1",
                "kind": "DisaggregatedSetRoleScaler",
                "metadata": {
                    "name": "pd-decode-long",
                    "namespace": "ns",
                    "labels": {ds_label::NAME: "pd", ds_label::ROLE: "decode", ds_label::SUBROLE: "long"},
                    "ownerReferences": [{
                        "apiVersion": "disaggregatedset.x-k8s.io/v1", "kind": "DisaggregatedSet", "name": "pd",
                        "uid": "pd-uid", "controller": true, "blockOwnerDeletion": true,
                    }],
                },
                "spec": {"replicas": 3},
            })
        );
        let whole = role_scaler(&set, "decode", None, 0);
        assert_eq!(whole["metadata"]["name"], "pd-decode");
        assert_eq!(whole["metadata"]["labels"].get(ds_label::SUBROLE), None);
    }
}
