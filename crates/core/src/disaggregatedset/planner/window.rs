//! The coordination window (PLN-8, PLN-9): how far each role may go so that all roles progress together.

/// Where the least advanced role stands, as a fraction of its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Progress {
    /// Groups that are there.
    pub done: u64,
    /// Size of the role, above 0.
    pub of: u64,
}

impl Progress {
    fn is_behind(self, other: Self) -> bool {
        u128::from(self.done) * u128::from(other.of) < u128::from(other.done) * u128::from(self.of)
    }
}

/// How far each role may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    /// The least advanced role.
    pub least: Progress,
    smallest: u64,
}

impl Window {
    /// PLN-8: the window over pairs of size and progress; `None` when every size is 0. On ties the first role counts.
    pub fn over(roles: impl Iterator<Item = (u64, u64)>) -> Option<Self> {
        roles
            .filter(|(size, _)| *size > 0)
            .map(|(of, done)| Self {
                least: Progress { done, of },
                smallest: of,
            })
            .reduce(|window, next| Self {
                least: if next.least.is_behind(window.least) {
                    next.least
                } else {
                    window.least
                },
                smallest: window.smallest.min(next.smallest),
            })
    }

    /// PLN-9: the furthest count of a role of this size: one group of the smallest role beyond the least advanced role.
    pub fn reach(self, size: u64) -> u64 {
        let Progress { done, of } = self.least;
        let (wide, done, of) = (u128::from(size), u128::from(done), u128::from(of));
        let smallest = u128::from(self.smallest);
        let reach = (wide * done * smallest + wide * of) / (of * smallest);
        u64::try_from(reach).map_or(size, |reach| reach.min(size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dsr_pln_9_reach_of_the_worked_rows() {
        let rows: [(&[u64], &[u64], &[u64]); 8] = [
            (&[8, 4], &[6, 1], &[4, 2]),
            (&[8, 4], &[6, 2], &[6, 3]),
            (&[3, 7], &[1, 1], &[1, 3]),
            (&[3, 7], &[0, 0], &[1, 2]),
            (&[2, 4, 6], &[1, 1, 1], &[1, 2, 4]),
            (&[1, 5], &[0, 1], &[1, 5]),
            (&[0, 5], &[0, 2], &[0, 3]),
            (&[0, 0], &[0, 0], &[]),
        ];
        for (sizes, progress, expected) in rows {
            let window = Window::over(sizes.iter().copied().zip(progress.iter().copied()));
            let reach: Vec<u64> = window
                .map(|window| sizes.iter().map(|size| window.reach(*size)).collect())
                .unwrap_or_default();
            assert_eq!(reach, expected, "{sizes:?} at {progress:?}");
        }
    }

    #[test]
    fn dsr_pln_8_first_role_counts_on_ties() {
        let window = Window::over([(3, 0), (7, 0)].into_iter()).unwrap();
        assert_eq!(window.least, Progress { done: 0, of: 3 });
        assert_eq!(window.smallest, 3);
    }

    #[test]
    fn dsr_pln_9_the_largest_counts_of_the_api_do_not_overflow() {
        let most = u64::from(i32::MAX.unsigned_abs());
        let window = Window::over([(most, most - 1), (most, most)].into_iter()).unwrap();
        assert_eq!(window.reach(most), most);
    }
}
