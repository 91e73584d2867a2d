//! Every planted bug of DisaggregatedSets is caught (tier 11): by the story whose guard it takes out, or by random runs. What fails without the bug as
//! well shows nothing.
#![cfg(feature = "planted")]

use lws_sim::disaggregated::seeds::{case, rolling};
use lws_sim::disaggregated::stories::{SEEDS, Story, all};
use lws_sim::planted::{Flaw, Planted};
use lws_sim::seeds::run;
use lws_sim::world::{Setup, World};

type Judge<'a> = &'a dyn Fn(&World) -> Result<(), String>;

/// What catches a bug in a run that is clean without it.
fn caught(setup: &Setup, flaw: Flaw, judge: Judge<'_>) -> Option<String> {
    let verdict = |planted: Planted| {
        let setup = Setup {
            planted,
            ..setup.clone()
        };
        let (world, result) = run(&setup);
        result
            .map_err(|violation| format!("{}: {}", violation.property, violation.text))
            .and_then(|()| judge(&world))
    };
    let found = verdict(Planted::flawed(flaw)).err()?;
    verdict(Planted::default()).ok()?;
    Some(found)
}

fn by_story(story: &Story, flaw: Flaw) -> Option<String> {
    let mut seeds = 0..SEEDS;
    let found = seeds.find_map(|seed| caught(&story.under(seed), flaw, &story.judge))?;
    Some(format!("{}: {found}", story.name))
}

fn by_chance(flaw: Flaw) -> Option<String> {
    (0..100).find_map(|seed| {
        let (family, setup) = if seed % 2 == 0 {
            rolling(seed)
        } else {
            case(seed)
        };
        let found = caught(&setup, flaw, &|_| Ok(()))?;
        Some(format!("seed {seed}, {family}: {found}"))
    })
}

#[test]
fn every_story_fails_without_its_guard() {
    let mut needless = Vec::new();
    for story in all() {
        let Some(flaw) = story.guard else { continue };
        let found = by_story(&story, flaw);
        if found.is_none() {
            needless.push((story.name, flaw));
        }
    }
    assert!(needless.is_empty(), "these need no guard: {needless:?}");
}

#[test]
fn every_planted_bug_is_caught() {
    let stories = all();
    let mut missed = Vec::new();
    for flaw in Flaw::ALL {
        let mut of_flaw = stories.iter().filter(|story| story.guard == Some(flaw));
        let found = of_flaw
            .find_map(|story| by_story(story, flaw))
            .or_else(|| by_chance(flaw));
        let text: Option<String> = found.as_ref().map(|text| text.chars().take(160).collect());
        println!("{flaw:?}: {}", text.as_deref().unwrap_or("NOT CAUGHT"));
        if found.is_none() {
            missed.push(flaw);
        }
    }
    assert!(missed.is_empty(), "not caught: {missed:?}");
}
