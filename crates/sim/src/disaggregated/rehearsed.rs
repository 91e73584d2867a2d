//! Rollouts of random sizes and budgets, beside the table that the planner has of them, and the dips that it permits. From some somebody takes a role
//! away as they begin: what is left of the old revision serves nobody then, and goes at once.

use lws_core::disaggregatedset::planner::{Rehearsal, Role as Planned, Rollout, rehearse};

use serde_json::json;

use super::Ground;
use super::stories::first_child;
use super::tables::{change, course, create};
use super::wanted::{Change, Role, Wanted};
use crate::actors::user::Deed;
use crate::random::Random;
use crate::world::{Setup, World};

const ROLES: [&str; 3] = ["a", "b", "d"];

/// What is rolled out.
struct Drawn {
    sizes: Vec<i64>,
    budgets: Vec<(i64, i64)>,
    /// Somebody takes the old groups of the first role away.
    is_cut: bool,
}

impl Drawn {
    fn of(seed: u64) -> Self {
        let mut random = Random::new(seed.wrapping_mul(97));
        let roles = 1 + random.below(3);
        let mut below = |bound| i64::try_from(random.below(bound)).unwrap_or(0);
        let sizes = (0..roles).map(|_| 1 + below(6)).collect();
        let budget = |draw: i64| match draw {
            0 => (0, 1),
            1 => (1, 0),
            2 => (1, 1),
            3 => (0, 2),
            _ => (2, 0),
        };
        let budgets = (0..roles).map(|_| budget(below(5))).collect();
        Self {
            sizes,
            budgets,
            is_cut: roles > 1 && random.chance(300),
        }
    }

    /// Groups per role as the rollout begins.
    fn before(&self) -> Vec<u64> {
        let mut before: Vec<u64> = self.sizes.iter().map(|size| number(*size)).collect();
        if let Some(first) = before.first_mut().filter(|_| self.is_cut) {
            *first = 0;
        }
        before
    }

    fn rehearsed(&self) -> Rehearsal {
        let roles = self.sizes.iter().zip(&self.budgets);
        let roles = roles.map(|(size, (surge, unavailable))| Planned {
            desired: number(*size),
            surge: number(*surge),
            unavailable: number(*unavailable),
            ..Planned::default()
        });
        let sizes: Vec<u64> = self.sizes.iter().map(|size| number(*size)).collect();
        let mut rollout = Rollout::from_rest(&sizes, roles.collect());
        let mut shares = rollout.old.iter_mut().flatten();
        if let Some(first) = shares.next().filter(|_| self.is_cut) {
            first.groups = Default::default();
        }
        rehearse(rollout)
    }
}

fn number(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}

/// A rollout of random sizes and budgets in which everything asked for is ready at the next look.
pub fn rehearsed(seed: u64) -> (&'static str, Setup) {
    let drawn = Drawn::of(seed);
    let roles: Vec<Role> = (ROLES.iter().zip(&drawn.sizes).zip(&drawn.budgets))
        .map(|((name, size), budget)| Role::new(name, *size, *budget))
        .collect();
    let set = Wanted::of(roles);
    let mut deeds = vec![create(&set), Deed::Settle];
    if drawn.is_cut {
        let key = first_child(&set, "a");
        deeds.push(Deed::Patch(key, json!({"spec": {"replicas": 0}})));
    }
    deeds.push(change(Change::Images("v2")));
    let setup = Setup {
        seed,
        deeds,
        ground: Some(Ground {
            patient: true,
            ..Ground::default()
        }),
        ..Setup::default()
    };
    ("rehearsed", setup)
}

/// Whether a run of [`rehearsed`] took the steps of the planner's table, and has as many dips.
///
/// # Errors
/// What it did instead.
pub fn as_rehearsed(seed: u64, world: &World) -> Result<(), String> {
    let drawn = Drawn::of(seed);
    let (before, played) = (drawn.before(), drawn.rehearsed());
    let text = |counts: &[u64]| {
        counts
            .iter()
            .map(u64::to_string)
            .collect::<Vec<_>>()
            .join("/")
    };
    let mut wanted = vec![format!(
        "{} {}",
        text(&before),
        text(&vec![0; before.len()])
    )];
    wanted.extend(played.scenes.iter().map(|scene| {
        format!(
            "{} {}",
            text(scene.old.first().map_or(&[], Vec::as_slice)),
            text(&scene.target)
        )
    }));
    let names = ROLES.get(..before.len()).unwrap_or(&ROLES);
    let rows = course(&world.roles.course, names);
    let start = rows
        .iter()
        .position(|row| wanted.first() == Some(row))
        .unwrap_or(0);
    if rows.get(start..) != Some(wanted.as_slice()) {
        return Err(format!("{rows:?} instead of {wanted:?}"));
    }
    let (expected, counted) = (dips(&drawn, &played), world.roles.dips.dips);
    if expected == counted {
        Ok(())
    } else {
        Err(format!("{counted} dips instead of {expected}: {rows:?}"))
    }
}

/// Steps of a table after which a role has fewer groups than its own budget keeps.
fn dips(drawn: &Drawn, played: &Rehearsal) -> u64 {
    let mut before = (drawn.before(), vec![0; drawn.sizes.len()]);
    let mut dips = 0;
    for scene in &played.scenes {
        let old = scene.old.first().cloned().unwrap_or_default();
        let after = (old, scene.target.clone());
        let mut roles = drawn.sizes.iter().zip(&drawn.budgets).enumerate();
        let is_dip = roles.any(|(role, (size, budget))| {
            let kept = number(*size).saturating_sub(number(budget.1));
            let of = |counts: &[u64]| counts.get(role).copied().unwrap_or(0);
            let (had, left) = (of(&before.0) + of(&before.1), of(&after.0) + of(&before.1));
            had >= kept && left < kept
        });
        dips += u64::from(is_dip);
        before = after;
    }
    dips
}
