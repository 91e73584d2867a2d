//! Recorded objects of another controller, put into a cluster as they were.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};

use crate::Bench;

impl Bench {
    /// Creates recorded objects, one a line and owners first, with status and managed fields. UIDs are replaced wherever
    /// they stand. No controller may be at work on them.
    pub async fn restore(&self, recorded: &str) -> Result<()> {
        let mut uids: BTreeMap<String, String> = BTreeMap::new();
        for line in recorded.lines() {
            let mut text = line.to_owned();
            for (old, new) in &uids {
                text = text.replace(old, new);
            }
            let object: Value = serde_json::from_str(&text)?;
            let uid = object["metadata"]["uid"].as_str();
            let uid = uid.context("a recorded object has a UID")?.to_owned();
            uids.insert(uid, self.restore_one(object).await?);
        }
        Ok(())
    }

    /// The UID that the object has now. Managed fields are written last: every other write adds to them.
    async fn restore_one(&self, mut object: Value) -> Result<String> {
        let (_, api) = self.api_of(&object)?;
        let status = object["status"].take();
        let metadata = object["metadata"].as_object_mut();
        let metadata = metadata.context("a recorded object has metadata")?;
        metadata.remove("uid");
        let managed = metadata.remove("managedFields");
        let name = metadata["name"].as_str().unwrap_or_default().to_owned();
        let object = serde_json::from_value(object)?;
        let created = api.create(&PostParams::default(), &object).await?;
        let plain = PatchParams::default();
        if !status.is_null() {
            let patch = Patch::Merge(json!({"status": status}));
            api.patch_status(&name, &plain, &patch).await?;
        }
        if let Some(managed) = managed {
            let patch = Patch::Merge(json!({"metadata": {"managedFields": managed}}));
            api.patch(&name, &plain, &patch).await?;
        }
        created.metadata.uid.context("an object without UID")
    }

    /// Waits until pods can be created in the namespace.
    pub async fn until_pods_are_admitted(&self) -> Result<()> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client(), self.namespace());
        let exists = |account: Option<&ServiceAccount>| account.is_some();
        await_condition(accounts, "default", exists).await?;
        Ok(())
    }
}
