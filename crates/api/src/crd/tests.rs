use k8s_openapi::api::core::v1::{PersistentVolumeClaimSpec, PodSpec};
use schemars::JsonSchema;

use super::*;
use crate::wording;

mod limits;

const LWS: &str = "leaderworkerset.x-k8s.io_leaderworkersets.yaml";
const DS: &str = "disaggregatedset.x-k8s.io_disaggregatedsets.yaml";
const SCALER: &str = "disaggregatedset.x-k8s.io_disaggregatedsetrolescalers.yaml";

fn crd(file: &str) -> Value {
    all()
        .unwrap()
        .into_iter()
        .find(|crd| crd.file == file)
        .unwrap()
        .definition
}

fn schema(file: &str) -> Value {
    crd(file)["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
}

/// The schema of a field, `[]` standing for the items of a list.
fn field<'a>(schema: &'a Value, path: &str) -> &'a Value {
    path.split('.')
        .fold(schema, |schema, step| match step.strip_suffix("[]") {
            Some(list) => &schema["properties"][list]["items"],
            None => &schema["properties"][step],
        })
}

/// Calls `visit` with each schema below and including this one, and where it stands.
fn walk(schema: &Value, path: &str, visit: &mut dyn FnMut(&str, &Value)) {
    visit(path, schema);
    for (keyword, mark) in [("items", "[]"), ("additionalProperties", "{}")] {
        if schema[keyword].is_object() {
            walk(&schema[keyword], &format!("{path}{mark}"), visit);
        }
    }
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        walk(inner, &format!("{path}.{name}"), visit);
    }
}

fn paths_with(file: &str, keyword: &str) -> Vec<String> {
    let mut paths = Vec::new();
    walk(&schema(file), "", &mut |path, schema| {
        if schema.get(keyword).is_some() {
            paths.push(path.to_string());
        }
    });
    paths
}

#[test]
fn kue_usr_11_lws_names_and_subresources() {
    let crd = crd(LWS);
    assert_eq!(
        crd["metadata"]["name"],
        "leaderworkersets.leaderworkerset.x-k8s.io"
    );
    assert_eq!(crd["spec"]["scope"], "Namespaced");
    assert_eq!(
        crd["spec"]["names"],
        json!({"kind": "LeaderWorkerSet", "plural": "leaderworkersets", "singular": "leaderworkerset", "shortNames": ["lws"]})
    );
    assert_eq!(crd["spec"]["versions"].as_array().unwrap().len(), 1);
    let version = &crd["spec"]["versions"][0];
    assert_eq!(
        (&version["name"], &version["served"], &version["storage"]),
        (&json!("v1"), &json!(true), &json!(true))
    );
    assert_eq!(
        version["subresources"],
        json!({
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.hpaPodSelector",
            },
        })
    );
}

#[test]
fn kue_usr_11_lws_printer_columns_in_order() {
    assert_eq!(
        crd(LWS)["spec"]["versions"][0]["additionalPrinterColumns"],
        json!([
            {"name": "Ready", "type": "integer", "jsonPath": ".status.readyReplicas", "description": "Number of ready replicas"},
            {"name": "Desired", "type": "integer", "jsonPath": ".spec.replicas", "description": "Number of desired replicas"},
            {"name": "Up-to-date", "type": "integer", "jsonPath": ".status.updatedReplicas", "description": "Number of up-to-date replicas"},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ])
    );
}

#[test]
fn ds_names_columns_and_subresources() {
    let ds = crd(DS);
    assert_eq!(
        ds["spec"]["names"],
        json!({"kind": "DisaggregatedSet", "plural": "disaggregatedsets", "singular": "disaggregatedset"})
    );
    assert_eq!(
        ds["spec"]["versions"][0]["subresources"],
        json!({"status": {}})
    );
    assert_eq!(
        ds["spec"]["versions"][0]["additionalPrinterColumns"],
        json!([
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
            {"name": "Slices", "type": "integer", "jsonPath": ".spec.slices", "priority": 1},
            {"name": "Available", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Available\")].status", "priority": 1},
            {"name": "Progressing", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Progressing\")].status", "priority": 1},
        ])
    );
    let scaler = crd(SCALER);
    assert_eq!(scaler["spec"]["names"]["shortNames"], json!(["dsrs"]));
    assert_eq!(
        scaler["spec"]["versions"][0]["additionalPrinterColumns"],
        json!([
            {"name": "Desired", "type": "integer", "jsonPath": ".spec.replicas"},
            {"name": "Current", "type": "integer", "jsonPath": ".status.replicas"},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ])
    );
    assert_eq!(
        scaler["spec"]["versions"][0]["subresources"]["scale"],
        json!({
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        })
    );
}

#[test]
fn crd_1_nothing_is_nullable() {
    for file in [LWS, DS, SCALER] {
        assert_eq!(paths_with(file, "nullable"), Vec::<String>::new(), "{file}");
    }
}

#[test]
fn crd_2_required_members_of_the_root() {
    assert_eq!(schema(LWS)["required"], Value::Null);
    assert_eq!(schema(DS)["required"], json!(["spec"]));
    assert_eq!(schema(SCALER)["required"], Value::Null);
}

#[test]
fn crd_3_lists_of_templates_keep_their_keys() {
    let schema = schema(LWS);
    for (list, keys) in [
        ("containers", json!(["name"])),
        ("initContainers", json!(["name"])),
        ("ephemeralContainers", json!(["name"])),
        ("volumes", json!(["name"])),
        ("imagePullSecrets", json!(["name"])),
        ("schedulingGates", json!(["name"])),
        ("resourceClaims", json!(["name"])),
        ("hostAliases", json!(["ip"])),
        (
            "topologySpreadConstraints",
            json!(["topologyKey", "whenUnsatisfiable"]),
        ),
        ("containers[].env", json!(["name"])),
        ("containers[].ports", json!(["containerPort", "protocol"])),
        ("containers[].volumeMounts", json!(["mountPath"])),
        ("containers[].volumeDevices", json!(["devicePath"])),
    ] {
        for template in ["leaderTemplate", "workerTemplate"] {
            let list = field(
                &schema,
                &format!("spec.leaderWorkerTemplate.{template}.spec.{list}"),
            );
            assert_eq!(list["x-kubernetes-list-type"], "map");
            assert_eq!(list["x-kubernetes-list-map-keys"], keys);
        }
    }
    let tolerations = field(
        &schema,
        "spec.leaderWorkerTemplate.workerTemplate.spec.tolerations",
    );
    assert_eq!(tolerations["x-kubernetes-list-type"], "atomic");
}

/// A key of a list map must be required or have a default, or the API server refuses the CRD.
#[test]
fn crd_4_map_keys_are_required_or_defaulted() {
    for file in [LWS, DS, SCALER] {
        walk(&schema(file), "", &mut |path, list| {
            for key in list["x-kubernetes-list-map-keys"]
                .as_array()
                .into_iter()
                .flatten()
            {
                let items = &list["items"];
                let required = items["required"]
                    .as_array()
                    .is_some_and(|required| required.contains(key));
                let default = items["properties"][key.as_str().unwrap()].get("default");
                assert!(required || default.is_some(), "{file} {path} {key}");
            }
        });
    }
    let port = schema(LWS);
    let port = field(
        &port,
        "spec.leaderWorkerTemplate.workerTemplate.spec.containers[].ports[].protocol",
    );
    assert_eq!(port["default"], "TCP");
}

#[test]
fn crd_5_embedded_metadata_has_five_members() {
    let (lws, ds) = (schema(LWS), schema(DS));
    for metadata in [
        field(&lws, "spec.leaderWorkerTemplate.leaderTemplate.metadata"),
        field(&lws, "spec.leaderWorkerTemplate.workerTemplate.metadata"),
        field(
            &lws,
            "spec.leaderWorkerTemplate.volumeClaimTemplates[].metadata",
        ),
        field(
            &lws,
            "spec.leaderWorkerTemplate.workerTemplate.spec.volumes[].ephemeral.volumeClaimTemplate.metadata",
        ),
        field(&ds, "spec.roles[].metadata"),
        field(
            &ds,
            "spec.roles[].spec.leaderWorkerTemplate.workerTemplate.metadata",
        ),
    ] {
        let members: Vec<_> = metadata["properties"].as_object().unwrap().keys().collect();
        assert_eq!(
            members,
            ["annotations", "finalizers", "labels", "name", "namespace"]
        );
    }
}

#[test]
fn crd_6_int_or_strings_say_both_types() {
    for file in [LWS, DS] {
        walk(&schema(file), "", &mut |path, schema| {
            if schema.get("x-kubernetes-int-or-string").is_some() {
                assert_eq!(
                    schema["anyOf"],
                    json!([{"type": "integer"}, {"type": "string"}]),
                    "{path}"
                );
            }
        });
    }
    let schema = schema(LWS);
    let requests = field(
        &schema,
        "spec.leaderWorkerTemplate.workerTemplate.spec.containers[].resources.requests",
    );
    assert!(requests["additionalProperties"]["pattern"].is_string());
}

#[test]
fn crd_7_the_root_describes_every_object() {
    for file in [LWS, DS, SCALER] {
        let schema = schema(file);
        assert_eq!(schema.get("title"), None);
        assert!(schema["description"].is_string());
        assert_eq!(schema["properties"]["metadata"], json!({"type": "object"}));
        for member in ["apiVersion", "kind"] {
            assert_eq!(schema["properties"][member]["type"], "string");
            assert!(schema["properties"][member]["description"].is_string());
        }
    }
}

/// `kubectl explain` is useful for our fields (API-2), and its texts are not about our rules.
#[test]
fn lws_api_2_crd_8_our_fields_are_described_and_embedded_ones_are_not() {
    const EMBEDDED: [&str; 3] = [
        ".leaderTemplate.",
        ".workerTemplate.",
        ".volumeClaimTemplates[]",
    ];
    for file in [LWS, DS, SCALER] {
        walk(&schema(file), "", &mut |path, schema| {
            let description = schema["description"].as_str();
            if EMBEDDED.iter().any(|part| path.contains(part)) {
                assert_eq!(description, None, "{file} {path}");
            } else if !path.is_empty()
                && !path.ends_with("[]")
                && !path.ends_with("{}")
                && path != ".metadata"
            {
                let text =
                    description.unwrap_or_else(|| panic!("{file} {path} has no description"));
                for mark in ["API-", "SCP-", "SUB-", "SCR-", "(section", "\n"] {
                    assert!(!text.contains(mark), "{file} {path}: {text}");
                }
            }
        });
    }
}

#[test]
fn lws_api_2_crd_9_each_fits_the_annotation_of_client_side_apply() {
    for crd in all().unwrap() {
        let size = crd.definition.to_string().len();
        assert!(size < 200_000, "{} has {size} bytes", crd.file);
    }
}

#[test]
fn crd_10_no_placeholder_and_no_default_object_is_left() {
    for file in [LWS, DS, SCALER] {
        walk(&schema(file), "", &mut |path, schema| {
            let format = schema["format"].as_str().unwrap_or_default();
            assert!(!format.starts_with("lws-"), "{file} {path}");
            assert!(!schema["default"].is_object(), "{file} {path}");
        });
    }
}

/// CRD-11 (d): the fragments know every field that the client library of the same minor knows.
#[test]
fn crd_11_fragments_are_complete() {
    fn library<T: JsonSchema>() -> Value {
        let settings = schemars::generate::SchemaSettings::openapi3()
            .with(|settings| settings.inline_subschemas = true);
        settings
            .into_generator()
            .into_root_schema_for::<T>()
            .to_value()
    }
    let fragments = Fragments::read().unwrap();
    for (library, fragment) in [
        (
            library::<PodSpec>(),
            &fragments.pod_template["properties"]["spec"],
        ),
        (
            library::<PersistentVolumeClaimSpec>(),
            &fragments.claim_template["properties"]["spec"],
        ),
    ] {
        let mut known = Vec::new();
        walk(fragment, "", &mut |path, _| known.push(path.to_string()));
        let mut count = 0;
        walk(&library, "", &mut |path, _| {
            count += 1;
            let in_metadata = path.contains(".metadata.");
            assert!(
                in_metadata || known.iter().any(|known| known == path),
                "the fragment lacks {path}"
            );
        });
        assert!(count > 15, "the library's schema was not walked");
    }
}

#[test]
fn crd_11_rules_stand_at_the_root_of_lws_and_in_two_places_of_ds() {
    assert_eq!(paths_with(LWS, "x-kubernetes-validations"), [""]);
    assert_eq!(
        paths_with(DS, "x-kubernetes-validations"),
        [".spec", ".spec.roles[].subRoles[]"]
    );
    assert_eq!(
        paths_with(SCALER, "x-kubernetes-validations"),
        Vec::<String>::new()
    );
}

#[test]
fn lws_api_3_rules_read_neither_replicas_nor_budgets() {
    let schema = schema(LWS);
    for rule in schema["x-kubernetes-validations"].as_array().unwrap() {
        let text = rule["rule"].as_str().unwrap();
        for term in ["?replicas", "maxSurge", "maxUnavailable", "metadata"] {
            assert!(!text.contains(term), "{text}");
        }
    }
}

/// API-3: a rule about a spec by itself tolerates what was there; U-2, U-3 and U-5 compare with the old object always.
#[test]
fn lws_api_3_each_rule_has_its_words_and_its_field() {
    let schema = schema(LWS);
    let rules: Vec<_> = schema["x-kubernetes-validations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| {
            let text = |key: &str| rule[key].as_str().unwrap().to_string();
            (
                text("message"),
                text("fieldPath"),
                rule["optionalOldSelf"] == true,
            )
        })
        .collect();
    let subgroup = ".spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize";
    let template = |member: &str| format!(".spec.leaderWorkerTemplate.{member}");
    let expected = [
        (wording::SUBGROUP_SIZE_REQUIRED, subgroup.to_string(), true),
        (wording::SUBGROUP_SIZE_POSITIVE, subgroup.to_string(), true),
        (wording::SUBGROUP_SIZE_DIVIDES, subgroup.to_string(), true),
        (wording::SUBGROUP_SIZE_FITS, subgroup.to_string(), true),
        (wording::SUBGROUP_SIZE_EXCLUDED, subgroup.to_string(), true),
        (
            wording::MAX_GROUP_RESTARTS_POLICY,
            template("maxGroupRestarts"),
            true,
        ),
        (
            wording::RESTART_BACKOFF_POLICY,
            template("restartBackoff"),
            true,
        ),
        (
            wording::RESTART_BACKOFF_ORDER,
            template("restartBackoff.baseSeconds"),
            true,
        ),
        (
            wording::IMMEDIATE_NEEDS_HASH,
            ".spec.groupReplacementPolicy".to_string(),
            true,
        ),
        (
            wording::HASH_WITHOUT_CLAIMS,
            ".spec.groupIdentity".to_string(),
            true,
        ),
        (
            wording::HASH_WITHOUT_PARTITION,
            ".spec.groupIdentity".to_string(),
            true,
        ),
        (wording::SUBGROUP_POLICY_ADDED, subgroup.to_string(), false),
        (
            wording::SUBGROUP_POLICY_REMOVED,
            subgroup.to_string(),
            false,
        ),
        (wording::IMMUTABLE, ".spec.groupIdentity".to_string(), false),
    ]
    .map(|(message, field, lasting)| (message.to_string(), field, lasting));
    assert_eq!(rules, expected);
}

#[test]
fn ds_cel_messages_are_exact() {
    let schema = schema(DS);
    let message = |path| field(&schema, path)["x-kubernetes-validations"][0]["message"].clone();
    assert_eq!(
        message("spec"),
        "replicas must be zero for all non-External unpartitioned roles or non-zero for all non-External unpartitioned roles"
    );
    assert_eq!(
        message("spec.roles[].subRoles[]"),
        "replicas must be omitted when scaling.mode is External"
    );
}
