//! The current revision path (CUR-1 … CUR-8): no old child is there, so every role goes to what is wanted in one step.

use super::revisions::Revisions;
use super::routing::{Routed, route};
use super::{Act, Child, Pass, Rest, Scale, Slice};
use crate::disaggregatedset::sub_roles::Ask;
use crate::disaggregatedset::targets::RoleTarget;

/// CUR-1, CUR-7: in the order of the spec. A child that is terminating is waited for, since its name is taken.
pub(super) fn pass(slice: &Slice) -> Pass {
    let revisions = Revisions::of(slice);
    let mut pass = Pass {
        acts: Vec::new(),
        on_failure: Rest::GoesOn,
        events: Vec::new(),
        is_unfinished: false,
        faults: Vec::new(),
    };
    for target in &slice.roles {
        match revisions.target.get(&target.role) {
            None => pass.acts.push(Act::Create {
                role: target.role.clone(),
                starting: target.replicas,
                intended: target.replicas,
            }),
            Some(child) if child.is_terminating => pass.is_unfinished = true,
            Some(child) => follow(child, target, &mut pass),
        }
    }
    pass
}

/// CUR-6, SRL-16: a child whose groups are divided goes its own way.
fn follow(child: &Child, target: &RoleTarget, pass: &mut Pass) {
    let counts = target.counts();
    let is_partitioned = !counts.is_empty();
    let ask = Ask {
        target: is_partitioned.then(|| counts.clone()),
        baseline: is_partitioned.then(|| counts.clone()),
        membership: Some(counts),
    };
    match route(child, &ask, false) {
        Routed::Undivided => pass.acts.extend(resize(child, target.replicas)),
        Routed::Settled => {}
        Routed::Waits(act) => {
            pass.acts.extend(act);
            pass.is_unfinished = true;
        }
        Routed::Faulty(fault) => pass.faults.push(fault),
    }
}

/// CUR-2, CUR-3.
fn resize(child: &Child, wanted: u64) -> Option<Act> {
    let initial = (child.initial != Some(wanted)).then_some(wanted);
    let replicas = (child.spec != wanted).then_some(Scale {
        from: child.spec,
        to: wanted,
        is_told: false,
    });
    (initial.is_some() || replicas.is_some()).then(|| Act::Update {
        child: child.name.clone(),
        initial,
        replicas,
    })
}
