//! What the person at the terminal sees while something takes long.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// How often a lasting step is reported when the output is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(15);
/// How often it is on a terminal, where the line is written over.
const LIVE_INTERVAL: Duration = Duration::from_secs(1);

/// Where progress is written to: stderr, or nowhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Progress {
    /// Nothing is written.
    #[default]
    Quiet,
    /// One line a step on stderr, lasting steps reported now and then.
    Lines,
    /// As `Lines`, with the line of a lasting step written over.
    Live,
}

impl Progress {
    /// Lines on stderr; live when that is a terminal and `CI` is not `true`.
    #[must_use]
    pub fn stderr() -> Self {
        let ci = std::env::var("CI").is_ok_and(|value| value == "true");
        if io::stderr().is_terminal() && !ci {
            Self::Live
        } else {
            Self::Lines
        }
    }

    /// Reports a step.
    pub fn step(self, text: &str) {
        match self {
            Self::Quiet => {}
            Self::Lines | Self::Live => eprintln!("  {text}"),
        }
    }

    /// Starts the report of a step that lasts.
    pub(crate) fn lasting(self, text: String) -> Lasting {
        if self == Self::Lines {
            eprintln!("  {text}");
        }
        Lasting {
            progress: self,
            text,
            start: Instant::now(),
            last: None,
        }
    }
}

/// A step that lasts: call [`Lasting::tick`] often, [`Lasting::done`] at its end.
pub(crate) struct Lasting {
    progress: Progress,
    text: String,
    start: Instant,
    last: Option<Instant>,
}

impl Lasting {
    /// Reports the time so far when it is due.
    pub(crate) fn tick(&mut self) {
        let interval = match self.progress {
            Progress::Quiet => return,
            Progress::Lines => LINE_INTERVAL,
            Progress::Live => LIVE_INTERVAL,
        };
        if self.last.unwrap_or(self.start).elapsed() < interval {
            return;
        }
        self.last = Some(Instant::now());
        let seconds = self.start.elapsed().as_secs();
        match self.progress {
            Progress::Quiet => {}
            Progress::Lines => eprintln!("  {} ({seconds} s so far)", self.text),
            Progress::Live => self.overwrite(&format!("{} ({seconds} s)", self.text)),
        }
    }

    /// Reports the end.
    pub(crate) fn done(self) {
        let line = format!(
            "{}: done in {} s",
            self.text,
            self.start.elapsed().as_secs()
        );
        match self.progress {
            Progress::Quiet => {}
            Progress::Lines => eprintln!("  {line}"),
            Progress::Live => {
                self.overwrite(&line);
                eprintln!();
            }
        }
    }

    fn overwrite(&self, line: &str) {
        let mut stderr = io::stderr().lock();
        // Progress is a courtesy: a closed stderr must not stop the work.
        let _ = write!(stderr, "\r\x1b[2K  {line}");
        let _ = stderr.flush();
    }
}
