//! Many worlds of DisaggregatedSets from many seeds.

use serde_json::json;

use super::tables::{change, create};
use super::wanted::{self, Change, Role, Wanted};
use super::{Below, Ground};
use crate::actors::user::Deed;
use crate::faults::Faults;
use crate::random::Random;
use crate::store::Cascade;
use crate::world::Setup;

/// Families of sets that random runs use.
pub const FAMILIES: [&str; 8] = [
    "pair",
    "three",
    "slices",
    "external",
    "advancing",
    "divided",
    "crowded",
    "deleted",
];

fn groups(random: &mut Random, most: u64) -> i64 {
    1 + i64::try_from(random.below(most)).unwrap_or(0)
}

fn role(name: &'static str, most: u64, random: &mut Random) -> Role {
    Role {
        budget: wanted::budget(random),
        ..Role::new(name, groups(random, most), (0, 1))
    }
}

/// The set of a family.
fn wanted_of(family: &str, random: &mut Random) -> Wanted {
    let pair = [role("a", 4, random), role("b", 4, random)];
    let mut set = Wanted::of(pair);
    match family {
        "three" => set.roles.push(role("d", 3, random)),
        "slices" => set.slices = 2,
        "external" => {
            for role in &mut set.roles {
                role.external = random.chance(700);
            }
        }
        "advancing" => set.policy = "AdvanceRollout",
        "divided" => {
            let counts = [groups(random, 2), groups(random, 2)];
            if let Some(role) = set.roles.first_mut() {
                role.sub_roles = vec![("s", counts[0]), ("l", counts[1])];
            }
        }
        _ => {}
    }
    set
}

/// Pods that find a place in a crowded world.
fn room(set: &Wanted) -> usize {
    let groups: i64 = set.roles.iter().map(|role| role.replicas).sum();
    usize::try_from(groups * set.slices).unwrap_or(0)
}

/// The case of a seed.
pub fn case(seed: u64) -> (&'static str, Setup) {
    let mut random = Random::new(seed.wrapping_mul(6_700_417));
    let family = random.pick(&FAMILIES).copied().unwrap_or("pair");
    let set = wanted_of(family, &mut random);
    let mut faults = Faults::some(&mut random);
    let mut deeds = vec![create(&set), Deed::Wait(2), change(Change::Images("v2"))];
    let mut ground = Ground::default();
    match family {
        "crowded" => {
            ground.room = Some(room(&set) + usize::try_from(random.below(2)).unwrap_or(0));
            faults.monkey = 0;
            faults.edit = 0;
        }
        "deleted" => {
            let cascade = *random
                .pick(&[Cascade::Background, Cascade::Foreground])
                .unwrap_or(&Cascade::Background);
            deeds.push(Deed::Wait(random.below(20)));
            deeds.push(Deed::Delete(wanted::key(), cascade, None));
            if random.chance(500) {
                deeds.extend([Deed::Wait(random.below(5)), create(&set)]);
            }
        }
        _ => {
            for _ in 0..random.below(3) {
                deeds.push(Deed::Wait(random.below(30)));
                deeds.push(change(Change::random(&mut random)));
            }
        }
    }
    let setup = Setup {
        seed,
        deeds,
        faults,
        fault_steps: 500 + random.below(1_200),
        processes: 1 + usize::from(random.chance(300)),
        ground: Some(ground),
        ..Setup::default()
    };
    (family, setup)
}

/// One new template for a set at rest, under all faults of our view and of our writes; nobody else takes a group away.
pub fn rolling(seed: u64) -> (&'static str, Setup) {
    let mut random = Random::new(seed.wrapping_mul(2_147_483_659));
    let three = random.chance(300);
    let mut set = wanted_of(if three { "three" } else { "pair" }, &mut random);
    set.slices = 1 + i64::from(random.chance(200));
    let faults = Faults {
        refuse_pods: 0,
        ..Faults::view()
    };
    let deeds = vec![create(&set), Deed::Wait(30), change(Change::Images("v2"))];
    let setup = Setup {
        seed,
        deeds,
        faults,
        fault_steps: 1_000 + random.below(1_500),
        processes: 1 + usize::from(random.chance(300)),
        ground: Some(Ground {
            holds: true,
            ..Ground::default()
        }),
        ..Setup::default()
    };
    ("rolling", setup)
}

/// The whole stack: our own controllers below the children as well.
pub fn stack(seed: u64) -> (&'static str, Setup) {
    let mut random = Random::new(seed.wrapping_mul(4_294_967_311));
    let budget = wanted::budget(&mut random);
    let mut set = Wanted::of([
        Role::new("a", groups(&mut random, 2), (0, 1)),
        Role::new("b", 1, (1, 0)),
    ]);
    if let Some(role) = set.roles.first_mut() {
        role.budget = budget;
    }
    let mut manifest = set.manifest();
    if random.chance(500) {
        manifest["spec"]["roles"][1]["spec"]["leaderWorkerTemplate"]["size"] = json!(2);
    }
    let faults = Faults {
        monkey: 0,
        mishap: 0,
        edit: 0,
        refuse_pods: 0,
        ..Faults::some(&mut random)
    };
    let setup = Setup {
        seed,
        deeds: vec![
            Deed::Create(wanted::key(), manifest),
            Deed::Wait(5),
            change(Change::Images("v2")),
        ],
        faults,
        fault_steps: 600 + random.below(1_000),
        processes: 1 + usize::from(random.chance(300)),
        ground: Some(Ground {
            below: Below::Real,
            ..Ground::default()
        }),
        ..Setup::default()
    };
    ("stack", setup)
}
