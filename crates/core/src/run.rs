//! A plan being performed: which request comes next, and what its answer means.
//!
//! One request is under way at a time. Whoever drives a [`Run`] sends what [`Run::next_request`] gives and hands the answer to [`Run::answer`]; the shell does so
//! over HTTP, the simulator against its store. So a crash is a position in a run, and every driver treats answers alike (KRS-20).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::intent::{Accept, IfFailed, Intent, Propagation, Step, Subresource, Target};
use crate::model::{Meta, Service, Uid};
use crate::notice::Notice;
use crate::ownership::{Ownership, judge};

/// One request to the API server.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// POST.
    Create {
        /// The object.
        target: Target,
        /// Its whole body.
        body: Arc<Value>,
    },
    /// GET.
    Read {
        /// The object.
        target: Target,
    },
    /// PATCH, `application/apply-patch+yaml`, forced.
    Apply {
        /// The object.
        target: Target,
        /// Body with `metadata.uid`.
        body: Value,
    },
    /// PATCH, `application/merge-patch+json`.
    Patch {
        /// The object.
        target: Target,
        /// Which part of it.
        subresource: Subresource,
        /// Body with `metadata.uid`, and `metadata.resourceVersion` where fenced.
        body: Value,
    },
    /// PATCH of the status, `application/strategic-merge-patch+json`: lists of conditions are merged by type.
    MergeStatus {
        /// The object.
        target: Target,
        /// Body with `metadata.uid`.
        body: Value,
    },
    /// DELETE with a UID precondition.
    Delete {
        /// The object.
        target: Target,
        /// The UID.
        uid: Uid,
        /// The version, where it matters.
        resource_version: Option<Arc<str>>,
        /// Propagation.
        propagation: Propagation,
    },
}

impl Request {
    /// The object that the request goes to.
    pub fn target(&self) -> &Target {
        match self {
            Self::Create { target, .. }
            | Self::Read { target }
            | Self::Apply { target, .. }
            | Self::Patch { target, .. }
            | Self::MergeStatus { target, .. }
            | Self::Delete { target, .. } => target,
        }
    }

    /// Whether it can change anything.
    pub fn is_write(&self) -> bool {
        !matches!(self, Self::Read { .. })
    }
}

/// How a request failed (KRS-20).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// The object is not there.
    Gone,
    /// The object is not the one, or not in the version, that was decided on.
    Conflict,
    /// A create found the name taken.
    Exists,
    /// The API server will not take it until something changes.
    Rejected,
    /// Too many requests.
    Throttled,
    /// The outcome is not known.
    Unknown,
    /// The namespace is going away.
    Terminating,
}

/// A failed request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Kind of failure.
    pub class: Class,
    /// The API server's words.
    pub message: String,
    /// When the server asked to come back.
    pub retry_after: Option<Duration>,
}

/// What a write changed, for the read-your-writes guard (KRS-36).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The object.
    pub target: Target,
    /// Its UID.
    pub uid: Uid,
    /// What the cache must show before the key is planned again.
    pub seen_as: SeenAs,
}

/// What the cache must show of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeenAs {
    /// This version of the object, or a newer one.
    Version(Arc<str>),
    /// A deletion timestamp, or no object of that UID.
    Deleted,
    /// Another version than this: the one that a refused write carried.
    NotVersion(Arc<str>),
}

/// What became of a pass.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Outcome {
    /// Writes that were made.
    pub written: Vec<Written>,
    /// Events to post.
    pub notices: Vec<Notice>,
    /// Objects that steps wrote or found to be theirs, by step.
    pub answers: Vec<Option<Value>>,
    /// The first failure.
    pub failure: Option<Failure>,
    /// Position of the step that failed first.
    pub failed_at: Option<usize>,
    /// A write was refused because the cache was behind; plan again from a newer one.
    pub conflict: bool,
    /// The pass ended early: no status is written.
    pub stopped: bool,
}

impl Outcome {
    /// Every step was done.
    pub fn is_complete(&self) -> bool {
        self.failure.is_none() && !self.conflict && !self.stopped
    }
}

#[derive(Clone, Debug, PartialEq)]
enum State {
    /// The next step is to be sent.
    Ready,
    /// The step's own request is to be sent, then its answer comes.
    Sent,
    /// A create found the name taken: reading what stands there.
    Judging,
    /// Reading an object whose fields are to be claimed before an apply.
    ReadingClaim,
    /// Claiming fields before an apply (`true`) or after a create.
    Claiming { apply_follows: bool },
}

/// A list of steps being performed.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    steps: Vec<Step>,
    position: usize,
    state: State,
    /// The object whose fields are claimed.
    claimed: Option<Value>,
    outcome: Outcome,
}

impl Run {
    /// Starts `steps`.
    pub fn new(steps: Vec<Step>) -> Self {
        let answers = vec![None; steps.len()];
        Self {
            steps,
            position: 0,
            state: State::Ready,
            claimed: None,
            outcome: Outcome {
                answers,
                ..Outcome::default()
            },
        }
    }

    /// The request to send now; `None` when the run is over.
    pub fn next_request(&mut self) -> Option<Request> {
        let step = self.steps.get(self.position)?;
        let target = step.intent.target().clone();
        let request = match (&self.state, &step.intent) {
            (State::Ready, Intent::Apply { claim: true, .. }) => {
                self.state = State::ReadingClaim;
                Request::Read { target }
            }
            (State::Ready | State::Sent, intent) => {
                let request = request(intent);
                self.state = State::Sent;
                request
            }
            (State::Judging | State::ReadingClaim, _) => Request::Read { target },
            (State::Claiming { .. }, _) => Request::Patch {
                target,
                subresource: Subresource::None,
                body: claim_patch(self.claimed.as_ref().unwrap_or(&Value::Null)),
            },
        };
        Some(request)
    }

    /// The step that is being performed.
    pub fn step(&self) -> Option<&Step> {
        self.steps.get(self.position)
    }

    /// What has become of the run so far.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// Ends the run and tells what became of it.
    pub fn finish(self) -> Outcome {
        self.outcome
    }

    /// Takes the answer to the request that [`Run::next_request`] gave: the object as the server returned it, or the failure.
    pub fn answer(&mut self, answer: Result<Value, Failure>) {
        let Some(step) = self.steps.get(self.position).cloned() else {
            return;
        };
        match (self.state.clone(), answer) {
            (State::Ready | State::Sent, Ok(object)) => self.done(&step, object),
            (State::Ready | State::Sent, Err(failure)) => self.failed(&step, failure),
            (State::Judging, Ok(object)) => self.judge(&step, object),
            (State::ReadingClaim, Ok(object)) => self.start_claim(&step, object, true),
            (
                State::Claiming {
                    apply_follows: true,
                },
                Ok(object),
            ) => {
                self.note_version(&step, &object);
                self.state = State::Sent;
            }
            (
                State::Claiming {
                    apply_follows: false,
                },
                Ok(object),
            ) => {
                self.note_version(&step, &object);
                self.advance();
            }
            // The claim after a create can wait: the next apply makes up for it (KRS-54).
            (
                State::Claiming {
                    apply_follows: false,
                },
                Err(_),
            ) => self.advance(),
            (
                State::Judging
                | State::ReadingClaim
                | State::Claiming {
                    apply_follows: true,
                },
                Err(failure),
            ) => self.failed(&step, failure),
        }
    }

    fn done(&mut self, step: &Step, object: Value) {
        match &step.intent {
            Intent::Delete { target, uid, .. } => {
                let written = Written {
                    target: target.clone(),
                    uid: uid.clone(),
                    seen_as: SeenAs::Deleted,
                };
                self.outcome.written.push(written);
            }
            Intent::Create { .. }
            | Intent::Apply { .. }
            | Intent::Patch { .. }
            | Intent::SetCondition { .. } => self.note_version(step, &object),
        }
        self.outcome.notices.extend(step.on_success.iter().cloned());
        let claim = matches!(step.intent, Intent::Create { claim: true, .. });
        self.store_answer(object.clone());
        if claim {
            self.start_claim(step, object, false)
        } else {
            self.advance()
        }
    }

    fn failed(&mut self, step: &Step, failure: Failure) {
        match (&step.intent, failure.class) {
            (
                Intent::Delete {
                    target,
                    uid,
                    resource_version,
                    ..
                },
                class @ (Class::Gone | Class::Conflict),
            ) if class == Class::Gone || resource_version.is_none() => {
                // Already done; the cache will show it.
                let written = Written {
                    target: target.clone(),
                    uid: uid.clone(),
                    seen_as: SeenAs::Deleted,
                };
                self.outcome.written.push(written);
                self.advance();
            }
            (Intent::Create { .. }, Class::Exists) if self.state != State::Judging => {
                self.state = State::Judging
            }
            (intent, Class::Gone | Class::Conflict) => {
                self.outcome.conflict = true;
                if let Some(refused) = refused_version(intent) {
                    self.outcome.written.push(refused);
                }
                self.stop();
            }
            (_, Class::Terminating) => self.stop(),
            (_, Class::Exists | Class::Rejected | Class::Throttled | Class::Unknown) => {
                self.report(step, failure)
            }
        }
    }

    fn judge(&mut self, step: &Step, object: Value) {
        let Intent::Create { body, accept, .. } = &step.intent else {
            return self.advance();
        };
        let by = match accept {
            Accept::Controlled { by, .. }
            | Accept::Serving { by, .. }
            | Accept::SameData { by } => by,
        };
        let meta = metadata(&object);
        let ownership = judge(&meta, by);
        match (accept, ownership) {
            (Accept::SameData { .. }, Ownership::Ours)
                if object.get("data") == body.get("data") =>
            {
                self.accept(step, object)
            }
            (Accept::Controlled { .. } | Accept::Serving { .. }, Ownership::Ours) => {
                self.accept(step, object)
            }
            (Accept::Controlled { .. } | Accept::Serving { .. }, Ownership::Leftover) => {
                self.outcome.conflict = true;
                self.stop();
            }
            // Without our label it may never show in the cache, so its version is not waited for.
            (Accept::Serving { selector, .. }, Ownership::Foreign) if serves(&object, selector) => {
                self.store_answer(object);
                self.advance();
            }
            (
                Accept::Controlled { foreign, .. } | Accept::Serving { foreign, .. },
                Ownership::Foreign,
            ) => self.report(step, exists(foreign.clone())),
            (Accept::SameData { .. }, _) => {
                let message = format!(
                    "{} {} already exists with other data",
                    step.intent.target().kind.name(),
                    meta.key
                );
                self.report(step, exists(message));
            }
        }
    }

    /// Created by us before, in a pass whose answer got lost: go on, without a second event.
    fn accept(&mut self, step: &Step, object: Value) {
        self.note_version(step, &object);
        self.store_answer(object);
        self.advance();
    }

    fn report(&mut self, step: &Step, failure: Failure) {
        if let Some(notice) = &step.on_failure {
            self.outcome
                .notices
                .push(notice.clone().because(&failure.message));
        }
        if self.outcome.failure.is_none() {
            let message = match &step.doing {
                Some(doing) => format!("{doing}: {}", failure.message),
                None => failure.message,
            };
            self.outcome.failure = Some(Failure { message, ..failure });
            self.outcome.failed_at = Some(self.position);
        }
        match step.if_failed {
            IfFailed::Stop => self.stop(),
            IfFailed::Report => self.position = self.steps.len(),
            IfFailed::Continue => self.advance(),
            IfFailed::LeavePart => {
                self.advance();
                while self.step().is_some_and(|next| next.part == step.part) {
                    self.advance();
                }
            }
        }
    }

    fn start_claim(&mut self, step: &Step, object: Value, apply_follows: bool) {
        let meta = metadata(&object);
        let is_same = match &step.intent {
            Intent::Apply { uid, .. } => meta.uid == *uid,
            Intent::Create { .. }
            | Intent::Patch { .. }
            | Intent::SetCondition { .. }
            | Intent::Delete { .. } => true,
        };
        if !is_same {
            self.outcome.conflict = true;
            return self.stop();
        }
        self.claimed = Some(object);
        self.state = State::Claiming { apply_follows };
    }

    fn note_version(&mut self, step: &Step, object: &Value) {
        let meta = metadata(object);
        if meta.resource_version.is_empty() {
            return;
        }
        self.outcome.written.push(Written {
            target: step.intent.target().clone(),
            uid: meta.uid,
            seen_as: SeenAs::Version(meta.resource_version),
        });
    }

    fn store_answer(&mut self, object: Value) {
        if let Some(slot) = self.outcome.answers.get_mut(self.position) {
            *slot = Some(object);
        }
    }

    fn advance(&mut self) {
        self.position += 1;
        self.state = State::Ready;
    }

    fn stop(&mut self) {
        self.outcome.stopped = true;
        self.position = self.steps.len();
    }
}

fn exists(message: String) -> Failure {
    Failure {
        class: Class::Exists,
        message,
        retry_after: None,
    }
}

fn refused_version(intent: &Intent) -> Option<Written> {
    let (Intent::Patch {
        target,
        uid,
        resource_version: Some(version),
        ..
    }
    | Intent::Delete {
        target,
        uid,
        resource_version: Some(version),
        ..
    }) = intent
    else {
        return None;
    };
    Some(Written {
        target: target.clone(),
        uid: uid.clone(),
        seen_as: SeenAs::NotVersion(version.clone()),
    })
}

fn request(intent: &Intent) -> Request {
    match intent {
        Intent::Create { target, body, .. } => Request::Create {
            target: target.clone(),
            body: body.clone(),
        },
        Intent::Apply {
            target,
            uid,
            resource_version,
            body,
            claim: _,
        } => Request::Apply {
            target: target.clone(),
            body: with_identity(body, uid, resource_version.as_deref()),
        },
        Intent::Patch {
            target,
            uid,
            resource_version,
            subresource,
            body,
        } => Request::Patch {
            target: target.clone(),
            subresource: *subresource,
            body: with_identity(body, uid, resource_version.as_deref()),
        },
        Intent::SetCondition {
            target,
            uid,
            condition,
        } => Request::MergeStatus {
            target: target.clone(),
            body: with_identity(&json!({"status": {"conditions": [condition]}}), uid, None),
        },
        Intent::Delete {
            target,
            uid,
            resource_version,
            propagation,
        } => Request::Delete {
            target: target.clone(),
            uid: uid.clone(),
            resource_version: resource_version.clone(),
            propagation: *propagation,
        },
    }
}

fn with_identity(body: &Value, uid: &Uid, resource_version: Option<&str>) -> Value {
    let mut body = body.clone();
    json_patch::merge(&mut body, &json!({"metadata": {"uid": uid.as_str()}}));
    if let Some(version) = resource_version {
        json_patch::merge(
            &mut body,
            &json!({"metadata": {"resourceVersion": version}}),
        );
    }
    body
}

/// KRS-54: the entry that our POST left, turned into an entry of our apply.
fn claim_patch(object: &Value) -> Value {
    let meta = metadata(object);
    let mut entries = object
        .pointer("/metadata/managedFields")
        .cloned()
        .unwrap_or_else(|| json!([]));
    for entry in entries.as_array_mut().into_iter().flatten() {
        let is_posted = entry["manager"] == lws_api::names::FIELD_MANAGER
            && entry["operation"] == "Update"
            && entry
                .get("subresource")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .is_empty();
        if is_posted {
            entry["operation"] = json!("Apply");
        }
    }
    json!({"metadata": {"uid": meta.uid.as_str(), "resourceVersion": &*meta.resource_version, "managedFields": entries}})
}

fn serves(object: &Value, selector: &BTreeMap<String, String>) -> bool {
    let service = core::Service::deserialize(object).map(Service::from);
    service.is_ok_and(|service| service.serves(selector))
}

fn metadata(object: &Value) -> Meta {
    let meta = object
        .get("metadata")
        .cloned()
        .and_then(|m| serde_json::from_value::<ObjectMeta>(m).ok());
    Meta::ours(&meta.unwrap_or_default())
}

#[cfg(test)]
mod tests;
