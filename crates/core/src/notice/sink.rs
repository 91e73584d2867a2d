//! Which events are posted, and when (ORD-115, KRS-65).
//!
//! Notices of one object, type and reason that arise within a second become one event. The same event again is an update of its series, at most
//! once in five minutes. Each object has a small budget of posts, a part of which is not for routine. It sends nothing: whoever drives it posts what [`Sink::due`] gives, and never
//! reports a failure back, since no decision may depend on an event.

mod join;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use super::{Action, Notice, Reference, Severity};

/// How long a notice waits for others of its kind.
pub const HOLD: Duration = Duration::from_secs(1);
/// Shortest time between two posts of the same event.
pub const SERIES_PERIOD: Duration = Duration::from_secs(300);
/// How long an event is remembered after its last post, so that the same event continues its series.
const SERIES_LIFE: Duration = Duration::from_secs(600);
/// Posts of one object in a row.
const BURST: u32 = 25;
/// How many of them routine notices leave to the others.
const RESERVE: u32 = 5;
/// Time in which an object earns one more post.
const EARN_PERIOD: Duration = Duration::from_secs(300);
/// Notices held at a time.
const CAPACITY: usize = 1024;

/// An event to post.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Post {
    /// Which event of this sink it is: the posts of one series share it, and no other event has it.
    pub id: u64,
    /// How often the event has happened: from 2 on, the event that was created under `id` is updated to a series of so many.
    pub count: u32,
    /// What the event is about.
    pub regarding: Reference,
    /// A second object that explains it.
    pub related: Option<Reference>,
    /// Type.
    pub severity: Severity,
    /// Reason.
    pub reason: &'static str,
    /// Action.
    pub action: Action,
    /// Text, within the API's limit.
    pub note: String,
}

/// What makes notices one event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Subject {
    regarding: Reference,
    severity: Severity,
    reason: &'static str,
}

/// A text of a subject.
type SeriesKey = (Subject, u64);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Series {
    post: Post,
    is_routine: bool,
    /// When it was posted last.
    posted: Option<Duration>,
    /// It happened again since then.
    is_news: bool,
}

impl Series {
    fn next_post(&self) -> Duration {
        self.posted
            .map_or(Duration::ZERO, |posted| posted + SERIES_PERIOD)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Held {
    since: Duration,
    /// In the order of arrival.
    notices: Vec<Notice>,
}

/// Notices that wait, and what is remembered of posts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sink {
    held: BTreeMap<Subject, Held>,
    depth: usize,
    series: BTreeMap<SeriesKey, Series>,
    budgets: BTreeMap<Reference, Budget>,
    last_id: u64,
    dropped: u64,
}

impl Sink {
    /// Takes a notice. When too many wait already, it is dropped and counted.
    pub fn offer(&mut self, notice: Notice, now: Duration) {
        if self.depth >= CAPACITY {
            self.dropped += 1;
            return;
        }
        let subject = Subject {
            regarding: notice.regarding.clone(),
            severity: notice.severity,
            reason: notice.reason,
        };
        let held = self.held.entry(subject).or_insert_with(|| Held {
            since: now,
            notices: Vec::new(),
        });
        held.notices.push(notice);
        self.depth += 1;
    }

    /// The events to post at `now`, those that happened first before the others.
    pub fn due(&mut self, now: Duration) -> Vec<Post> {
        self.forget_old(now);
        let again = self
            .series
            .iter()
            .filter(|(_, series)| series.is_news)
            .map(|(key, _)| key.clone());
        let mut keys: Vec<SeriesKey> = again.collect();
        for (subject, notices) in self.take_ripe(now) {
            if let Some(key) = self
                .happened(subject, &notices)
                .filter(|key| !keys.contains(key))
            {
                keys.push(key);
            }
        }
        keys.iter().filter_map(|key| self.post(key, now)).collect()
    }

    /// When [`Sink::due`] may give something although nothing was offered.
    pub fn next_deadline(&self) -> Option<Duration> {
        let ripe = self.held.values().map(|held| held.since + HOLD);
        let again = self
            .series
            .values()
            .filter(|series| series.is_news)
            .map(Series::next_post);
        ripe.chain(again).min()
    }

    /// Number of notices that wait.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Number of notices and posts that were dropped.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    fn take_ripe(&mut self, now: Duration) -> Vec<(Subject, Vec<Notice>)> {
        let (ripe, held): (BTreeMap<_, _>, BTreeMap<_, _>) = std::mem::take(&mut self.held)
            .into_iter()
            .partition(|(_, held)| now >= held.since + HOLD);
        self.held = held;
        let mut ripe: Vec<(Subject, Held)> = ripe.into_iter().collect();
        ripe.sort_by_key(|(_, held)| held.since);
        self.depth -= ripe
            .iter()
            .map(|(_, held)| held.notices.len())
            .sum::<usize>();
        ripe.into_iter()
            .map(|(subject, held)| (subject, held.notices))
            .collect()
    }

    /// ORD-115: these notices are one event, new or of a series; `related` and `action` are the first one's.
    fn happened(&mut self, subject: Subject, notices: &[Notice]) -> Option<SeriesKey> {
        let first = notices.first()?;
        let note = join::join(notices.iter().map(|notice| &notice.note));
        let key = (subject, hash(&note));
        let last_id = &mut self.last_id;
        let series = self.series.entry(key.clone()).or_insert_with(|| {
            *last_id += 1;
            Series {
                post: post(*last_id, first, note),
                is_routine: first.is_routine,
                posted: None,
                is_news: true,
            }
        });
        series.post.count = series.post.count.saturating_add(1);
        series.is_news = true;
        Some(key)
    }

    fn post(&mut self, key: &SeriesKey, now: Duration) -> Option<Post> {
        let series = self
            .series
            .get_mut(key)
            .filter(|series| now >= series.next_post())?;
        let budget = self
            .budgets
            .entry(series.post.regarding.clone())
            .or_insert(Budget {
                posts: BURST,
                earned: now,
            });
        series.is_news = false;
        let reserve = if series.is_routine { RESERVE } else { 0 };
        if budget.spend(now, reserve) {
            series.posted = Some(now);
            return Some(series.post.clone());
        }
        self.dropped += 1;
        if series.posted.is_none() {
            // It was never created, so it cannot be updated later.
            self.series.remove(key);
        }
        None
    }

    fn forget_old(&mut self, now: Duration) {
        self.series.retain(|_, series| {
            series.is_news
                || series
                    .posted
                    .is_some_and(|posted| now < posted + SERIES_LIFE)
        });
        self.budgets.retain(|_, budget| !budget.is_full(now));
    }
}

/// KRS-65: a token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Budget {
    posts: u32,
    /// When the last post was earned.
    earned: Duration,
}

impl Budget {
    /// Takes one post, if more than `reserve` are left.
    fn spend(&mut self, now: Duration, reserve: u32) -> bool {
        let periods = self.periods(now);
        self.posts = self.posts.saturating_add(periods).min(BURST);
        self.earned += EARN_PERIOD.saturating_mul(periods);
        let may_post = self.posts > reserve;
        if may_post {
            self.posts -= 1;
        }
        may_post
    }

    fn is_full(&self, now: Duration) -> bool {
        self.posts.saturating_add(self.periods(now)) >= BURST
    }

    fn periods(&self, now: Duration) -> u32 {
        let periods = now.saturating_sub(self.earned).as_secs() / EARN_PERIOD.as_secs();
        u32::try_from(periods).unwrap_or(u32::MAX)
    }
}

fn post(id: u64, first: &Notice, note: String) -> Post {
    Post {
        id,
        count: 0,
        regarding: first.regarding.clone(),
        related: first.related.clone(),
        severity: first.severity,
        reason: first.reason,
        action: first.action,
        note,
    }
}

fn hash(note: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    note.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
