//! The current revision path (CUR-1 … CUR-8): no old child is there, so every role goes to what is wanted in one step.

use super::revisions::Revisions;
use super::{Act, Pass, Rest, Scale, Slice};

/// CUR-1 … CUR-3, CUR-7: in the order of the spec. A child that is terminating is waited for, since its name is taken.
pub(super) fn pass(slice: &Slice) -> Pass {
    let revisions = Revisions::of(slice);
    let mut acts = Vec::new();
    let mut is_unfinished = false;
    for target in &slice.roles {
        let wanted = target.replicas;
        let Some(child) = revisions.target.get(&target.role) else {
            acts.push(Act::Create {
                role: target.role.clone(),
                starting: wanted,
                intended: wanted,
            });
            continue;
        };
        if child.is_terminating {
            is_unfinished = true;
            continue;
        }
        let initial = (child.initial != Some(wanted)).then_some(wanted);
        let replicas = (child.spec != wanted).then_some(Scale {
            from: child.spec,
            to: wanted,
            is_told: false,
        });
        if initial.is_some() || replicas.is_some() {
            acts.push(Act::Update {
                child: child.name.clone(),
                initial,
                replicas,
            });
        }
    }
    Pass {
        acts,
        on_failure: Rest::GoesOn,
        events: Vec::new(),
        is_unfinished,
        fault: None,
    }
}
