//! The rows of the measurement: what is done, and how large.

use clap::ValueEnum;

/// One piece of work that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Row {
    /// Create one set of many groups.
    #[value(name = "groups-200")]
    Groups200,
    /// Let a settled set be.
    Settled,
    /// Delete one worker, again and again.
    Recreate,
    /// Roll all groups of that set.
    Rollout,
    /// Create many small sets.
    #[value(name = "sets-50")]
    Sets50,
    /// Create one set of more and larger groups.
    #[value(name = "groups-500")]
    Groups500,
    /// Create one set of 8,000 pods.
    #[value(name = "groups-1000")]
    Groups1000,
    /// Start again while those are there.
    ColdStart,
    /// Admit pods, in process.
    Admission,
    /// Decide, in process.
    Plans,
    /// Decide for more and more groups, in process.
    Growth,
}

/// Sets of equal shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Number of sets.
    pub sets: u32,
    /// Groups of each.
    pub groups: u32,
    /// Pods of a group.
    pub size: u32,
}

impl Shape {
    /// A tenth of the sets or groups.
    fn tenth(self) -> Self {
        if self.sets > 1 {
            let sets = (self.sets / 10).max(2);
            Self { sets, ..self }
        } else {
            let groups = (self.groups / 10).max(2);
            Self { groups, ..self }
        }
    }
}

impl Row {
    /// All of them, in the order of the table.
    pub fn all() -> Vec<Self> {
        Self::value_variants().to_vec()
    }

    /// Name on the command line.
    pub fn name(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// The sets that it works on; `None` for the rows in process.
    pub fn shape(self, is_small: bool) -> Option<Shape> {
        let (sets, groups, size) = match self {
            Self::Groups200 | Self::Settled | Self::Recreate | Self::Rollout => (1, 200, 4),
            Self::Sets50 => (50, 4, 4),
            Self::Groups500 => (1, 500, 8),
            Self::Groups1000 | Self::ColdStart => (1, 1000, 8),
            Self::Admission | Self::Plans | Self::Growth => return None,
        };
        let shape = Shape { sets, groups, size };
        Some(if is_small { shape.tenth() } else { shape })
    }

    /// What is done, in words.
    pub fn work(self, is_small: bool) -> String {
        let shape = self.shape(is_small);
        let sets = shape.map_or(0, |shape| shape.sets);
        let pods = shape.map_or_else(String::new, |shape| {
            format!("{} groups × {} pods", shape.groups, shape.size)
        });
        match self {
            Self::Groups200 | Self::Groups500 | Self::Groups1000 => format!("{pods}, create"),
            Self::Settled => format!("{pods}, settled"),
            Self::Recreate => format!("{pods}, a worker is deleted"),
            Self::Rollout => format!("{pods}, rollout with maxUnavailable 10%"),
            Self::Sets50 => format!("{sets} sets × {pods}, create"),
            Self::ColdStart => format!("{pods}, manager starts"),
            Self::Admission => "one pod admission, in process".to_owned(),
            Self::Plans => "decisions, in process".to_owned(),
            Self::Growth => "50 to 3,200 groups × 8 pods, in process".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_is_a_tenth() {
        assert_eq!(Row::Sets50.work(true), "5 sets × 4 groups × 4 pods, create");
        assert_eq!(Row::Groups500.work(true), "50 groups × 8 pods, create");
        assert_eq!(
            Row::Rollout.work(false),
            "200 groups × 4 pods, rollout with maxUnavailable 10%"
        );
    }

    #[test]
    fn names_are_those_of_the_command_line() {
        assert_eq!(Row::Groups200.name(), "groups-200");
        assert_eq!(Row::ColdStart.name(), "cold-start");
        assert_eq!(Row::all().len(), 11);
    }
}
