//! A right that the manager lacks: what needs it fails and says so, all else goes on, and nothing is lost once the right is there.

use anyhow::{Context, Result};
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use kube::Api;
use kube::api::PostParams;
use lws_e2e::{Bench, Kind, Manifest, Roles, on_own_cluster, until};
use lws_local_cluster::MANAGER_USER;
use serde_json::{Value, json};

const ROLE: &str = "lws-manager-role";

/// Something that the manager may do.
struct Right {
    group: &'static str,
    /// With its subresource.
    resource: &'static str,
    verb: &'static str,
}

const fn right(group: &'static str, resource: &'static str, verb: &'static str) -> Right {
    Right {
        group,
        resource,
        verb,
    }
}

const SETS: &str = "leaderworkerset.x-k8s.io";
const ROLES: &str = "disaggregatedset.x-k8s.io";
/// What a new set needs until it is available, by identity; and a new DisaggregatedSet.
const ORDINAL: [Right; 4] = [
    right("apps", "controllerrevisions", "create"),
    right("apps", "statefulsets", "create"),
    right("", "services", "create"),
    right(SETS, "leaderworkersets/status", "patch"),
];
const HASH: [Right; 3] = [
    right("apps", "deployments", "create"),
    right("", "pods", "patch"),
    right("", "pods/status", "patch"),
];
const DISAGGREGATED: [Right; 2] = [
    right(SETS, "leaderworkersets", "create"),
    right(ROLES, "disaggregatedsets/status", "patch"),
];

impl Right {
    fn is_in(&self, rule: &PolicyRule) -> bool {
        let has = |list: &Option<Vec<String>>, entry: &str| {
            list.iter().flatten().any(|found| found == entry)
        };
        has(&rule.api_groups, self.group)
            && has(&rule.resources, self.resource)
            && rule.verbs.iter().any(|verb| verb == self.verb)
    }

    /// The rules without this right and with all others.
    fn taken_from(&self, rules: &[PolicyRule]) -> Vec<PolicyRule> {
        let (with, mut left): (Vec<_>, Vec<_>) =
            rules.iter().cloned().partition(|rule| self.is_in(rule));
        for rule in with {
            let (this, others): (Vec<_>, Vec<_>) = rule
                .resources
                .iter()
                .flatten()
                .cloned()
                .partition(|resource| resource == self.resource);
            let mut verbs = rule.verbs.clone();
            verbs.retain(|verb| verb != self.verb);
            left.push(PolicyRule {
                resources: Some(this),
                verbs,
                ..rule.clone()
            });
            left.push(PolicyRule {
                resources: Some(others),
                ..rule
            });
        }
        left.retain(|rule| rule.resources.as_ref().is_none_or(|some| !some.is_empty()));
        left
    }

    /// How the API server refuses it, and how that stands in the manager's log.
    fn refusal(&self) -> String {
        format!(r#"cannot {} resource \"{}\""#, self.verb, self.resource)
    }

    async fn is_held(&self, bench: &Bench) -> Result<bool> {
        let (resource, subresource) = self.resource.split_once('/').unwrap_or((self.resource, ""));
        let attributes = json!({
            "namespace": bench.namespace(), "group": self.group, "resource": resource,
            "subresource": subresource, "verb": self.verb,
        });
        let review = json!({
            "metadata": {}, "spec": {"user": MANAGER_USER, "resourceAttributes": attributes},
        });
        let reviews: Api<SubjectAccessReview> = Api::all(bench.client());
        let review = reviews
            .create(&PostParams::default(), &serde_json::from_value(review)?)
            .await?;
        Ok(review.status.context("an answer")?.allowed)
    }
}

/// Gives the manager's role these rules.
async fn allow(bench: &Bench, rules: &[PolicyRule]) -> Result<()> {
    let roles: Api<ClusterRole> = Api::all(bench.client());
    let mut role = roles.get(ROLE).await?;
    role.rules = Some(rules.to_vec());
    roles.replace(ROLE, &PostParams::default(), &role).await?;
    Ok(())
}

/// Takes a right away, does something that needs it, and waits until the manager has told of it; gives it back then.
async fn lacking(bench: &Bench, lost: &Right, object: Value) -> Result<()> {
    let roles: Api<ClusterRole> = Api::all(bench.client());
    let rules = roles.get(ROLE).await?.rules.context("rules")?;
    allow(bench, &lost.taken_from(&rules)).await?;
    let what = lost.refusal();
    until(&what, async || Ok(!lost.is_held(bench).await?)).await?;
    let told = bench.manager_log().len();
    bench.create(object).await?;
    until(&format!("told: {what}"), async || {
        let log = bench.manager_log();
        Ok(log.iter().skip(told).any(|line| line.contains(&what)))
    })
    .await?;
    assert!(
        bench.world().is_available("before"),
        "{what}: all else goes on"
    );
    allow(bench, &rules).await
}

#[tokio::test]
async fn ops_15_a_missing_right_is_told_and_costs_nothing_else() -> Result<()> {
    on_own_cluster("rights", async |bench| {
        bench.create(Manifest::new("before", 1, 2)).await?;
        bench.until_available("before").await?;
        let before = bench.world().all_uids("before");
        for (number, lost) in ORDINAL.iter().enumerate() {
            let name = format!("ordinal-{number}");
            lacking(bench, lost, Manifest::new(&name, 1, 2).json()).await?;
            bench.until_available(&name).await?;
        }
        for (number, lost) in HASH.iter().enumerate() {
            let name = format!("hash-{number}");
            let set = Manifest::new(&name, 1, 2).spec(json!({"groupIdentity": "Hash"}));
            lacking(bench, lost, set.json()).await?;
            bench.until_available(&name).await?;
        }
        for (number, lost) in DISAGGREGATED.iter().enumerate() {
            let name = format!("roles-{number}");
            let roles = Roles::new(&name, &[("prefill", 1), ("decode", 1)]);
            lacking(bench, lost, roles.into()).await?;
            let what = format!("{name} is available");
            bench
                .until(&what, |world| world.are_roles_available(&name))
                .await?;
        }
        assert_eq!(bench.world().all_uids("before"), before);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn ops_15_a_failed_group_is_made_anew_once_leaders_may_be_deleted() -> Result<()> {
    on_own_cluster("no-deletes", async |bench| {
        let lost = right("", "pods", "delete");
        let roles: Api<ClusterRole> = Api::all(bench.client());
        let rules = roles.get(ROLE).await?.rules.context("rules")?;
        bench.create(Manifest::new("demo", 1, 2)).await?;
        bench.until_available("demo").await?;
        let old = bench.world().uids("demo", 0);
        allow(bench, &lost.taken_from(&rules)).await?;
        until("the right is gone", async || {
            Ok(!lost.is_held(bench).await?)
        })
        .await?;
        bench.delete(Kind::Pod, "demo-0-1").await?;
        until("the refusal is told", async || {
            let what = lost.refusal();
            Ok(bench.manager_log().iter().any(|line| line.contains(&what)))
        })
        .await?;
        allow(bench, &rules).await?;
        bench
            .until("the whole group is new", |world| {
                world.is_replaced("demo", 0, &old)
            })
            .await?;
        bench.until_available("demo").await
    })
    .await
}
