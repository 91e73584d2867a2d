//! A slice that follows the planner, and tables as the specification prints them.

use super::super::*;

/// A revision on its way out.
#[derive(Clone, Debug)]
pub struct Old {
    pub name: &'static str,
    pub initial: Vec<u64>,
    pub spec: Vec<u64>,
    pub is_ready: bool,
}

/// One slice; every issued group is Ready at the next observation unless its revision never is.
#[derive(Clone, Debug)]
pub struct Slice {
    pub policy: DuringRollout,
    pub desired: Vec<u64>,
    pub budgets: Vec<(u64, u64)>,
    /// Positions of roles whose replicas come from a scaler.
    pub external: Vec<usize>,
    pub target: Vec<u64>,
    /// Newest first; `None` once the children are deleted.
    pub old: Vec<Option<Old>>,
}

/// `2/4` as numbers.
pub fn counts(text: &str) -> Vec<u64> {
    text.split('/')
        .map(|count| count.parse().unwrap())
        .collect()
}

fn text(counts: &[u64]) -> String {
    let counts: Vec<String> = counts.iter().map(u64::to_string).collect();
    counts.join("/")
}

impl Slice {
    /// A slice that wants `desired`, with the same (surge, unavailable) for every role.
    pub fn new(desired: &str, budget: (u64, u64)) -> Self {
        let desired = counts(desired);
        Self {
            policy: DuringRollout::RolloutCoupled,
            budgets: vec![budget; desired.len()],
            external: Vec::new(),
            target: vec![0; desired.len()],
            old: Vec::new(),
            desired,
        }
    }

    pub fn advancing(self) -> Self {
        let policy = DuringRollout::AdvanceRollout;
        Self { policy, ..self }
    }

    pub fn target(self, spec: &str) -> Self {
        let target = counts(spec);
        Self { target, ..self }
    }

    pub fn budgets(self, budgets: &[(u64, u64)]) -> Self {
        let budgets = budgets.to_vec();
        Self { budgets, ..self }
    }

    pub fn external(self, role: usize) -> Self {
        let external = vec![role];
        Self { external, ..self }
    }

    /// An older revision, with its intended sizes.
    pub fn old(mut self, name: &'static str, initial: &str, spec: &str) -> Self {
        self.old.push(Some(Old {
            name,
            initial: counts(initial),
            spec: counts(spec),
            is_ready: true,
        }));
        self
    }

    /// An older revision that never becomes Ready.
    pub fn broken(mut self, name: &'static str, initial: &str, spec: &str) -> Self {
        self.old.push(Some(Old {
            name,
            initial: counts(initial),
            spec: counts(spec),
            is_ready: false,
        }));
        self
    }

    /// What the planner is asked.
    pub fn rollout(&self) -> Rollout {
        let ready = |spec: u64| Groups {
            spec,
            raw: spec,
            committed: spec,
        };
        let shares = |old: &Old| {
            let share = |(initial, spec): (&u64, &u64)| Share {
                initial: *initial,
                groups: if old.is_ready {
                    ready(*spec)
                } else {
                    Groups {
                        spec: *spec,
                        ..Groups::default()
                    }
                },
            };
            old.initial.iter().zip(&old.spec).map(share).collect()
        };
        let role = |index: usize| Role {
            desired: self.wanted(index),
            surge: self.budgets[index].0,
            unavailable: self.budgets[index].1,
            is_unschedulable: false,
            target: ready(self.target[index]),
        };
        Rollout {
            policy: self.policy,
            roles: (0..self.desired.len()).map(role).collect(),
            old: self.old.iter().flatten().map(shares).collect(),
        }
    }

    fn wanted(&self, role: usize) -> u64 {
        let old_spec = self.old.iter().flatten().map(|old| old.spec[role]).sum();
        match self.policy {
            DuringRollout::RolloutCoupled if self.external.contains(&role) => {
                wanted_beside_old(self.desired[role], self.target[role], old_spec)
            }
            DuringRollout::RolloutCoupled | DuringRollout::AdvanceRollout => self.desired[role],
        }
    }

    /// One reconcile; says what it was, as the tables do.
    pub fn reconcile(&mut self) -> String {
        let rollout = self.rollout();
        let decision = decide(&rollout);
        let living: Vec<usize> = (0..self.old.len())
            .filter(|index| self.old[*index].is_some())
            .collect();
        match decision {
            Decision::Complete => "complete".to_owned(),
            Decision::Settling => "settling".to_owned(),
            Decision::Blocked => "blocked".to_owned(),
            Decision::Step(step) => {
                assert_eq!(check(&rollout, &step), Ok(()));
                let active = step.active.map(|index| {
                    let old = self.old[living[index]].as_mut().unwrap();
                    old.spec = step.old;
                    old.name
                });
                self.target = step.target;
                let kind = match (step.kind, active) {
                    (Kind::GrowOnly, _) => "grow-only",
                    (Kind::Ordinary, Some(_)) => "ordinary",
                    (Kind::Ordinary, None) => "target ordinary",
                    (Kind::Bootstrap, _) => "bootstrap",
                    (Kind::Fallback, _) => "fallback",
                };
                active.map_or(kind.to_owned(), |name| format!("{kind}, active {name}"))
            }
        }
    }

    /// CLN-2: drained revisions go while another one still has replicas.
    pub fn clean_up(&mut self) {
        let is_drained = |old: &Old| old.spec.iter().all(|spec| *spec == 0);
        if !self.old.iter().flatten().all(is_drained) {
            for old in &mut self.old {
                *old = old.take().filter(|old| !is_drained(old));
            }
        }
    }

    /// Old revisions, oldest first, then the target.
    fn state(&self) -> String {
        let mut cells: Vec<String> = self
            .old
            .iter()
            .rev()
            .map(|old| match old {
                Some(old) => text(&old.spec),
                None => "-".to_owned(),
            })
            .collect();
        cells.push(text(&self.target));
        cells.join(" | ")
    }

    /// Follows the planner through the rows of a table. A note `desired becomes 3/6; …` changes what is wanted before the row.
    pub fn follows(mut self, table: &str) {
        let mut rows = table.trim().lines().map(|row| {
            let cells: Vec<&str> = row
                .trim()
                .trim_matches('|')
                .split(" | ")
                .map(str::trim)
                .collect();
            let (note, state) = cells[1..].split_last().unwrap();
            (cells[0].to_owned(), state.join(" | "), (*note).to_owned())
        });
        let (_, start, note) = rows.next().unwrap();
        assert_eq!((self.state(), note.as_str()), (start, "start"));
        let mut is_complete = false;
        for (number, expected, note) in rows {
            self.clean_up();
            let note = match note.strip_prefix("desired becomes ") {
                Some(changed) => {
                    let (desired, note) = changed.split_once("; ").unwrap();
                    self.desired = counts(desired);
                    note.to_owned()
                }
                None => note,
            };
            let done = self.reconcile();
            let kind = done.split(", active").next().unwrap();
            let done = if note.contains("active") {
                done.as_str()
            } else {
                kind
            };
            assert_eq!(
                (self.state(), done),
                (expected, note.as_str()),
                "row {number}"
            );
            is_complete = done == "complete";
        }
        if !is_complete {
            assert_eq!(self.reconcile(), "complete", "after the last row");
        }
    }
}
