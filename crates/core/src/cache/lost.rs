//! Worker StatefulSets that vanished while their leader is still held: whoever makes the next one asks how often that happened.
//!
//! The watches of pods and of StatefulSets do not run in step. If that of the pods stands still, a leader that is long gone looks alive, and the garbage
//! collector takes every StatefulSet made for it. Nothing here decides what follows from that.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::model::{Meta, StatefulSet, Uid};

/// Worker StatefulSets of one leader that vanished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// How many.
    pub count: u32,
    /// When the last one was created.
    pub created: Option<Timestamp>,
}

/// By UID of the leader, as long as that pod is held.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct LostSets(BTreeMap<Uid, Lost>);

impl LostSets {
    pub(super) fn of(&self, leader: &Uid) -> Option<&Lost> {
        self.0.get(leader)
    }

    /// `set` vanished, and `leader` is the pod that is held under the name of its owner.
    pub(super) fn note(&mut self, set: &StatefulSet, leader: &Meta) {
        if !set.meta.is_controlled_by(&leader.uid) {
            return;
        }
        let lost = self.0.entry(leader.uid.clone()).or_insert(Lost {
            count: 0,
            created: None,
        });
        lost.count = lost.count.saturating_add(1);
        lost.created = set.meta.created;
    }

    /// The pod with this UID is gone.
    pub(super) fn forget(&mut self, pod: &Uid) {
        self.0.remove(pod);
    }
}
