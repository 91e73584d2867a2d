//! CEL rules of the CRDs.
//!
//! Those of LeaderWorkerSet (API-3) say what holds for a spec by itself or against its old self, so that it is kept where no
//! webhook answers. They stand at the root of the schema, never in the spec type, since roles of a DisaggregatedSet embed that
//! and stay mutable. A rule about a spec by itself lets an object that already broke it be updated elsewhere: it also holds
//! when what it reads is as it was. Presence, numbers and literals are compared, nothing else: comparing objects, lists or
//! free texts with the old object exceeds the cost that an API server allows.

use kube::core::{Reason, Rule};
use serde_json::{Value, json};

use crate::wording;

/// Fields that users see in a finding.
const SUBGROUP_FIELD: &str = ".spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize";
const MAX_RESTARTS_FIELD: &str = ".spec.leaderWorkerTemplate.maxGroupRestarts";
const BACKOFF_FIELD: &str = ".spec.leaderWorkerTemplate.restartBackoff";
const BASE_FIELD: &str = ".spec.leaderWorkerTemplate.restartBackoff.baseSeconds";
const IDENTITY_FIELD: &str = ".spec.groupIdentity";
const REPLACEMENT_FIELD: &str = ".spec.groupReplacementPolicy";

/// Terms to be read off `self` or `oldSelf`; every step is optional, as a stored object may lack any member.
const POLICY: &str = "?spec.?leaderWorkerTemplate.?subGroupPolicy";
const SUBGROUP: &str = "?spec.?leaderWorkerTemplate.?subGroupPolicy.?subGroupSize";
const EXCLUDED: &str = "?spec.?leaderWorkerTemplate.?subGroupPolicy.?subGroupPolicyType.orValue('LeaderWorker') == 'LeaderExcluded'";
const SIZE: &str = "?spec.?leaderWorkerTemplate.?size.orValue(1)";
const RECREATES: &str = "?spec.?leaderWorkerTemplate.?restartPolicy.orValue('RecreateGroupOnPodRestart') \
     in ['RecreateGroupOnPodRestart', 'RecreateGroupAfterStart']";
const MAX_RESTARTS: &str = "?spec.?leaderWorkerTemplate.?maxGroupRestarts";
const BACKOFF: &str = "?spec.?leaderWorkerTemplate.?restartBackoff";
const BASE: &str = "?spec.?leaderWorkerTemplate.?restartBackoff.?baseSeconds.orValue(10)";
const CAP: &str = "?spec.?leaderWorkerTemplate.?restartBackoff.?capSeconds.orValue(300)";
const HASH: &str = "?spec.?groupIdentity.orValue('Ordinal') == 'Hash'";
const IMMEDIATE: &str = "?spec.?groupReplacementPolicy.orValue('PostTermination') == 'Immediate'";
const CLAIMS: &str = "?spec.?leaderWorkerTemplate.?volumeClaimTemplates.orValue([]).size() > 0";
const PARTITION: &str = "?spec.?rolloutStrategy.?rollingUpdateConfiguration.?partition.orValue(0)";

/// API-3: the rules of the root schema of LeaderWorkerSet, in the order of admission sections 4 and 5.
pub(crate) fn leader_worker_set() -> Vec<Rule> {
    [
        subgroup_rules(),
        restart_rules(),
        identity_rules(),
        transition_rules(),
    ]
    .concat()
}

/// V-9 and the four parts of V-10, which are silent when V-9 speaks.
fn subgroup_rules() -> Vec<Rule> {
    let required = lasting(
        wording::SUBGROUP_SIZE_REQUIRED,
        SUBGROUP_FIELD,
        format!("!self.{POLICY}.hasValue() || self.{SUBGROUP}.hasValue()"),
        format!("oldSelf.{POLICY}.hasValue() && !oldSelf.{SUBGROUP}.hasValue()"),
    )
    .reason(Reason::FieldValueRequired);

    let subgroup = format!("self.{SUBGROUP}.orValue(1)");
    let unchanged = format!(
        "oldSelf.{SUBGROUP}.hasValue() && oldSelf.{SUBGROUP}.orValue(1) == {subgroup} \
         && oldSelf.{SIZE} == self.{SIZE} && (oldSelf.{EXCLUDED}) == (self.{EXCLUDED})"
    );
    let part = |message, condition: String| {
        let holds = format!("!self.{SUBGROUP}.hasValue() || {condition}");
        lasting(message, SUBGROUP_FIELD, holds, unchanged.clone())
    };
    vec![
        required,
        part(wording::SUBGROUP_SIZE_POSITIVE, format!("{subgroup} >= 1")),
        part(
            wording::SUBGROUP_SIZE_DIVIDES,
            format!(
                "{subgroup} < 1 || self.{SIZE} % {subgroup} == 0 || (self.{SIZE} - 1) % {subgroup} == 0"
            ),
        ),
        part(
            wording::SUBGROUP_SIZE_FITS,
            format!("{subgroup} < 1 || {subgroup} <= self.{SIZE}"),
        ),
        part(
            wording::SUBGROUP_SIZE_EXCLUDED,
            format!("{subgroup} < 1 || !(self.{EXCLUDED}) || (self.{SIZE} - 1) % {subgroup} == 0"),
        ),
    ]
}

/// V-12 and V-13; the bounds of V-13 (b) and (c) are in the schema.
fn restart_rules() -> Vec<Rule> {
    let needs_recreation = |message, field, member: &str| {
        lasting(
            message,
            field,
            format!("!self.{member}.hasValue() || self.{RECREATES}"),
            format!("oldSelf.{member}.hasValue() && !(oldSelf.{RECREATES})"),
        )
    };
    vec![
        needs_recreation(
            wording::MAX_GROUP_RESTARTS_POLICY,
            MAX_RESTARTS_FIELD,
            MAX_RESTARTS,
        ),
        needs_recreation(wording::RESTART_BACKOFF_POLICY, BACKOFF_FIELD, BACKOFF),
        lasting(
            wording::RESTART_BACKOFF_ORDER,
            BASE_FIELD,
            format!("self.{BASE} <= self.{CAP}"),
            format!("oldSelf.{BASE} == self.{BASE} && oldSelf.{CAP} == self.{CAP}"),
        ),
    ]
}

/// V-14 and both parts of V-15.
fn identity_rules() -> Vec<Rule> {
    vec![
        lasting(
            wording::IMMEDIATE_NEEDS_HASH,
            REPLACEMENT_FIELD,
            format!("!(self.{IMMEDIATE}) || self.{HASH}"),
            format!("oldSelf.{IMMEDIATE} && !(oldSelf.{HASH})"),
        ),
        lasting(
            wording::HASH_WITHOUT_CLAIMS,
            IDENTITY_FIELD,
            format!("!(self.{HASH}) || !(self.{CLAIMS})"),
            format!("oldSelf.{HASH} && oldSelf.{CLAIMS}"),
        ),
        lasting(
            wording::HASH_WITHOUT_PARTITION,
            IDENTITY_FIELD,
            format!("!(self.{HASH}) || self.{PARTITION} == 0"),
            format!("oldSelf.{HASH} && oldSelf.{PARTITION} == self.{PARTITION}"),
        ),
    ]
}

/// U-2, U-3 and U-5.
fn transition_rules() -> Vec<Rule> {
    vec![
        rule(
            wording::SUBGROUP_POLICY_ADDED,
            SUBGROUP_FIELD,
            format!("!self.{POLICY}.hasValue() || oldSelf.{POLICY}.hasValue()"),
        ),
        rule(
            wording::SUBGROUP_POLICY_REMOVED,
            SUBGROUP_FIELD,
            format!("self.{POLICY}.hasValue() || !oldSelf.{POLICY}.hasValue()"),
        ),
        rule(
            wording::IMMUTABLE,
            IDENTITY_FIELD,
            format!("(self.{HASH}) == (oldSelf.{HASH})"),
        ),
    ]
}

/// A rule about a spec by itself, which an object that already broke it in the same way may go on breaking.
fn lasting(message: &str, field: &str, holds: String, unchanged: String) -> Rule {
    rule(message, field, format!("{holds} || ({unchanged})")).optional_old_self(true)
}

fn rule(message: &str, field: &str, rule: String) -> Rule {
    Rule::new(rule).message(message).field_path(field)
}

/// CEL-1: the roles that count their own replicas are all paused or all running.
pub(crate) fn roles() -> Value {
    let counting = "self.roles.filter(x, (!has(x.subRoles) || x.subRoles.size() == 0) \
                    && (!has(x.scaling) || x.scaling.mode != 'External'))";
    json!([{
        "message": wording::ROLES_ZERO_OR_NOT,
        "rule": format!(
            "{counting}.all(x, !has(x.spec) || !has(x.spec.replicas) || x.spec.replicas == 0) \
             || {counting}.all(x, !has(x.spec) || (has(x.spec.replicas) && x.spec.replicas > 0))"
        ),
    }])
}

/// CEL-2: an external sub-role gets its replicas from its scaler alone.
pub(crate) fn sub_roles() -> Value {
    json!([{
        "message": wording::EXTERNAL_WITHOUT_REPLICAS,
        "rule": "!has(self.scaling) || self.scaling.mode != 'External' || !has(self.replicas)",
    }])
}
