//! Rollouts of random sizes and budgets, beside the table that the planner has of them, and the dips that it permits.

use lws_core::disaggregatedset::planner::{Rehearsal, Role as Planned, Rollout, rehearse};

use super::Ground;
use super::tables::{change, course, create};
use super::wanted::{Change, Role, Wanted};
use crate::actors::user::Deed;
use crate::random::Random;
use crate::world::{Setup, World};

/// A rollout of random sizes and budgets in which everything asked for is ready at the next look.
pub fn rehearsed(seed: u64) -> (&'static str, Setup) {
    let (sizes, budgets) = drawn(seed);
    let names = ["a", "b", "d"];
    let roles: Vec<Role> = (names.iter().zip(&sizes).zip(&budgets))
        .map(|((name, size), budget)| Role::new(name, *size, *budget))
        .collect();
    let setup = Setup {
        seed,
        deeds: vec![
            create(&Wanted::of(roles)),
            Deed::Settle,
            change(Change::Images("v2")),
        ],
        ground: Some(Ground {
            patient: true,
            ..Ground::default()
        }),
        ..Setup::default()
    };
    ("rehearsed", setup)
}

fn drawn(seed: u64) -> (Vec<i64>, Vec<(i64, i64)>) {
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
    (sizes, (0..roles).map(|_| budget(below(5))).collect())
}

/// Whether a run of [`rehearsed`] took the steps of the planner's table, and has as many dips.
///
/// # Errors
/// What it did instead.
pub fn as_rehearsed(seed: u64, world: &World) -> Result<(), String> {
    let (sizes, budgets) = drawn(seed);
    let number = |count: i64| u64::try_from(count).unwrap_or(0);
    let planned = sizes
        .iter()
        .zip(&budgets)
        .map(|(size, (surge, unavailable))| Planned {
            desired: number(*size),
            surge: number(*surge),
            unavailable: number(*unavailable),
            ..Planned::default()
        });
    let before: Vec<u64> = sizes.iter().map(|size| number(*size)).collect();
    let played = rehearse(Rollout::from_rest(&before, planned.collect()));
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
    let names = ["a", "b", "d"];
    let rows = course(
        &world.roles.course,
        names.get(..sizes.len()).unwrap_or(&names),
    );
    let start = rows
        .iter()
        .position(|row| wanted.first() == Some(row))
        .unwrap_or(0);
    if rows.get(start..) != Some(wanted.as_slice()) {
        return Err(format!("{rows:?} instead of {wanted:?}"));
    }
    let (expected, counted) = (dips(&before, &budgets, &played), world.roles.dips.dips);
    if expected == counted {
        Ok(())
    } else {
        Err(format!("{counted} dips instead of {expected}: {rows:?}"))
    }
}

/// Steps of a table after which a role has fewer groups than its own budget keeps.
fn dips(sizes: &[u64], budgets: &[(i64, i64)], played: &Rehearsal) -> u64 {
    let mut before = (sizes.to_vec(), vec![0; sizes.len()]);
    let mut dips = 0;
    for scene in &played.scenes {
        let after = (
            scene.old.first().cloned().unwrap_or_default(),
            scene.target.clone(),
        );
        let is_dip = sizes
            .iter()
            .zip(budgets)
            .enumerate()
            .any(|(role, (size, budget))| {
                let kept = size.saturating_sub(u64::try_from(budget.1).unwrap_or(0));
                let of = |counts: &[u64]| counts.get(role).copied().unwrap_or(0);
                let (had, left) = (of(&before.0) + of(&before.1), of(&after.0) + of(&before.1));
                had >= kept && left < kept
            });
        dips += u64::from(is_dip);
        before = after;
    }
    dips
}
