//! The variables of every container of an LWS pod (pods.md section 6).

use lws_api::names::{annotation, env, label};

use super::Denial;
use super::draft::{Draft, Entry, Role};

/// ENV-1: the three variables in front of all others, in their order.
pub(super) fn group_variables(draft: &Draft<'_>) -> Result<[Entry; 3], Denial> {
    let size = draft
        .annotation(annotation::SIZE)
        .unwrap_or_default()
        .to_owned();
    let index = draft
        .label(label::WORKER_INDEX)
        .unwrap_or_default()
        .to_owned();
    Ok([
        (env::LEADER_ADDRESS, leader_address(draft)?),
        (env::GROUP_SIZE, size),
        (env::WORKER_INDEX, index),
    ])
}

/// ENV-2: the controllers write the address on workers. A leader knows its own; an Ordinal worker without it can still
/// derive it, a Hash worker cannot.
fn leader_address(draft: &Draft<'_>) -> Result<String, Denial> {
    let missing = |kind, key| Denial::Missing {
        kind,
        key,
        pod: draft.name().to_owned(),
    };
    if let Some(address) = draft
        .annotation(annotation::LEADER_ADDRESS)
        .filter(|address| !address.is_empty())
    {
        return Ok(address.to_owned());
    }
    let (subdomain, namespace) = (draft.subdomain(), draft.namespace());
    if draft.role() == Role::Leader && !draft.hostname().is_empty() {
        return Ok(format!("{}.{subdomain}.{namespace}", draft.hostname()));
    }
    if draft.is_hash() {
        return Err(missing("annotation", annotation::LEADER_ADDRESS));
    }
    let set = draft.label(label::NAME).unwrap_or_default();
    let group = draft
        .label(label::GROUP_INDEX)
        .ok_or_else(|| missing("label", label::GROUP_INDEX))?;
    Ok(format!("{set}-{group}.{subdomain}.{namespace}"))
}
