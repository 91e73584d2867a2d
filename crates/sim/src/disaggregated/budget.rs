//! What a step of a rollout may take and add (PLN-1 … PLN-9, PLN-13, PLN-16), worked out from the rules and not from the planner.
//!
//! The letters are those of section 9 of the rules for DisaggregatedSets.

use jiff::Timestamp;

use super::facts::Dips;

/// A role of the plan.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// `d`.
    pub wanted: i64,
    /// `s`.
    pub surge: i64,
    /// `u`.
    pub unavailable: i64,
    /// ROL-13: a pod of the target finds no place since long.
    pub waits: bool,
}

impl Row {
    /// A role that is no longer current.
    pub fn gone(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            surge: 1,
            ..Self::default()
        }
    }
}

/// A revision, with an entry for every role.
#[derive(Clone, Debug, Default)]
pub struct Revision {
    /// Its name.
    pub name: String,
    /// Age of its youngest child.
    pub created: Option<Timestamp>,
    /// `I`.
    pub baseline: Vec<i64>,
    /// Wanted groups.
    pub spec: Vec<i64>,
    /// Ready groups.
    pub raw: Vec<i64>,
    /// Ready groups that stay.
    pub committed: Vec<i64>,
}

impl Revision {
    fn runs(&self) -> bool {
        self.spec.iter().any(|groups| *groups > 0)
    }
}

/// A slice in a rollout.
#[derive(Clone, Debug, Default)]
pub struct Slice {
    /// AdvanceRollout.
    pub advances: bool,
    /// The roles.
    pub rows: Vec<Row>,
    /// Old revisions, newest first.
    pub old: Vec<Revision>,
    /// The target.
    pub new: Revision,
}

/// What a step leads to.
#[derive(Clone, Debug)]
pub struct Step {
    /// Position of the old revision that shrinks.
    pub active: Option<usize>,
    /// `Q`: its groups then.
    pub left: Vec<i64>,
    /// `G`: the groups of the target then.
    pub grown: Vec<i64>,
}

type Part = fn(&Revision) -> &[i64];

fn spec(revision: &Revision) -> &[i64] {
    &revision.spec
}

fn raw(revision: &Revision) -> &[i64] {
    &revision.raw
}

fn committed(revision: &Revision) -> &[i64] {
    &revision.committed
}

fn at(list: &[i64], role: usize) -> i64 {
    list.get(role).copied().unwrap_or(0)
}

/// PLN-1, PLN-2: `counts` if every required role has some of `full`, else nothing.
fn if_full(sizes: &[i64], full: &[i64], counts: &[i64]) -> Vec<i64> {
    let required = || sizes.iter().zip(full).filter(|(size, _)| **size > 0);
    let is_full = required().next().is_some() && required().all(|(_, count)| *count > 0);
    let factor = i64::from(is_full);
    counts.iter().map(|count| count * factor).collect()
}

/// PLN-8, PLN-9: how far roles of these sizes may be when they are at `progress`.
fn reach(sizes: &[i64], progress: &[i64]) -> Option<Vec<i64>> {
    let live = || sizes.iter().zip(progress).filter(|(size, _)| **size > 0);
    let smallest = live().map(|(size, _)| *size).min()?;
    let (of, done) = live().reduce(|least, next| {
        let is_less = next.1 * least.0 < least.1 * next.0;
        if is_less { next } else { least }
    })?;
    let reach = |size: &i64| {
        (size * (done * smallest + of))
            .div_euclid(of * smallest)
            .min(*size)
    };
    Some(
        sizes
            .iter()
            .map(|size| if *size > 0 { reach(size) } else { 0 })
            .collect(),
    )
}

impl Slice {
    fn roles(&self) -> std::ops::Range<usize> {
        0..self.rows.len()
    }

    fn wanted(&self) -> Vec<i64> {
        self.rows.iter().map(|row| row.wanted).collect()
    }

    fn old_groups(&self, role: usize) -> i64 {
        self.old.iter().map(|old| at(&old.spec, role)).sum()
    }

    fn target_usable(&self) -> Vec<i64> {
        if_full(&self.wanted(), &self.new.committed, &self.new.committed)
    }

    /// `B`.
    fn serving_size(&self, role: usize) -> i64 {
        let running = self.old.iter().filter(|old| old.runs());
        running
            .map(|old| at(&old.baseline, role))
            .max()
            .unwrap_or(0)
    }

    /// PLN-7.
    fn is_protected(&self, role: usize) -> bool {
        self.old.iter().filter(|old| old.runs()).any(|old| {
            let mut required = self.roles().filter(|role| at(&old.baseline, *role) > 0);
            let replaces_nothing =
                required.all(|role| self.rows.get(role).is_none_or(|row| row.wanted == 0));
            replaces_nothing && at(&old.baseline, role) > 0
        })
    }

    /// PLN-6.
    fn unreplaced(&self, role: usize) -> i64 {
        if !self.is_protected(role) {
            return 0;
        }
        let usable = self.target_usable();
        let live = self
            .roles()
            .filter(|role| self.rows.get(*role).is_some_and(|row| row.wanted > 0));
        let wanted = self.wanted();
        let least = live.reduce(|least, next| {
            let is_less =
                at(&usable, next) * at(&wanted, least) < at(&usable, least) * at(&wanted, next);
            if is_less { next } else { least }
        });
        let size = self.serving_size(role);
        least.map_or(0, |least| {
            let of = at(&wanted, least);
            let done = at(&usable, least).min(of);
            size - (size * done).div_euclid(of)
        })
    }

    /// PLN-5: `F`, with so many more groups allowed to be missing.
    pub fn floor(&self, role: usize, more: i64) -> i64 {
        let Some(row) = self.rows.get(role) else {
            return 0;
        };
        let size = if self.advances {
            row.wanted
        } else {
            self.serving_size(role).min(row.wanted)
        };
        let kept = size.max(self.unreplaced(role));
        let floor = (kept - row.unavailable).max(0);
        if more > 0 && floor > 1 {
            (kept - row.unavailable - more).max(0)
        } else {
            floor
        }
    }

    /// Judges a step. What it takes is counted.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub fn check(&self, step: &Step, dips: &mut Dips) -> Result<(), String> {
        if let Some(active) = step.active.and_then(|index| self.old.get(index)) {
            self.complete(active, step)?;
            self.within_window(active, step)?;
            let is_stuck = self.rows.iter().any(|row| row.waits);
            let is_safe =
                self.is_safe(active, step, 0) || (is_stuck && self.is_safe(active, step, 1));
            if !is_safe {
                return Err(format!("D-4: unsafe step {step:?} of {self:?}"));
            }
            self.count(step, active, dips)?;
        }
        self.growth(step)
    }

    /// PLN-16.
    fn complete(&self, active: &Revision, step: &Step) -> Result<(), String> {
        let required = || {
            let runs =
                |role: &usize| at(&active.baseline, *role) > 0 && at(&active.spec, *role) > 0;
            self.roles().filter(runs).map(|role| at(&step.left, role))
        };
        if required().all(|left| left == 0) || required().all(|left| left > 0) {
            Ok(())
        } else {
            Err(format!(
                "D-6: {} keeps only some of its roles: {step:?} of {self:?}",
                active.name
            ))
        }
    }

    /// PLN-15.
    fn within_window(&self, active: &Revision, step: &Step) -> Result<(), String> {
        let gone: Vec<i64> = self
            .roles()
            .map(|role| (at(&active.baseline, role) - at(&step.left, role)).max(0))
            .collect();
        let reach = reach(&active.baseline, &gone).unwrap_or_default();
        for role in self.roles() {
            let has = at(&active.spec, role);
            let mut least = (at(&active.baseline, role) - at(&reach, role))
                .max(0)
                .min(has);
            if self.advances {
                let row = self.rows.get(role).cloned().unwrap_or_default();
                let all = self.old_groups(role) + at(&self.new.spec, role);
                least = least.min(has - (all - row.wanted - row.surge).max(0));
            }
            if at(&step.left, role) < least {
                return Err(format!(
                    "D-5: role {role} leaves the window: {step:?} of {self:?}"
                ));
            }
        }
        Ok(())
    }

    /// PLN-3, PLN-13.
    fn is_safe(&self, active: &Revision, step: &Step, more: i64) -> bool {
        let parked = || self.old.iter().filter(|old| old.name != active.name);
        let required = |role: usize| at(&active.baseline, role) > 0;
        let whole = self
            .roles()
            .filter(|role| required(*role))
            .all(|role| at(&step.left, role) > 0);
        let usable = if_full(&active.baseline, &active.committed, &active.committed);
        let taken = |role: usize| at(&active.spec, role) - at(&step.left, role);
        let kept = |role: usize| (at(&usable, role) - taken(role)).max(0);
        let stays = whole
            && !self
                .roles()
                .any(|role| required(role) && at(&step.left, role) > 0 && kept(role) == 0);
        let wanted = self.wanted();
        let others = |role: usize, full: Part, counts: Part| -> i64 {
            let of = |old: &Revision| at(&if_full(&old.baseline, full(old), counts(old)), role);
            parked().map(of).sum::<i64>()
                + at(&if_full(&wanted, full(&self.new), counts(&self.new)), role)
        };
        let own = |role: usize, full: Part, counts: Part| {
            at(
                &if_full(&active.baseline, full(active), counts(active)),
                role,
            )
        };
        self.roles().all(|role| {
            let floor = self.floor(role, more);
            let replaced = others(role, committed, committed);
            let observed = others(role, raw, raw) + own(role, raw, raw);
            let own_replaced = others(role, spec, committed);
            let own_observed = others(role, spec, raw) + own(role, spec, raw);
            let left = if stays { kept(role) } else { 0 };
            let is_untouched = taken(role) == 0 && left > 0;
            let usable_holds = is_untouched || replaced + left >= observed.min(floor);
            let own_left = (at(&active.committed, role) - taken(role)).max(0);
            let own_holds = taken(role) == 0 || own_replaced + own_left >= own_observed.min(floor);
            usable_holds && own_holds
        })
    }

    /// PLN-4, PLN-11, PLN-19.
    fn growth(&self, step: &Step) -> Result<(), String> {
        let drains = step.active.is_some();
        for role in self.roles() {
            let (has, gets) = (at(&self.new.spec, role), at(&step.grown, role));
            let Some(row) = self.rows.get(role) else {
                continue;
            };
            if gets < has && !(self.advances && !drains && has > row.wanted) {
                return Err(format!(
                    "D-5: role {} of the target shrinks: {step:?} of {self:?}",
                    row.name
                ));
            }
            if gets <= has {
                continue;
            }
            let active = step.active.and_then(|index| self.old.get(index));
            let all = self
                .old
                .iter()
                .filter(|old| active.is_none_or(|active| active.name == old.name));
            let baseline = all.map(|old| at(&old.baseline, role)).max().unwrap_or(0);
            let base = if self.advances {
                row.wanted
            } else {
                baseline.max(row.wanted)
            };
            let old = self.old_groups(role);
            let may_bootstrap = !drains && (has == 0 || self.advances);
            let highest = (base + row.surge).max(old + has) + i64::from(may_bootstrap);
            if old + gets > highest || gets > row.wanted {
                return Err(format!(
                    "D-4: role {} grows beyond its budget: {step:?} of {self:?}",
                    row.name
                ));
            }
        }
        Ok(())
    }

    /// A step may leave a role with fewer groups than its own budget keeps only where a revision misses one of its roles, so that the rest of it serves
    /// nobody (PLN-2), or a pod finds no place (PLN-20).
    fn count(&self, step: &Step, active: &Revision, dips: &mut Dips) -> Result<(), String> {
        dips.drains += 1;
        let depths = self.rows.iter().enumerate().map(|(role, row)| {
            let committed = |old: &Revision| at(&old.committed, role);
            let ready = self.old.iter().map(committed).sum::<i64>() + committed(&self.new);
            let taken = at(&active.spec, role) - at(&step.left, role);
            let left = ready - taken.min(committed(active));
            let kept = row.wanted.min(self.serving_size(role)) - row.unavailable;
            if ready < kept { 0 } else { kept - left }
        });
        let deepest = depths.max().unwrap_or(0);
        if deepest <= 0 {
            return Ok(());
        }
        dips.dips += 1;
        dips.deepest = dips.deepest.max(u64::try_from(deepest).unwrap_or(0));
        let is_missing = |role| at(&active.baseline, role) > 0 && at(&active.spec, role) == 0;
        if self.roles().any(is_missing) || self.rows.iter().any(|row| row.waits) {
            Ok(())
        } else {
            Err(format!(
                "D-4: a whole revision goes below what the budgets keep: {step:?} of {self:?}"
            ))
        }
    }
}
