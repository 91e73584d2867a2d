//! ControllerRevisions (ORD-30 … ORD-32).

use lws_api::leaderworkerset::{LeaderWorkerSetSpec, LeaderWorkerTemplate, SubdomainPolicy};
use lws_api::names::label;
use serde_json::{Value, json};

use super::owner_reference;
use crate::intent::Kind;
use crate::model::Lws;

/// Member that tells a strategic-merge patch to replace an object instead of merging it.
pub const PATCH_DIRECTIVE: &str = "$patch";

/// ORD-30: what a revision stores of a spec. A pure function of the members that are part of a revision.
pub fn revision_data(spec: &LeaderWorkerSetSpec) -> Value {
    let stored = LeaderWorkerTemplate {
        max_group_restarts: None,
        restart_backoff: None,
        ..spec.leader_worker_template.clone()
    };
    // Plain data with text keys: it has no way not to be serialised.
    let mut template = serde_json::to_value(stored).unwrap_or_default();
    json_patch::merge(&mut template, &json!({PATCH_DIRECTIVE: "replace"}));
    let policy = match spec.subdomain_policy() {
        SubdomainPolicy::Shared => "Shared",
        SubdomainPolicy::UniquePerReplica => "UniquePerReplica",
    };
    let network = json!({PATCH_DIRECTIVE: "replace", "subdomainPolicy": policy});
    let mut data = json!({"spec": {"leaderWorkerTemplate": template, "networkConfig": network}});
    data.sort_all_objects();
    data
}

/// ORD-31: the canonical bytes of revision data.
pub fn canonical(data: &Value) -> String {
    let mut sorted = data.clone();
    sorted.sort_all_objects();
    // These characters occur in JSON only inside of texts, so they can be escaped afterwards.
    sorted
        .to_string()
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// ORD-32: the hash of revision data as it stands in names and labels: 32 bit FNV-1 in decimal, without digits that could form words.
pub fn revision_hash(canonical: &str) -> String {
    let hash = canonical.bytes().fold(2_166_136_261_u32, |hash, byte| {
        hash.wrapping_mul(16_777_619) ^ u32::from(byte)
    });
    hash.to_string().chars().map(letter).collect()
}

fn letter(digit: char) -> char {
    match digit {
        '0' => '4',
        '1' => '5',
        '2' => '6',
        '3' => '7',
        '4' => '8',
        '5' => '9',
        '6' => 'b',
        '7' => 'c',
        '8' => 'd',
        '9' => 'f',
        other => other,
    }
}

/// ORD-32: name of a revision.
pub fn revision_name(lws: &str, hash: &str, number: i64) -> String {
    let prefix = lws.get(..220).unwrap_or(lws);
    format!("{prefix}-{hash}-{number}")
}

/// ORD-32: the object.
pub fn revision(lws: &Lws, name: &str, revision_key: &str, number: i64, data: &Value) -> Value {
    json!({
        "apiVersion": Kind::ControllerRevision.api_version(),
        "kind": Kind::ControllerRevision.name(),
        "metadata": {
            "name": name,
            "namespace": &*lws.key().namespace,
            "labels": {label::NAME: &*lws.key().name, label::REVISION: revision_key},
            "ownerReferences": owner_reference(Kind::LeaderWorkerSet, &lws.meta),
        },
        "data": data,
        "revision": number,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(value: Value) -> LeaderWorkerSetSpec {
        serde_json::from_value(value).unwrap()
    }

    fn nginx(size: i32) -> LeaderWorkerSetSpec {
        spec(json!({"replicas": 4, "leaderWorkerTemplate": {
            "size": size,
            "restartPolicy": "RecreateGroupOnPodRestart",
            "workerTemplate": {"metadata": {}, "spec": {"containers": [{"image": "nginx:1.27", "name": "nginx", "resources": {}}]}},
        }}))
    }

    #[test]
    fn ord_32_hash_table() {
        let size_2 = canonical(&revision_data(&nginx(2)));
        assert_eq!(
            size_2,
            r#"{"spec":{"leaderWorkerTemplate":{"$patch":"replace","restartPolicy":"RecreateGroupOnPodRestart","size":2,"workerTemplate":{"metadata":{},"spec":{"containers":[{"image":"nginx:1.27","name":"nginx","resources":{}}]}}},"networkConfig":{"$patch":"replace","subdomainPolicy":"Shared"}}}"#
        );
        let size_3 = canonical(&revision_data(&nginx(3)));
        for (data, hash) in [
            ("", "65bb57b6b5"),
            ("{}", "5894b84845"),
            (&size_2, "59c4bf5ddd"),
            (&size_3, "d7b4c6dff"),
        ] {
            assert_eq!(revision_hash(data), hash, "{data}");
        }
    }

    #[test]
    fn ord_30_only_template_and_network_are_stored() {
        let plain = revision_data(&nginx(2));
        let mut other = nginx(2);
        other.replicas = Some(9);
        other.leader_worker_template.max_group_restarts = Some(3);
        other.leader_worker_template.restart_backoff = Some(Default::default());
        other.network_config =
            Some(serde_json::from_value(json!({"subdomainPolicy": "Shared"})).unwrap());
        other.startup_policy = Some(lws_api::leaderworkerset::StartupPolicy::LeaderReady);
        assert_eq!(canonical(&revision_data(&other)), canonical(&plain));
        other.network_config =
            Some(serde_json::from_value(json!({"subdomainPolicy": "UniquePerReplica"})).unwrap());
        assert_ne!(canonical(&revision_data(&other)), canonical(&plain));
    }

    #[test]
    fn ord_31_members_sorted_and_html_characters_escaped() {
        let data = json!({"b": "<&>", "a": {"z": 1, "$patch": 2}, "c": "\u{2028}\u{2029}ü"});
        assert_eq!(
            canonical(&data),
            "{\"a\":{\"$patch\":2,\"z\":1},\"b\":\"\\u003c\\u0026\\u003e\",\"c\":\"\\u2028\\u2029ü\"}"
        );
    }

    #[test]
    fn ord_31_templates_enter_as_they_are_stored() {
        let template = json!({"metadata": {"creationTimestamp": null}, "spec": {"ofTheFuture": [{"x": null}]}});
        let data = revision_data(&spec(
            json!({"leaderWorkerTemplate": {"workerTemplate": template}}),
        ));
        assert_eq!(
            data["spec"]["leaderWorkerTemplate"]["workerTemplate"],
            template
        );
    }

    #[test]
    fn ord_32_name_is_cut_at_220_bytes() {
        assert_eq!(revision_name("demo", "59c4bf5ddd", 7), "demo-59c4bf5ddd-7");
        assert_eq!(
            revision_name(&"a".repeat(300), "x", 1),
            format!("{}-x-1", "a".repeat(220))
        );
    }
}
