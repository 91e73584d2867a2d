//! Every request of a scenario, at each of its four crash points, with fresh and with stale first lists afterwards (tier 3, L-4).

use lws_sim::actors::user::{Deed, Wanted, delete_pod, image, scale};
use lws_sim::seeds::run;
use lws_sim::world::{Crash, Point, Setup};

const POINTS: [Point; 4] = [
    Point::Unsent,
    Point::Sent,
    Point::Committed,
    Point::Answered,
];

fn crash_everywhere(wanted: Wanted, deeds: &[Deed]) {
    let mut all = vec![Deed::Apply(Box::new(wanted)), Deed::Settle];
    all.extend(deeds.iter().cloned());
    let setup = Setup {
        deeds: all,
        ..Setup::default()
    };
    let (reference, result) = run(&setup);
    result.unwrap_or_else(|v| panic!("without a crash: {v:?}"));
    let mut runs = 0;
    for request in 0..reference.requests {
        for point in POINTS {
            for behind in [0, 1, 3] {
                let crash = Crash {
                    request,
                    point,
                    behind,
                };
                let (world, result) = run(&Setup {
                    crash: Some(crash),
                    ..setup.clone()
                });
                let commits = || world.last_commits(40);
                result.unwrap_or_else(|v| panic!("{crash:?}: {v:?}\n{}", commits()));
                assert!(
                    world.group_ends() <= reference.group_ends(),
                    "L-4: {crash:?}: {} groups ended instead of {}\n{}",
                    world.group_ends(),
                    reference.group_ends(),
                    commits()
                );
                runs += 1;
            }
        }
    }
    println!("{runs} crashes");
}

#[test]
fn a_crash_while_a_set_comes_up() {
    crash_everywhere(Wanted::default(), &[]);
}

#[test]
fn a_crash_while_a_set_rolls() {
    let wanted = Wanted {
        size: 2,
        ..Wanted::default()
    };
    crash_everywhere(wanted, &[image("v2")]);
}

#[test]
fn a_crash_while_a_set_scales() {
    let wanted = Wanted {
        size: 2,
        ..Wanted::default()
    };
    crash_everywhere(wanted, &[scale(3), Deed::Settle, scale(1)]);
}

#[test]
fn a_crash_while_a_group_is_recreated() {
    crash_everywhere(Wanted::default(), &[delete_pod("demo-0-1")]);
}
