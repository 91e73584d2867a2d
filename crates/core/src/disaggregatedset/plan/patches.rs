//! One patch per child: what different rules want changed of it goes into a single request.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::disaggregatedset::children::Child;
use crate::intent::{Intent, Kind, Step, Subresource, Target, Why};
use crate::notice::Notice;

/// Patches of children, in the order in which the children were first named.
#[derive(Default)]
pub(super) struct Patches<'a> {
    order: Vec<&'a Child>,
    by_name: BTreeMap<Arc<str>, Draft>,
}

struct Draft {
    body: Value,
    why: Why,
    notices: Vec<Notice>,
}

impl<'a> Patches<'a> {
    /// Adds to what is changed of `child`; the first reason stands for all.
    pub fn merge(&mut self, child: &'a Child, body: &Value, why: Why) {
        let draft = self.by_name.entry(child.name().clone()).or_insert_with(|| {
            self.order.push(child);
            Draft {
                body: json!({}),
                why,
                notices: Vec::new(),
            }
        });
        merge_keeping_nulls(&mut draft.body, body);
    }

    /// Sets an annotation of `child`.
    pub fn annotate(&mut self, child: &'a Child, key: &str, value: &str, why: Why) {
        self.merge(
            child,
            &json!({"metadata": {"annotations": {key: value}}}),
            why,
        );
    }

    /// Tells `notice` when the patch of `child` was made.
    pub fn tell(&mut self, child: &Child, notice: Notice) {
        if let Some(draft) = self.by_name.get_mut(child.name()) {
            draft.notices.push(notice);
        }
    }

    /// The patches as steps.
    pub fn into_steps(mut self) -> Vec<Step> {
        let order = std::mem::take(&mut self.order);
        order
            .into_iter()
            .filter_map(|child| {
                let Draft { body, why, notices } = self.by_name.remove(child.name())?;
                let mut step = Step::new(why, patch(child, body));
                step.on_success = notices;
                Some(step)
            })
            .collect()
    }
}

/// OWS-4.
fn patch(child: &Child, body: Value) -> Intent {
    Intent::Patch {
        target: Target {
            kind: Kind::LeaderWorkerSet,
            key: child.lws.key().clone(),
        },
        uid: child.lws.meta.uid.clone(),
        resource_version: Some(child.lws.meta.resource_version.clone()),
        subresource: Subresource::None,
        body,
    }
}

/// Joins two merge patches. A null is part of the patch: it removes a member of the object.
fn merge_keeping_nulls(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, member) in from {
                match into.get_mut(name) {
                    Some(known) => merge_keeping_nulls(known, member),
                    None => {
                        into.insert(name.clone(), member.clone());
                    }
                }
            }
        }
        (into, from) => *into = from.clone(),
    }
}
