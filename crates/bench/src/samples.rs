//! Repeated measurements of one thing.

use std::time::{Duration, Instant};

/// Times of single runs.
#[derive(Debug, Default)]
pub struct Samples(Vec<Duration>);

impl Samples {
    /// Runs something so many times.
    pub fn of(count: u32, mut run: impl FnMut()) -> Self {
        let time = |_| {
            let start = Instant::now();
            run();
            start.elapsed()
        };
        Self((0..count).map(time).collect())
    }

    /// Adds one.
    pub fn add(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// Microseconds that this part of all runs does not exceed: `0.5` is the median.
    pub fn microseconds(&self, part: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort();
        let wanted = f64::from(u32::try_from(sorted.len()).unwrap_or(u32::MAX)) * part;
        let found = sorted
            .iter()
            .zip(1_u32..)
            .find(|(_, rank)| f64::from(*rank) >= wanted);
        found.map_or(f64::NAN, |(time, _)| time.as_secs_f64() * 1e6)
    }

    /// Microseconds of all together.
    pub fn sum(&self) -> f64 {
        self.0.iter().sum::<Duration>().as_secs_f64() * 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_hundred() {
        let mut samples = Samples::default();
        (1..=100)
            .rev()
            .for_each(|n| samples.add(Duration::from_micros(n)));
        let rounded = |part| samples.microseconds(part).round();
        assert_eq!(
            (rounded(0.5), rounded(0.99), rounded(1.0)),
            (50.0, 99.0, 100.0)
        );
        assert_eq!(samples.sum().round(), 5050.0);
    }
}
