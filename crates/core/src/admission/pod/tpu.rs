//! Variables by which the TPU containers of a group find each other (pods.md section 7).

use lws_api::names::{TPU_RESOURCE, annotation, env, label};

use super::Denial;
use super::draft::{Draft, Entry, Role};
use super::patch::ContainerList;
use crate::admission::json::Json;
use crate::identity::parse_ordinal;
use crate::model::is_positive;

/// Port of the first TPU container that names none.
const FIRST_PORT: i64 = 8476;
/// Entries that a list of members may have. Real slices have at most some thousand hosts; a hostile size must not make
/// us build a list that no API server would store.
const MAX_MEMBERS: i64 = 20_000;

/// Variables to append to one container.
#[derive(Debug)]
pub(super) struct Addition {
    pub(super) list: ContainerList,
    pub(super) index: usize,
    pub(super) entries: Vec<Entry>,
}

/// A container that requests TPUs, with the port it listens on.
struct TpuContainer<'a> {
    list: ContainerList,
    index: usize,
    env: Json<'a>,
    port: String,
    names_port: bool,
}

/// Members `first ..= last` of a slice whose member 0 is called `base`.
struct Slice<'d> {
    base: &'d str,
    domain: &'d str,
    first: i64,
    last: i64,
}

/// PA-6: what the TPU containers of the pod get; nothing if the user named the members already (TPU-4).
pub(super) fn variables(draft: &Draft<'_>, size: i64) -> Result<Vec<Addition>, Denial> {
    let in_subgroup = draft.annotation(annotation::SUBGROUP_SIZE).is_some();
    let port_step = if in_subgroup { 0 } else { 1 };
    let containers: Vec<_> = tpu_containers(draft.pod(), port_step).collect();
    let Some(first) = containers.first() else {
        return Ok(Vec::new());
    };
    let named = [env::TPU_WORKER_HOSTNAMES, env::TPU_WORKER_ID]
        .iter()
        .any(|name| variable(first.env, name).is_present());
    if named {
        Ok(Vec::new())
    } else if in_subgroup {
        Ok(vec![subgroup_variables(draft, first)?])
    } else {
        group_variables(draft, size, &containers)
    }
}

/// TPU-1, TPU-5: `containers`, then `initContainers`; each without a port of its own listens `port_step` above the last.
fn tpu_containers(pod: Json<'_>, port_step: i64) -> impl Iterator<Item = TpuContainer<'_>> {
    let lists = [ContainerList::Main, ContainerList::Init];
    let all = lists.into_iter().flat_map(move |list| {
        pod.at("spec")
            .at(list.member())
            .items()
            .enumerate()
            .map(move |(index, container)| (list, index, container))
    });
    let with_tpu = all.filter(|(_, _, container)| requests_tpus(*container));
    (0..)
        .zip(with_tpu)
        .map(move |(position, (list, index, container))| {
            let env = container.at("env");
            let own_port = variable(env, env::TPU_PROCESS_PORT);
            let names_port = own_port.is_present();
            let default_port = || (FIRST_PORT + position * port_step).to_string();
            let port = if names_port {
                own_port.at("value").text().to_owned()
            } else {
                default_port()
            };
            TpuContainer {
                list,
                index,
                env,
                port,
                names_port,
            }
        })
}

fn requests_tpus(container: Json<'_>) -> bool {
    ["limits", "requests"]
        .iter()
        .any(|kind| is_positive(&container.at("resources").at(kind).at(TPU_RESOURCE).scalar()))
}

fn variable<'a>(env: Json<'a>, name: &str) -> Json<'a> {
    env.items()
        .find(|entry| entry.at("name").text() == name)
        .unwrap_or_default()
}

/// TPU-7 … TPU-9: every TPU container of the pod is a member of its own.
fn group_variables(
    draft: &Draft<'_>,
    size: i64,
    containers: &[TpuContainer<'_>],
) -> Result<Vec<Addition>, Denial> {
    let leads = draft.role() == Role::Leader;
    let with_leader = leads || leader_requests_tpus(draft);
    let index = if leads {
        0
    } else {
        draft.label_number(label::WORKER_INDEX)?
    };
    let position = if with_leader {
        index
    } else {
        index.saturating_sub(1)
    };
    let slice = slice(
        draft,
        if with_leader { 0 } else { 1 },
        size.saturating_sub(1),
    )?;
    let per_pod = i64::try_from(containers.len()).unwrap_or(i64::MAX);
    slice.check(draft, per_pod)?;

    let hosts = slice.list(|host| vec![host; containers.len()].join(","));
    let addresses = slice.list(|host| {
        let each: Vec<_> = containers
            .iter()
            .map(|container| format!("{host}:{}", container.port))
            .collect();
        each.join(",")
    });
    let additions = (0..).zip(containers).map(|(offset, container)| {
        let id = position.saturating_mul(per_pod).saturating_add(offset);
        container.addition(hosts.clone(), id, slice.base, addresses.clone())
    });
    Ok(additions.collect())
}

/// TPU-10, TPU-11: only the first TPU container of the pod is a member, of its subgroup's slice.
fn subgroup_variables(draft: &Draft<'_>, container: &TpuContainer<'_>) -> Result<Addition, Denial> {
    let size = draft.annotation_number(annotation::SUBGROUP_SIZE)?;
    let subgroup = draft.label_number(label::SUBGROUP_INDEX)?;
    let worker = draft.label_number(label::WORKER_INDEX)?;
    let with_leader = draft.role() == Role::Leader || leader_requests_tpus(draft);
    let position = if with_leader {
        worker
    } else {
        worker.saturating_sub(1)
    };
    let unusable = || draft.not_a_number("annotation", annotation::SUBGROUP_SIZE);
    let id = position.checked_rem(size).ok_or_else(unusable)?;
    let first = match draft.role() {
        Role::Leader => Some(0),
        Role::Worker if with_leader => size.checked_mul(subgroup),
        Role::Worker => position
            .checked_div(size)
            .and_then(|own| size.checked_mul(own)?.checked_add(1)),
    };
    let first = first.ok_or_else(unusable)?;
    let last = first
        .checked_add(size)
        .and_then(|end| end.checked_sub(1))
        .ok_or_else(unusable)?;
    let slice = slice(draft, first, last)?;
    slice.check(draft, 1)?;

    let hosts = slice.list(|host| host);
    let addresses = slice.list(|host| format!("{host}:{}", container.port));
    Ok(container.addition(hosts, id, slice.base, addresses))
}

/// TPU-2.
fn leader_requests_tpus(draft: &Draft<'_>) -> bool {
    draft.annotation(annotation::LEADER_REQUESTS_TPUS) == Some("true")
}

/// TPU-3: what the hosts of the slice are called.
fn slice<'d>(draft: &'d Draft<'_>, first: i64, last: i64) -> Result<Slice<'d>, Denial> {
    let base = match draft.role() {
        Role::Leader if draft.is_hash() => draft.hostname(),
        Role::Leader => draft.name(),
        Role::Worker => {
            let no_ordinal = || Denial::NoOrdinal {
                role: "worker",
                pod: draft.name().to_owned(),
            };
            parse_ordinal(draft.name()).ok_or_else(no_ordinal)?.0
        }
    };
    Ok(Slice {
        base,
        domain: draft.subdomain(),
        first,
        last,
    })
}

impl Slice<'_> {
    /// Refuses lists that no pod could hold, before they are built.
    fn check(&self, draft: &Draft<'_>, per_member: i64) -> Result<(), Denial> {
        let members = self
            .last
            .saturating_sub(self.first)
            .saturating_add(1)
            .saturating_mul(per_member);
        if members > MAX_MEMBERS {
            return Err(Denial::TooManyMembers {
                pod: draft.name().to_owned(),
                members,
            });
        }
        Ok(())
    }

    fn list(&self, each: impl Fn(String) -> String) -> String {
        let members: Vec<_> = (self.first..=self.last)
            .map(|member| each(self.host(member)))
            .collect();
        members.join(",")
    }

    fn host(&self, member: i64) -> String {
        let Self { base, domain, .. } = self;
        if member == 0 {
            format!("{base}.{domain}")
        } else {
            format!("{base}-{member}.{domain}")
        }
    }
}

impl TpuContainer<'_> {
    /// TPU-6: in this order; the port only where the user named none.
    fn addition(&self, hosts: String, id: i64, slice: &str, addresses: String) -> Addition {
        let mut entries = vec![
            (env::TPU_WORKER_HOSTNAMES, hosts),
            (env::TPU_WORKER_ID, id.to_string()),
            (env::TPU_NAME, slice.to_owned()),
            (env::TPU_PROCESS_ADDRESSES, addresses),
        ];
        if !self.names_port {
            entries.push((env::TPU_PROCESS_PORT, self.port.clone()));
        }
        Addition {
            list: self.list,
            index: self.index,
            entries,
        }
    }
}
