//! The CRDs on a real API server.

use anyhow::Result;
use kube::api::{Patch, PatchParams};
use lws_e2e::{Kind, Manifest, on_shared_cluster};
use serde_json::{Value, json};

const CONTAINER: &str = "/spec/leaderWorkerTemplate/workerTemplate/spec/containers/0";

fn container(members: Value) -> Manifest {
    let mut container = json!({"name": "c", "image": "nginx:1.27"});
    if let (Some(container), Some(members)) = (container.as_object_mut(), members.as_object()) {
        container.extend(members.clone());
    }
    Manifest::new("demo", 0, 1).pod(json!({"spec": {"containers": [container]}}))
}

#[tokio::test]
async fn nulls_read_as_absent() -> Result<()> {
    on_shared_cluster(async |bench| {
        let mut manifest = Manifest::new("demo", 0, 1).json();
        manifest["spec"]["startupPolicy"] = Value::Null;
        manifest["spec"]["networkConfig"] = json!({"subdomainPolicy": null});
        manifest["spec"]["leaderWorkerTemplate"]["restartPolicy"] = Value::Null;
        manifest["spec"]["leaderWorkerTemplate"]["subGroupPolicy"] = Value::Null;
        let template = &mut manifest["spec"]["leaderWorkerTemplate"]["workerTemplate"];
        template["metadata"] = json!({"creationTimestamp": null});
        let stored = bench.try_create(manifest).await?;
        let spec = &stored["spec"];
        assert_eq!(spec["startupPolicy"], "LeaderCreated");
        assert_eq!(spec["networkConfig"]["subdomainPolicy"], "Shared");
        assert_eq!(spec["leaderWorkerTemplate"].get("subGroupPolicy"), None);
        let template = &spec["leaderWorkerTemplate"]["workerTemplate"];
        assert_eq!(template["metadata"].get("creationTimestamp"), None);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn unknown_members_are_pruned() -> Result<()> {
    on_shared_cluster(async |bench| {
        let manifest = container(json!({"imagePullPolcy": "Never", "args": ["x"]}));
        let stored = bench
            .try_create(manifest.spec(json!({"replcas": 3})))
            .await?;
        assert_eq!(stored["spec"].get("replcas"), None);
        let container = stored.at(CONTAINER);
        assert_eq!(container.get("imagePullPolcy"), None);
        assert_eq!(container["args"], json!(["x"]));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn wrong_types_are_refused() -> Result<()> {
    on_shared_cluster(async |bench| {
        let wrong = [
            (json!({"args": "x"}), "containers[0].args"),
            (json!({"ports": [{"containerPort": "80"}]}), "containerPort"),
            (json!({"env": [{"name": "A", "value": 1}]}), "env[0].value"),
        ];
        for (members, field) in wrong {
            let denial = bench.refused(container(members)).await?;
            assert_eq!(denial.code, 422, "{denial:?}");
            denial.names(field, "");
        }
        let denial = bench
            .refused(Manifest::new("demo", 0, 1).spec(json!({"replicas": "2"})))
            .await?;
        denial.names("spec.replicas", "");
        let denial = bench
            .refused(Manifest::new("demo", 0, 1).spec(json!({"startupPolicy": "Soon"})))
            .await?;
        denial.names("spec.startupPolicy", "LeaderReady");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn templates_need_containers_with_names() -> Result<()> {
    on_shared_cluster(async |bench| {
        let mut manifest = Manifest::new("demo", 0, 1).json();
        manifest["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"] = json!({});
        bench.refused(manifest).await?.names("spec.containers", "");
        let mut manifest = Manifest::new("demo", 0, 1).json();
        manifest["spec"]["leaderWorkerTemplate"] = json!({"size": 1});
        bench.refused(manifest).await?.names("workerTemplate", "");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn absent_protocol_is_tcp() -> Result<()> {
    on_shared_cluster(async |bench| {
        let stored = bench
            .try_create(container(json!({"ports": [{"containerPort": 80}]})))
            .await?;
        assert_eq!(stored.at(CONTAINER)["ports"][0]["protocol"], "TCP");
        Ok(())
    })
    .await
}

/// Ports are a map by port and protocol, containers one by name: two appliers own their own entries.
#[tokio::test]
async fn lists_merge_by_their_keys() -> Result<()> {
    on_shared_cluster(async |bench| {
        bench
            .apply(container(json!({"ports": [{"containerPort": 80}]})))
            .await?;
        let mut other = Manifest::new("demo", 0, 1).json();
        other["spec"] = json!({"leaderWorkerTemplate": {"workerTemplate": {"spec": {"containers": [
            {"name": "c", "ports": [{"containerPort": 81}]},
            {"name": "d", "image": "nginx:1.27"},
        ]}}}});
        let parameters = PatchParams::apply("other");
        bench
            .api(Kind::Set)
            .patch("demo", &parameters, &Patch::Apply(&other))
            .await?;
        let stored = bench.api(Kind::Set).get("demo").await?;
        let containers =
            &stored.data["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"];
        let names = |list: &Value, member: &str| -> Vec<String> {
            let entries = list.as_array().into_iter().flatten();
            entries.map(|entry| entry[member].to_string()).collect()
        };
        assert_eq!(names(containers, "name"), ["\"c\"", "\"d\""]);
        assert_eq!(
            names(&containers[0]["ports"], "containerPort"),
            ["80", "81"]
        );
        assert_eq!(containers[0]["image"], "nginx:1.27");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn client_side_and_server_side_apply_mix() -> Result<()> {
    on_shared_cluster(async |bench| {
        let folder = std::env::temp_dir();
        let file = folder.join(format!("{}-schema.json", bench.namespace()));
        let text = file.display().to_string();
        std::fs::write(&file, Manifest::new("client", 0, 1).json().to_string())?;
        bench.kubectl(&["apply", "-f", &text]).await?;
        let again = bench.kubectl(&["apply", "-f", &text]).await?;
        assert!(again.contains("unchanged"), "{again}");
        bench
            .kubectl(&["apply", "--server-side", "--force-conflicts", "-f", &text])
            .await?;
        std::fs::write(&file, Manifest::new("server", 0, 1).json().to_string())?;
        bench
            .kubectl(&["apply", "--server-side", "-f", &text])
            .await?;
        bench.kubectl(&["apply", "-f", &text]).await?;
        let changed = Manifest::new("server", 0, 1).image("nginx:1.28").json();
        std::fs::write(&file, changed.to_string())?;
        bench.kubectl(&["apply", "-f", &text]).await?;
        std::fs::remove_file(&file)?;
        bench
            .until("the change is stored", |world| {
                world
                    .find(Kind::Set, "server")
                    .is_some_and(|set| set.at(CONTAINER)["image"] == "nginx:1.28")
            })
            .await
    })
    .await
}

#[tokio::test]
async fn fields_are_explained() -> Result<()> {
    on_shared_cluster(async |bench| {
        let text = bench
            .kubectl(&["explain", "lws.spec.leaderWorkerTemplate.size"])
            .await?;
        assert!(
            text.contains("FIELD: size <integer>") && text.contains("group"),
            "{text}"
        );
        Ok(())
    })
    .await
}
