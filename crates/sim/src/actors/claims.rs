//! Volume claims of StatefulSets: made before their pods, named after them, and owned as the retention policy of the set says, so that the garbage
//! collector takes them with the set or with a pod that is one too many.

use serde_json::{Value, json};

use super::stateful_set::{Write, owner};
use super::{owners, uid};
use crate::store::{Key, Kind, Store, is_terminating, text};

/// The claims of one pod, and whether its set still wants the pod.
pub(super) struct Claims<'a> {
    pub(super) key: &'a Key,
    pub(super) set: &'a Value,
    pub(super) pod: &'a str,
    pub(super) is_wanted: bool,
}

impl Claims<'_> {
    /// The claim that is made next.
    pub(super) fn missing(&self, store: &Store) -> Option<Write> {
        let mut templates = self.templates();
        let template = templates.find(|template| store.get(&self.name(template)).is_none())?;
        let mut labels = template["metadata"]["labels"].clone();
        json_patch::merge(&mut labels, &self.set["spec"]["selector"]["matchLabels"]);
        let owners = self.owners(None);
        let body = json!({"metadata": {"labels": labels, "ownerReferences": owners}, "spec": template["spec"]});
        Some(Write::Create(self.name(template), body))
    }

    /// A claim whose owners are not those that the policy asks for. `pod` is there.
    pub(super) fn to_own(&self, store: &Store, pod: &Value) -> Option<Write> {
        let wanted = self.owners(Some(pod));
        let mut names = self.templates().map(|template| self.name(template));
        let (name, claim) = names.find_map(|name| {
            let claim = store.get(&name)?;
            let has: Vec<&Value> = owners(claim).map(|owner| &owner["uid"]).collect();
            let is_right = has == wanted.iter().map(|o| &o["uid"]).collect::<Vec<_>>();
            (!is_right && !is_terminating(claim)).then_some((name, claim))
        })?;
        let patch = json!({"metadata": {"uid": uid(claim), "ownerReferences": wanted}});
        Some(Write::Patch(name, patch))
    }

    fn templates(&self) -> impl Iterator<Item = &Value> {
        let templates = self.set["spec"]["volumeClaimTemplates"].as_array();
        templates.into_iter().flatten()
    }

    fn name(&self, template: &Value) -> Key {
        let of = text(template, "/metadata/name").unwrap_or_default();
        let name = format!("{of}-{}", self.pod);
        Key::new(Kind::PersistentVolumeClaim, &self.key.namespace, &name)
    }

    fn deletes(&self, when: &str) -> bool {
        self.set["spec"]["persistentVolumeClaimRetentionPolicy"][when] == "Delete"
    }

    /// A pod that is one too many owns its claims if they go with it; else the set does, if they go with that.
    fn owners(&self, pod: Option<&Value>) -> Vec<Value> {
        match pod {
            Some(pod) if !self.is_wanted && self.deletes("whenScaled") => {
                vec![
                    json!({"apiVersion": "v1", "kind": "Pod", "name": self.pod, "uid": uid(pod), "controller": true, "blockOwnerDeletion": true}),
                ]
            }
            _ if self.deletes("whenDeleted") => vec![owner(self.key, self.set)],
            _ => Vec::new(),
        }
    }
}
