//! Which PodGroups a set and its groups want (NAT-33, NAT-47, D.1).

use lws_api::names::{label, role};
use lws_api::scheduling::Scheduling;

use super::drift::{compare, drifted};
use super::terms::{Sizes, templates};
use super::{Fault, Level, Part, Template, WantedGroup, carried, pod_group_name};
use crate::model::{Lws, Meta, Pod, Workload};

/// The PodGroup of the whole set; none while no group is wanted.
pub(crate) fn of_set<'a>(
    lws: &'a Lws,
    workload: &'a Meta,
    templates: &[Template],
) -> Option<WantedGroup<'a>> {
    let [template] = templates else {
        return None;
    };
    let name = &*workload.key.name;
    (lws.spec.replicas() > 0).then(|| WantedGroup {
        lws,
        name: pod_group_name(name, Part::Set, "", ""),
        labels: labels(lws, Level::Set),
        workload: Some(workload),
        made_from: (name.to_owned(), template.name.to_owned()),
        terms: template.terms.clone(),
    })
}

/// The PodGroups of a group of `size` pods whose leader is admitted; none at the level of the whole set. The templates of the Workload must be
/// those of the spec: what the API server dropped from them it drops here as well (NAT-41).
pub(crate) fn of_group<'a>(
    lws: &'a Lws,
    scheduling: &Scheduling,
    workload: &'a Workload,
    leader: &Pod,
    size: u32,
) -> Result<Vec<WantedGroup<'a>>, Fault> {
    let (level, templates) = templates(&lws.spec, scheduling, Sizes::of_group(size))?;
    let name = &*workload.key().name;
    let mut wanted = Vec::new();
    for template in templates {
        let part = match (level, template.name) {
            (Level::Set, _) => return Ok(Vec::new()),
            (Level::Replica, _) => Part::Group,
            (Level::Role, "leader") => Part::Leader,
            (Level::Role, _) => Part::Workers,
        };
        if part == Part::Workers && size < 2 {
            continue;
        }
        check(workload, &template)?;
        let mut labels = labels(lws, level);
        let of_leader = |key| (key, leader.meta.label(key).to_owned());
        labels.extend([of_leader(label::GROUP_INDEX), of_leader(label::REVISION)]);
        labels.extend(match part {
            Part::Set | Part::Group => None,
            Part::Leader => Some((label::ROLE, role::LEADER.to_owned())),
            Part::Workers => Some((label::ROLE, role::WORKER.to_owned())),
        });
        wanted.push(WantedGroup {
            lws,
            name: match part {
                Part::Workers => part.of_group(carried(leader, name), leader),
                Part::Set | Part::Group | Part::Leader => leader.scheduling_group.to_string(),
            },
            labels,
            workload: Some(&workload.meta),
            made_from: (name.to_owned(), template.name.to_owned()),
            terms: template.terms,
        });
    }
    Ok(wanted)
}

fn check(workload: &Workload, template: &Template) -> Result<(), Fault> {
    let what = format!("Workload {}", workload.key().name);
    let stored = workload
        .template(template.name)
        .ok_or_else(|| drifted(&what))?;
    compare(&stored.terms, &template.terms, &what).map(drop)
}

fn labels(lws: &Lws, level: Level) -> Vec<(&'static str, String)> {
    vec![
        (label::NAME, lws.key().name.to_string()),
        (label::SCHEDULING_LEVEL, level.as_str().to_owned()),
    ]
}
