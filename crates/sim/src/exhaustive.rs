//! Bounded exhaustive interleaving (tier 4): from one moment on, every order of what can happen is taken up to a depth, with crashes at every point if
//! wanted. What was seen before is not entered again. Some of what stands at the bound is run to its end and judged at rest.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::fmt::{self, Write as _};
use std::hash::{Hash, Hasher};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::actors::user::Deed;
use crate::properties::Violation;
use crate::random::Random;
use crate::world::{Setup, World};

/// Every so many states at the bound one is run to its end.
const SAMPLE: u64 = 64;

/// How far it goes.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// Steps from the start.
    pub depth: u8,
    /// Crashes of our process, anywhere.
    pub crashes: u8,
}

/// What was explored.
#[derive(Clone, Copy, Debug, Default)]
pub struct Explored {
    /// Distinct states.
    pub states: u64,
    /// Steps between them.
    pub steps: u64,
    /// States that were run to their end.
    pub ends: u64,
    /// How long it took.
    pub time: Duration,
}

impl fmt::Display for Explored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            states,
            steps,
            ends,
            time,
        } = self;
        write!(
            f,
            "{states} states, {steps} steps, {ends} run to their end, {time:.1?}"
        )
    }
}

/// A way to a violation.
#[derive(Clone, Debug)]
pub struct Found {
    /// What is wrong.
    pub violation: Violation,
    /// The steps that lead there.
    pub way: Vec<String>,
}

struct Search {
    bound: Bound,
    /// States with the depth that was left when they were entered.
    seen: Mutex<HashMap<u64, u8>>,
    steps: AtomicU64,
    ends: AtomicU64,
    found: Mutex<Option<Found>>,
}

/// Takes every order of steps from a cluster at rest, in which people then do `deeds`.
///
/// # Errors
/// The first violation, with the way to it.
pub fn explore(setup: &Setup, deeds: &[Deed], bound: Bound) -> Result<Explored, Box<Found>> {
    let started = Instant::now();
    let lost = |violation| {
        Box::new(Found {
            violation,
            way: Vec::new(),
        })
    };
    let mut start = World::new(setup.clone());
    start.run().map_err(lost)?;
    start.explore_with(deeds);
    let search = Search {
        bound,
        seen: Mutex::new(HashMap::new()),
        steps: AtomicU64::new(0),
        ends: AtomicU64::new(0),
        found: Mutex::new(None),
    };
    search.all(&start);
    if let Some(found) = search.found.into_inner().ok().flatten() {
        return Err(Box::new(found));
    }
    Ok(Explored {
        states: search.seen.into_inner().map_or(0, |seen| seen.len() as u64),
        steps: search.steps.into_inner(),
        ends: search.ends.into_inner(),
        time: started.elapsed(),
    })
}

impl Search {
    /// The first steps are dealt out to all cores.
    fn all(&self, start: &World) {
        let mut roots = vec![(start.clone(), self.bound.crashes, Vec::new())];
        let mut left = self.bound.depth;
        while roots.len() < 64 && left > 0 && !roots.is_empty() {
            left -= 1;
            let next = roots
                .iter()
                .flat_map(|(world, crashes, way)| self.next(world, *crashes, way))
                .filter(|(world, crashes, _)| self.is_new(world, *crashes, left))
                .collect();
            roots = next;
        }
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some((world, crashes, way)) = roots.get(next.fetch_add(1, Ordering::Relaxed))
            {
                self.down(world, *crashes, left, way);
            }
        };
        thread::scope(|scope| {
            for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
                scope.spawn(work);
            }
        });
    }

    fn down(&self, world: &World, crashes: u8, left: u8, way: &[String]) {
        if left == 0 {
            return self.end(world, way);
        }
        for (next, crashes, way) in self.next(world, crashes, way) {
            if self.found.lock().is_ok_and(|found| found.is_some()) {
                return;
            }
            if self.is_new(&next, crashes, left - 1) {
                self.down(&next, crashes, left - 1, &way);
            }
        }
    }

    /// All states that are one step away.
    fn next(&self, world: &World, crashes: u8, way: &[String]) -> Vec<(World, u8, Vec<String>)> {
        let longer = |step: String| way.iter().cloned().chain([step]).collect::<Vec<_>>();
        let mut all = Vec::new();
        let mut world = world.clone();
        for number in 0..world.choices() {
            let mut next = world.clone();
            let (step, result) = next.choose(number);
            self.steps.fetch_add(1, Ordering::Relaxed);
            match result {
                Ok(()) => all.push((next, crashes, longer(step))),
                Err(violation) => self.note(violation, longer(step)),
            }
        }
        if crashes > 0 && world.is_running() {
            let mut next = world.clone();
            next.kill_leader();
            all.push((next, crashes - 1, longer("crash".to_owned())));
        }
        all
    }

    fn is_new(&self, world: &World, crashes: u8, left: u8) -> bool {
        let mut hasher = Fingerprint(DefaultHasher::new());
        crashes.hash(&mut hasher.0);
        world.fingerprint(&mut hasher);
        let Ok(mut seen) = self.seen.lock() else {
            return false;
        };
        let before = seen.insert(hasher.0.finish(), left);
        match before {
            Some(before) if before >= left => {
                seen.insert(hasher.0.finish(), before);
                false
            }
            Some(_) | None => true,
        }
    }

    /// Runs one state at the bound to its end.
    fn end(&self, world: &World, way: &[String]) {
        let number = self.ends.fetch_add(1, Ordering::Relaxed);
        if !number.is_multiple_of(SAMPLE) {
            return;
        }
        let mut world = world.clone();
        world.leave_to_chance(Random::new(number));
        let result = world.run().and_then(|()| world.check_rest());
        if let Err(violation) = result {
            self.note(violation, way.to_vec());
        }
    }

    fn note(&self, violation: Violation, way: Vec<String>) {
        if let Ok(mut found) = self.found.lock() {
            found.get_or_insert(Found { violation, way });
        }
    }
}

/// What tells states apart.
pub struct Fingerprint(DefaultHasher);

impl Fingerprint {
    /// Takes the text of a value.
    pub fn take(&mut self, value: &impl fmt::Debug) {
        // Writing into a hasher does not fail.
        let _ = write!(self, "{value:?};");
    }

    /// Takes a value.
    pub fn hash(&mut self, value: &impl Hash) {
        value.hash(&mut self.0);
    }
}

impl fmt::Write for Fingerprint {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}
