//! What a DisaggregatedSet consists of, and how it follows its roles and slices.

use anyhow::Result;
use lws_api::names::{ds_annotation, ds_label};
use lws_e2e::{Kind, Roles, Verb, on_shared_cluster};
use serde_json::{Value, json};

/// The set of REV-8.
fn nginx() -> Roles {
    let container = json!({"name": "nginx", "image": "nginx:1.27", "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}}});
    Roles::new("nginx-disagg", &[("prefill", 1), ("decode", 2)])
        .pods(json!({"spec": {"containers": [container]}}))
}

fn pair() -> Roles {
    Roles::new("pd", &[("prefill", 2), ("decode", 1)])
}

#[tokio::test]
async fn sc_30_two_roles() -> Result<()> {
    on_shared_cluster(async |bench| {
        bench.create(nginx()).await?;
        bench.until_roles_available("nginx-disagg").await?;
        bench.settled().await?;
        let world = bench.world();
        assert_eq!(
            world.child_names("nginx-disagg"),
            [
                "nginx-disagg-0-907fa611-decode",
                "nginx-disagg-0-907fa611-prefill"
            ]
        );
        assert_eq!(world.role_status("nginx-disagg", "prefill"), [1, 1, 1, 1]);
        assert_eq!(world.role_status("nginx-disagg", "decode"), [2, 2, 2, 2]);
        let set = world.get(Kind::DisaggregatedSet, "nginx-disagg");
        assert_eq!(
            set.annotation(ds_annotation::REVISION_HASH_VERSION),
            Some("v2")
        );
        assert_eq!(set.true_conditions(), ["Available"]);
        let child = world.set("nginx-disagg-0-907fa611-prefill");
        for (key, value) in [
            (ds_label::NAME, "nginx-disagg"),
            (ds_label::ROLE, "prefill"),
            (ds_label::SLICE, "0"),
            (ds_label::REVISION, "907fa611"),
        ] {
            assert_eq!(child.label(key), Some(value));
            let pod = world.pod("nginx-disagg-0-907fa611-prefill-0");
            assert_eq!(pod.label(key), Some(value));
        }
        assert_eq!(child.label("app"), None);
        let owner = child.controller().expect("a controller");
        assert_eq!(
            (&owner["kind"], &owner["uid"]),
            (&json!("DisaggregatedSet"), &json!(set.uid()))
        );
        assert_eq!(owner.get("blockOwnerDeletion"), None);
        let variables = world
            .pod("nginx-disagg-0-907fa611-decode-1")
            .variables("nginx");
        let ours: Vec<&String> = variables
            .iter()
            .filter(|name| name.starts_with("DISAGGREGATEDSET_"))
            .collect();
        assert_eq!(
            ours,
            [
                "DISAGGREGATEDSET_NAME=nginx-disagg",
                "DISAGGREGATEDSET_ROLE=decode",
                "DISAGGREGATEDSET_SLICE=0",
                "DISAGGREGATEDSET_REVISION=907fa611",
            ]
        );
        assert_eq!(
            world.names(Kind::StatefulSet),
            world.child_names("nginx-disagg"),
            "no worker sets"
        );
        assert_eq!(
            world.names(Kind::Service),
            world.child_names("nginx-disagg"),
            "none of its own (SC-37)"
        );
        assert_eq!(
            world
                .all(Kind::Set)
                .map(|child| child.at("/metadata/generation"))
                .max_by_key(|n| n.as_i64()),
            Some(&json!(1))
        );
        Ok(())
    })
    .await
}

#[tokio::test]
async fn roles_scale_in_place_and_reordering_changes_nothing() -> Result<()> {
    on_shared_cluster(async |bench| {
        bench.create(pair()).await?;
        bench.until_roles_available("pd").await?;
        let names: Vec<String> = bench
            .world()
            .child_names("pd")
            .into_iter()
            .map(str::to_owned)
            .collect();
        bench
            .replace_roles(pair().role("prefill", json!({"spec": {"replicas": 4}})))
            .await?;
        bench
            .until("prefill has four groups", |world| {
                world.are_roles_available("pd")
                    && world.role_status("pd", "prefill") == [4, 4, 4, 4]
            })
            .await?;
        let turned = Roles::new("pd", &[("decode", 1), ("prefill", 4)]);
        bench.replace_roles(turned).await?;
        bench
            .until("the status is in the new order", |world| {
                let set = world.get(Kind::DisaggregatedSet, "pd");
                set.text("/status/roleStatuses/0/name") == "decode"
            })
            .await?;
        bench.settled().await?;
        let world = bench.world();
        assert_eq!(world.child_names("pd"), names);
        for child in world.children("pd") {
            assert_eq!(
                child.annotation(ds_annotation::INITIAL_REPLICAS),
                Some(child.number("/spec/replicas").to_string().as_str())
            );
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn sc_34_slices_come_and_go_and_roll_nothing() -> Result<()> {
    on_shared_cluster(async |bench| {
        bench.create(pair()).await?;
        bench.until_roles_available("pd").await?;
        let first = bench.world().pods_of_roles("pd");
        let slices = |n: i64| json!({"spec": {"slices": n}});
        bench.patch(Kind::DisaggregatedSet, "pd", slices(3)).await?;
        bench
            .until("three slices run", |world| {
                world.are_roles_available("pd")
                    && world.role_status("pd", "prefill") == [6, 6, 6, 6]
            })
            .await?;
        assert_eq!(bench.world().children("pd").len(), 6);
        bench.patch(Kind::DisaggregatedSet, "pd", slices(2)).await?;
        bench
            .until("two slices are left", |world| {
                world.children("pd").len() == 4 && world.are_roles_available("pd")
            })
            .await?;
        {
            let world = bench.world();
            assert_eq!(world.role_status("pd", "decode"), [2, 2, 2, 2]);
            assert!(
                world
                    .children("pd")
                    .iter()
                    .all(|child| child.label(ds_label::SLICE) != Some("2"))
            );
            let pods = world.pods_of_roles("pd");
            assert!(
                first.iter().all(|(name, uid)| pods.get(name) == Some(uid)),
                "slice 0 was not touched"
            );
        }
        bench
            .until("the end of the slice is told", |world| {
                world.has_event("Normal", "LWSDeleted", "of removed slice 2")
            })
            .await
    })
    .await
}

#[tokio::test]
async fn roles_are_added_removed_and_renamed() -> Result<()> {
    on_shared_cluster(async |bench| {
        bench.create(pair()).await?;
        bench.until_roles_available("pd").await?;
        let three = pair().role("encode", json!({}));
        bench.replace_roles(three.clone()).await?;
        bench.until_roles_available("pd").await?;
        assert_eq!(
            roles(&bench.world().children("pd")),
            ["decode", "encode", "prefill"]
        );
        bench.replace_roles(three.clone().without("decode")).await?;
        bench.until_roles_available("pd").await?;
        assert_eq!(roles(&bench.world().children("pd")), ["encode", "prefill"]);
        bench
            .replace_roles(Roles::new("pd", &[("a", 2), ("b", 1)]))
            .await?;
        bench.until_roles_available("pd").await?;
        bench.settled().await?;
        let world = bench.world();
        assert_eq!(roles(&world.children("pd")), ["a", "b"]);
        assert_eq!(world.names(Kind::Set).len(), 2, "old children are gone");
        Ok(())
    })
    .await
}

fn roles(children: &[&lws_e2e::Object]) -> Vec<String> {
    let mut roles: Vec<String> = children
        .iter()
        .filter_map(|child| child.label(ds_label::ROLE))
        .map(str::to_owned)
        .collect();
    roles.sort();
    roles
}

#[tokio::test]
async fn dsr_cur_7_a_child_that_is_deleted_comes_back() -> Result<()> {
    on_shared_cluster(async |bench| {
        bench.create(pair()).await?;
        bench.until_roles_available("pd").await?;
        let (name, uid) = {
            let world = bench.world();
            let child = world.children_of_role("pd", "decode")[0];
            (child.name().to_owned(), child.uid().to_owned())
        };
        bench.delete(Kind::Set, &name).await?;
        bench
            .until("the child is made anew", |world| {
                world
                    .find(Kind::Set, &name)
                    .is_some_and(|child| child.uid() != uid)
                    && world.are_roles_available("pd")
            })
            .await
    })
    .await
}

#[tokio::test]
async fn sc_41_nothing_is_left_of_a_deleted_set_and_nothing_is_born_in_one_that_ends() -> Result<()>
{
    on_shared_cluster(async |bench| {
        bench
            .create(pair().role("prefill", json!({"scaling": {"mode": "External"}})))
            .await?;
        bench.until_roles_available("pd").await?;
        bench.settled().await?;
        let mark = bench.mark();
        bench
            .delete_foreground(Kind::DisaggregatedSet, "pd")
            .await?;
        bench
            .until("nothing is left", |world| {
                [
                    Kind::DisaggregatedSet,
                    Kind::Set,
                    Kind::Scaler,
                    Kind::Pod,
                    Kind::StatefulSet,
                ]
                .into_iter()
                .all(|kind| world.names(kind).is_empty())
            })
            .await?;
        let world = bench.world();
        let born = world.history()[mark..]
            .iter()
            .filter(|change| change.verb == Verb::Added);
        let born: Vec<_> = born
            .filter(|change| change.kind == Kind::Set)
            .map(|change| change.object.name())
            .collect();
        assert!(born.is_empty(), "{born:?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn sc_35_slices_are_kept_apart() -> Result<()> {
    on_shared_cluster(async |bench| {
        let policy = json!({"slices": 2, "placementPolicy": {"type": "ExclusiveSlice", "topology": "kubernetes.io/hostname"}});
        bench.create(pair().spec(policy)).await?;
        bench.until_roles_available("pd").await?;
        let world = bench.world();
        let nodes = |slice: &str| {
            let mut nodes: Vec<Value> = world
                .all(Kind::Pod)
                .filter(|pod| pod.label(ds_label::SLICE) == Some(slice))
                .map(|pod| pod.at("/spec/nodeName").clone())
                .collect();
            nodes.dedup();
            nodes
        };
        assert_eq!((nodes("0").len(), nodes("1").len()), (1, 1));
        assert_ne!(nodes("0"), nodes("1"));
        Ok(())
    })
    .await
}

/// C31.
#[tokio::test]
async fn c31_a_foreign_set_under_the_name_of_a_child_is_left_alone() -> Result<()> {
    on_shared_cluster(async |bench| {
        let set = || Roles::new("pd", &[("prefill", 2), ("decode", 2)]);
        bench.create(set()).await?;
        bench.until_roles_available("pd").await?;
        let child = bench.world().children_of_role("pd", "prefill")[0].clone();
        let name = child.name();
        bench.delete(Kind::DisaggregatedSet, "pd").await?;
        bench
            .until("nothing is left", |world| {
                world.names(Kind::Set).is_empty() && world.names(Kind::Pod).is_empty()
            })
            .await?;
        let foreign = lws_e2e::Manifest::new(name, 3, 1)
            .metadata(json!({"labels": child.at("/metadata/labels")}));
        let foreign = bench.create(foreign).await?;
        bench.create(set()).await?;
        bench
            .until("the obstacle is told and the other role runs", |world| {
                world.has_event("Warning", "LWSConflict", name)
                    && world.role_status("pd", "decode") == [2, 2, 2, 2]
            })
            .await?;
        bench
            .replace_roles(set().role("prefill", json!({"spec": {"replicas": 4}})))
            .await?;
        bench
            .until("the change was seen", |world| {
                world.role_status("pd", "prefill")[0] == 4
            })
            .await?;
        bench.settled().await?;
        {
            let world = bench.world();
            let found = world.set(name);
            assert_eq!(
                (found.uid(), found.number("/spec/replicas")),
                (foreign.uid(), 3)
            );
            assert!(found.at("/metadata/ownerReferences").is_null());
            assert_eq!(world.role_status("pd", "prefill"), [4, 0, 0, 0]);
            assert!(!world.get(Kind::DisaggregatedSet, "pd").is("Available"));
        }
        bench.delete(Kind::Set, name).await?;
        bench.until_roles_available("pd").await?;
        assert_eq!(bench.world().role_status("pd", "prefill"), [4, 4, 4, 4]);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c31_a_foreign_set_outlives_the_set() -> Result<()> {
    on_shared_cluster(async |bench| {
        let set = || Roles::new("pd", &[("prefill", 1)]);
        bench.create(set()).await?;
        bench.until_roles_available("pd").await?;
        let name = bench.world().child_names("pd")[0].to_owned();
        bench.delete(Kind::DisaggregatedSet, "pd").await?;
        bench
            .until("nothing is left", |world| {
                world.names(Kind::Set).is_empty() && world.names(Kind::Pod).is_empty()
            })
            .await?;
        bench.create(lws_e2e::Manifest::new(&name, 1, 1)).await?;
        bench.create(set()).await?;
        bench
            .until("the obstacle is told", |world| {
                world.has_event("Warning", "LWSConflict", &name)
            })
            .await?;
        bench.delete(Kind::DisaggregatedSet, "pd").await?;
        bench.until_available(&name).await?;
        bench.settled().await?;
        assert!(bench.world().has(Kind::Set, &name));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c04_names_that_no_child_can_have_are_refused() -> Result<()> {
    on_shared_cluster(async |bench| {
        let named = |set: usize, role: usize, patch: Value| {
            let role = "r".repeat(role);
            let set = Roles::new(&"s".repeat(set), &[(&role, 1)]);
            set.spec(json!({"slices": patch["slices"]}))
                .role(&role, json!({"spec": {"replicas": patch["replicas"]}}))
        };
        bench
            .try_create(named(20, 18, json!({"slices": 1, "replicas": 1})))
            .await?;
        bench
            .try_create(named(20, 17, json!({"slices": 11, "replicas": 1})))
            .await?;
        for (role, patch, combined) in [
            (19, json!({"slices": 1, "replicas": 1}), "38"),
            (18, json!({"slices": 11, "replicas": 1}), "37"),
            (18, json!({"slices": 1, "replicas": 11}), "37"),
        ] {
            let denial = bench.refused(named(20, role, patch)).await?;
            denial.names("spec.roles[0].name", "would have 64 characters, at most 63");
            denial.names(
                "spec.roles[0].name",
                &format!("{combined} characters together"),
            );
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn every_example_runs() -> Result<()> {
    on_shared_cluster(async |bench| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/disaggregated");
        bench.kubectl(&["apply", "-f", folder]).await?;
        for set in ["autoscaled", "divided", "epd", "nginx-disagg", "sliced"] {
            bench.until_roles_available(set).await?;
        }
        let found = bench.world().all(Kind::DisaggregatedSet).count();
        assert_eq!(found, 5, "one a file");
        Ok(())
    })
    .await
}
