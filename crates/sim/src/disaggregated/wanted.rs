//! People and autoscalers: a set in short, and what they change of it at any moment.

use lws_api::names::ds_annotation;
use serde_json::{Value, json};

use crate::actors::kubelet::BROKEN;
use crate::actors::user;
use crate::actors::{annotation, number, uid};
use crate::random::Random;
use crate::store::{Key, Kind, Store, is_terminating, text};

/// Name of the set that runs use.
pub const NAME: &str = "demo";

/// The key of the set.
pub fn key() -> Key {
    user::key(Kind::DisaggregatedSet, NAME)
}

/// A role in short.
#[derive(Clone, Debug)]
pub struct Role {
    /// Its name.
    pub name: &'static str,
    /// Groups per slice.
    pub replicas: i64,
    /// `maxSurge` and `maxUnavailable`.
    pub budget: (Value, Value),
    /// Its number comes from a scaler.
    pub external: bool,
    /// Its sub-roles.
    pub sub_roles: Vec<(&'static str, i64)>,
}

impl Role {
    /// A role with so many groups and this budget.
    pub fn new(name: &'static str, replicas: i64, (surge, unavailable): (i64, i64)) -> Self {
        Self {
            name,
            replicas,
            budget: (json!(surge), json!(unavailable)),
            external: false,
            sub_roles: Vec::new(),
        }
    }

    fn manifest(&self) -> Value {
        let containers = json!([{"name": "main", "image": "v1"}]);
        let mut role = json!({"name": self.name, "spec": {
            "replicas": self.replicas,
            "leaderWorkerTemplate": {"size": 1, "workerTemplate": {"spec": {"containers": containers}}},
            "rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration":
                {"maxSurge": self.budget.0, "maxUnavailable": self.budget.1}},
        }});
        if self.external {
            role["scaling"] = json!({"mode": "External"});
        }
        if !self.sub_roles.is_empty() {
            let all = self.sub_roles.iter();
            let all = all.map(|(name, replicas)| json!({"name": name, "replicas": replicas}));
            role["subRoles"] = all.collect();
        }
        role
    }
}

/// A set in short.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Its roles.
    pub roles: Vec<Role>,
    /// Its slices.
    pub slices: i64,
    /// `duringRollout`.
    pub policy: &'static str,
}

impl Wanted {
    /// One slice of these roles.
    pub fn of(roles: impl Into<Vec<Role>>) -> Self {
        Self {
            roles: roles.into(),
            slices: 1,
            policy: "RolloutCoupled",
        }
    }

    /// The manifest.
    pub fn manifest(&self) -> Value {
        let roles: Vec<Value> = self.roles.iter().map(Role::manifest).collect();
        json!({
            "apiVersion": "disaggregatedset.x-k8s.io/v1", "kind": "DisaggregatedSet", "metadata": {},
            "spec": {"roles": roles, "slices": self.slices, "scalingPolicy": {"duringRollout": self.policy}},
        })
    }
}

/// What somebody changes. Roles are named by their position.
#[derive(Clone, Debug)]
pub enum Change {
    /// The image of a role.
    Image(u64, &'static str),
    /// The image of all roles.
    Images(&'static str),
    /// The groups of a role, also those of its first sub-role.
    Replicas(u64, i64),
    /// The groups of all roles.
    All(i64),
    /// A role comes.
    Add(&'static str, i64),
    /// A role goes.
    Remove(u64),
    /// A role is called otherwise.
    Rename(u64, &'static str),
    /// The number of slices.
    Slices(i64),
    /// Who says how many groups a role has.
    External(u64, bool),
    /// An autoscaler scales a role.
    Scale(u64, i64),
    /// The budget of a role.
    Budget(u64, Value, Value),
    /// `duringRollout`.
    Policy(&'static str),
}

impl Change {
    /// What somebody does on a whim.
    pub fn random(random: &mut Random) -> Self {
        let role = random.below(3);
        let image = random.pick(&["v1", "v2", "v3"]).copied().unwrap_or("v1");
        let name = random.pick(&["c", "e"]).copied().unwrap_or("c");
        let groups = i64::try_from(random.below(4)).unwrap_or(0);
        match random.below(20) {
            0..=4 => Self::Image(role, image),
            5 => Self::Images(image),
            6 => Self::Image(role, BROKEN),
            7..=8 => Self::Replicas(role, groups + 1),
            9 => Self::All(groups),
            10 => Self::Add(name, groups + 1),
            11 => Self::Remove(role),
            12 => Self::Rename(role, name),
            13 => Self::Slices(1 + groups % 2),
            14 => Self::External(role, groups % 2 == 0),
            15..=17 => Self::Scale(role, groups),
            18 => {
                let (surge, unavailable) = budget(random);
                Self::Budget(role, surge, unavailable)
            }
            _ => Self::Policy(policy(random)),
        }
    }

    /// The object that is patched, and how; nothing where it makes no sense.
    pub fn patch(&self, store: &Store) -> Option<(Key, Value)> {
        let set = store.get(&key()).filter(|set| !is_terminating(set))?;
        let mut roles = set["spec"]["roles"].as_array()?.clone();
        let number = roles.len().max(1);
        let at = |position: u64| usize::try_from(position).unwrap_or(0) % number;
        match self {
            Self::Image(role, image) => set_image(roles.get_mut(at(*role))?, image),
            Self::Images(image) => roles.iter_mut().for_each(|role| set_image(role, image)),
            Self::Replicas(role, replicas) => set_replicas(roles.get_mut(at(*role))?, *replicas),
            Self::All(replicas) => {
                for role in &mut roles {
                    set_replicas(role, *replicas);
                }
            }
            Self::Add(name, replicas) => {
                let role = Role::new(name, *replicas, (1, 0));
                roles.push(role.manifest());
            }
            Self::Remove(role) if roles.len() > 1 => {
                roles.remove(at(*role));
            }
            Self::Remove(_) => return None,
            Self::Rename(role, name) => roles.get_mut(at(*role))?["name"] = json!(name),
            Self::Slices(slices) => return spec(&json!({"slices": slices})),
            Self::External(role, is_external) => set_mode(roles.get_mut(at(*role))?, *is_external),
            Self::Scale(role, replicas) => {
                let name = roles.get(at(*role))?["name"].as_str()?;
                let scaler = user::key(Kind::RoleScaler, &format!("{NAME}-{name}"));
                return Some((scaler, json!({"spec": {"replicas": replicas}})));
            }
            Self::Budget(role, surge, unavailable) => {
                roles.get_mut(at(*role))?["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"] =
                    json!({"maxSurge": surge, "maxUnavailable": unavailable});
            }
            Self::Policy(policy) => {
                return spec(&json!({"scalingPolicy": {"duringRollout": policy}}));
            }
        }
        is_accepted(&roles).then_some(())?;
        spec(&json!({"roles": roles}))
    }
}

fn spec(members: &Value) -> Option<(Key, Value)> {
    Some((key(), json!({"spec": members})))
}

/// A budget.
pub fn budget(random: &mut Random) -> (Value, Value) {
    match random.below(8) {
        0..=2 => (json!(0), json!(1)),
        3..=4 => (json!(1), json!(0)),
        5 => (json!(1), json!(1)),
        6 => (json!(2), json!(0)),
        _ => (json!("25%"), json!("50%")),
    }
}

/// How changes of the number of groups meet a rollout.
pub fn policy(random: &mut Random) -> &'static str {
    if random.chance(700) {
        "RolloutCoupled"
    } else {
        "AdvanceRollout"
    }
}

fn set_image(role: &mut Value, image: &str) {
    let containers = json!([{"name": "main", "image": image}]);
    role["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"] = containers;
}

fn set_replicas(role: &mut Value, replicas: i64) {
    role["spec"]["replicas"] = json!(replicas);
    let first = role["subRoles"]
        .as_array_mut()
        .and_then(|all| all.first_mut());
    if let Some(first) = first {
        first["replicas"] = json!(replicas);
    }
}

fn set_mode(role: &mut Value, is_external: bool) {
    if role.get("subRoles").is_some() {
        return;
    }
    if is_external {
        role["scaling"] = json!({"mode": "External"});
    } else if let Some(members) = role.as_object_mut() {
        members.remove("scaling");
    }
}

/// CEL-1, and names that are there once: what the API server's schema refuses.
fn is_accepted(roles: &[Value]) -> bool {
    let mut names: Vec<_> = roles.iter().map(|role| text(role, "/name")).collect();
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    let counted = roles
        .iter()
        .filter(|role| role.get("subRoles").is_none() && role.get("scaling").is_none());
    let empty: Vec<bool> = counted
        .map(|role| number(role, "/spec/replicas") == 0)
        .collect();
    let is_mixed = empty.contains(&true) && empty.contains(&false);
    names.len() == all && !is_mixed
}

/// What somebody does to a child that only the controller should touch. Groups of a child with sub-roles are left alone: nothing more is planned for one
/// whose counts do not sum up (section 12.2 of the rules).
pub fn meddle(store: &Store, random: &mut Random) -> Option<(Key, Value)> {
    let children = store.list(Kind::LeaderWorkerSet);
    let is_divided = |child: &Value| !annotation(child, ds_annotation::SUBROLE_REPLICAS).is_empty();
    let whole: Vec<_> = children.filter(|(_, child)| !is_divided(child)).collect();
    let (key, child) = random.pick(&whole)?;
    let patch = if random.chance(300) {
        let name = ds_annotation::INITIAL_REPLICAS;
        json!({"metadata": {"uid": uid(child), "annotations": {name: null}}})
    } else {
        json!({"metadata": {"uid": uid(child)}, "spec": {"replicas": random.below(4)}})
    };
    Some(((*key).clone(), patch))
}
