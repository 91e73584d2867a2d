//! Texts of the findings that both the webhook and the CEL rules of the CRD report (API-3), so that a user reads the same
//! words whoever refuses the object.

/// V-9.
pub const SUBGROUP_SIZE_REQUIRED: &str = "is needed when subGroupPolicy is set";
/// V-10, first part.
pub const SUBGROUP_SIZE_POSITIVE: &str = "must be at least 1";
/// V-10, second part.
pub const SUBGROUP_SIZE_DIVIDES: &str = "size or size - 1 must be divisible by it";
/// V-10, third part.
pub const SUBGROUP_SIZE_FITS: &str = "must not be greater than size";
/// V-10, fourth part.
pub const SUBGROUP_SIZE_EXCLUDED: &str =
    "size - 1 must be divisible by it when the leader is excluded";
/// V-12.
pub const MAX_GROUP_RESTARTS_POLICY: &str =
    "maxGroupRestarts is only supported when restartPolicy recreates the group";
/// V-13 (a).
pub const RESTART_BACKOFF_POLICY: &str =
    "restartBackoff is only supported when restartPolicy recreates the group";
/// V-13 (b) and (c).
pub const RESTART_BACKOFF_POSITIVE: &str = "must be greater than 0";
/// V-13 (d).
pub const RESTART_BACKOFF_ORDER: &str = "baseSeconds must not be greater than capSeconds";
/// V-14.
pub const IMMEDIATE_NEEDS_HASH: &str = "Immediate needs groupIdentity Hash";
/// V-15, first part.
pub const HASH_WITHOUT_CLAIMS: &str = "Hash is not supported together with volumeClaimTemplates";
/// V-15, second part.
pub const HASH_WITHOUT_PARTITION: &str = "Hash is not supported together with a partition";
/// U-2.
pub const SUBGROUP_POLICY_ADDED: &str = "subGroupPolicy cannot be added to an existing set";
/// U-3.
pub const SUBGROUP_POLICY_REMOVED: &str = "subGroupPolicy cannot be removed from an existing set";
/// U-1, U-5, S-11.
pub const IMMUTABLE: &str = "field is immutable";
/// CEL-1 of api-disaggregatedset.
pub const ROLES_ZERO_OR_NOT: &str = "replicas must be zero for all non-External unpartitioned roles or non-zero for all non-External unpartitioned roles";
/// CEL-2 of api-disaggregatedset.
pub const EXTERNAL_WITHOUT_REPLICAS: &str =
    "replicas must be omitted when scaling.mode is External";
