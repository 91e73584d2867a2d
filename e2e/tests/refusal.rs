//! An API server that refuses the controller's writes for a while.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use lws_e2e::{Bench, Kind, Manifest, on_shared_cluster};
use serde_json::json;

const BLOCKED: Duration = Duration::from_secs(10);

/// Refuses creates of a resource by the manager in the test's namespace.
struct Block<'a> {
    bench: &'a Bench,
    policies: Api<ValidatingAdmissionPolicy>,
    bindings: Api<ValidatingAdmissionPolicyBinding>,
}

impl<'a> Block<'a> {
    async fn of(bench: &'a Bench, group: &str, resource: &str) -> Result<Self> {
        let block = Self {
            bench,
            policies: Api::all(bench.client()),
            bindings: Api::all(bench.client()),
        };
        let name = bench.namespace();
        let force = PatchParams::apply("e2e").force();
        let policy = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": [{
                    "apiGroups": [group],
                    "apiVersions": ["*"],
                    "operations": ["CREATE"],
                    "resources": [resource],
                }]},
                "validations": [{
                    "expression": "request.userInfo.username != 'system:serviceaccount:lws-system:lws-controller-manager'",
                    "message": "blocked by the test",
                }],
            },
        });
        block
            .policies
            .patch(name, &force, &Patch::Apply(policy))
            .await?;
        let binding = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {
                "policyName": name,
                "validationActions": ["Deny"],
                "matchResources": {"namespaceSelector": {
                    "matchLabels": {"kubernetes.io/metadata.name": name},
                }},
            },
        });
        block
            .bindings
            .patch(name, &force, &Patch::Apply(binding))
            .await?;
        // The API server takes a policy up within a second or so.
        bench.pass(Duration::from_secs(3)).await;
        Ok(block)
    }

    async fn lift(self) -> Result<()> {
        let now = DeleteParams::default();
        self.bindings.delete(self.bench.namespace(), &now).await?;
        self.policies.delete(self.bench.namespace(), &now).await?;
        Ok(())
    }
}

/// What must be true at the end of every run of C27.
fn assert_complete(bench: &Bench, set: &str) {
    let world = bench.world();
    assert_eq!(world.revisions_of(set).len(), 1, "{set}");
    assert_eq!(world.pods_of(set).count(), 4, "{set}");
    assert!(world.has(Kind::Service, set), "{set}");
}

/// Creates a set while a resource is refused, looks at it, and lets it heal.
async fn heals(group: &str, resource: &str, noun: &str) -> Result<()> {
    on_shared_cluster(async |bench| {
        let block = Block::of(bench, group, resource).await?;
        let log = bench.plant().audit_log();
        let position = log.position()?;
        bench.create(Manifest::new("demo", 2, 2)).await?;
        bench.pass(BLOCKED).await;
        let refused = log
            .since(position)?
            .into_iter()
            .filter(|request| request.namespace == bench.namespace())
            .filter(|request| request.is_ours() && request.resource == resource)
            .filter(|request| request.code >= 400)
            .count();
        assert!(
            (1..30).contains(&refused),
            "{refused} attempts in {BLOCKED:?}"
        );
        assert!(!bench.world().is_available("demo"));
        let told = noun.is_empty()
            || bench
                .world()
                .has_event("Warning", "FailedCreate", "blocked by the test");
        block.lift().await?;
        assert!(told, "refusals of a {noun} are told");
        bench.until_available("demo").await?;
        bench.settled().await?;
        assert_complete(bench, "demo");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c27_refused_revisions_heal() -> Result<()> {
    heals("apps", "controllerrevisions", "").await
}

#[tokio::test]
async fn c27_refused_services_heal() -> Result<()> {
    heals("", "services", "service").await
}

#[tokio::test]
async fn c27_refused_statefulsets_heal() -> Result<()> {
    heals("apps", "statefulsets", "statefulset").await
}
