//! A role as the rules see it.

use serde_json::Value;

use crate::admission::json::Json;
use crate::admission::lws::Field;

/// Most groups that a number can say (V-8).
pub(super) const MOST: i64 = 2_147_483_647;

/// A role and where it stands.
#[derive(Clone, Debug)]
pub(in crate::admission) struct Role<'a>(Field<'a>);

/// The role `name` of an object.
pub(super) fn find<'a>(object: &'a Value, name: &str) -> Option<Json<'a>> {
    let mut roles = Json::of(object).at("spec").at("roles").items();
    roles.find(|role| role.at("name").text() == name)
}

impl<'a> Role<'a> {
    pub(super) fn new(field: Field<'a>) -> Self {
        Self(field)
    }

    pub(super) fn json(&self) -> Json<'a> {
        self.0.json
    }

    pub(super) fn path(&self) -> String {
        self.0.path.clone()
    }

    pub(in crate::admission) fn field(&self, name: &str) -> Field<'a> {
        self.0.member(name)
    }

    pub(super) fn name(&self) -> &'a str {
        self.json().at("name").text()
    }

    pub(super) fn has_spec(&self) -> bool {
        self.json().at("spec").is_present()
    }

    /// Elements of `subRoles` and where they stand.
    pub(super) fn children(&self) -> impl Iterator<Item = Field<'a>> {
        self.field("subRoles")
            .elements()
            .collect::<Vec<_>>()
            .into_iter()
    }

    pub(in crate::admission) fn is_partitioned(&self) -> bool {
        self.json().at("subRoles").items().len() > 0
    }

    pub(super) fn is_external(&self) -> bool {
        !self.is_partitioned() && is_external(self.json())
    }

    pub(super) fn has_external_child(&self) -> bool {
        self.children().any(|child| is_external(child.json))
    }

    /// Its number of groups is `spec.replicas`.
    pub(super) fn is_static(&self) -> bool {
        !self.is_partitioned() && !self.is_external()
    }

    /// "The role's replica number" of V-3, V-4 and V-12.
    pub(super) fn replicas(&self) -> i64 {
        if self.is_partitioned() {
            let sum = self
                .children()
                .map(|child| replicas(child.json))
                .fold(0_i64, i64::saturating_add);
            return sum.min(MOST);
        }
        replicas(self.json().at("spec"))
    }

    /// Where labels and annotations of its pods can be written: for all of them, for workers and for leaders.
    pub(super) fn metadata(&self) -> [Field<'a>; 3] {
        let templates = self.field("spec").member("leaderWorkerTemplate");
        [
            self.field("metadata"),
            templates.member("workerTemplate").member("metadata"),
            templates.member("leaderTemplate").member("metadata"),
        ]
    }

    /// Pods of a group.
    pub(super) fn size(&self) -> i64 {
        let template = self.json().at("spec").at("leaderWorkerTemplate");
        template.at("size").int().unwrap_or(1)
    }
}

/// Groups of a spec or a sub-role, 1 when absent.
pub(super) fn replicas(of: Json<'_>) -> i64 {
    of.at("replicas").int().unwrap_or(1)
}

/// Whether a role or sub-role takes its number of groups from a scaler.
pub(super) fn is_external(of: Json<'_>) -> bool {
    of.at("scaling").at("mode").text() == "External"
}
