//! Watches one kind and tells what changed (KRS-31, KRS-41, KRS-43, KRS-44).
//!
//! Each kind has a watch and a back-off of its own, so that one that cannot be read holds up nothing but itself. A list is told as a whole, so that
//! whoever keeps the objects finds out what vanished meanwhile. It keeps nothing and decides nothing.

use std::fmt::Debug;
use std::pin::pin;

use futures::{Stream, StreamExt as _};
use kube::Api;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use lws_core::cache::Change;
use lws_core::model::{ObjectKey, Uid};
use serde::de::DeserializeOwned;
use tokio::sync::Notify;

/// KRS-15: below the idle limit of common load balancers.
const WATCH_SECONDS: u32 = 240;

/// What a watch tells.
#[derive(Clone, Debug, PartialEq)]
pub enum Told<T> {
    /// A list has begun: whatever was written before will be in it.
    Listing,
    /// Objects came, changed or went.
    Change(Change<T>),
    /// An object cannot be read. As long as that is so, it counts as no object (KRS-22).
    Unreadable(Unreadable),
}

/// An object that is not of the form that its kind has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Namespace and name.
    pub key: ObjectKey,
    /// UID.
    pub uid: Uid,
    /// What is wrong.
    pub error: String,
}

/// The events of one kind, listed anew and watched on, with a back-off of its own.
pub fn events<K>(
    api: Api<K>,
    config: watcher::Config,
) -> impl Stream<Item = watcher::Result<Event<K>>> + Send + use<K>
where
    K: kube::Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    watcher(api, config.timeout(WATCH_SECONDS)).default_backoff()
}

/// Tells every change of the kind `kind` for ever; `relist` makes it start over with a list.
pub async fn run<K, T, S>(
    kind: &str,
    open: impl Fn() -> S,
    project: impl Fn(K) -> Result<T, Unreadable>,
    mut tell: impl FnMut(Told<T>),
    relist: &Notify,
) where
    S: Stream<Item = watcher::Result<Event<K>>>,
{
    loop {
        let mut stream = pin!(open());
        let mut listed = Vec::new();
        loop {
            let event = tokio::select! {
                biased;
                () = relist.notified() => break,
                event = stream.next() => event,
            };
            match event {
                Some(Ok(Event::Init)) => {
                    listed.clear();
                    tell(Told::Listing);
                }
                Some(Ok(Event::InitApply(object))) => match project(object) {
                    Ok(object) => listed.push(object),
                    Err(unreadable) => tell(Told::Unreadable(unreadable)),
                },
                Some(Ok(Event::InitDone)) => {
                    tell(Told::Change(Change::Relisted(std::mem::take(&mut listed))))
                }
                Some(Ok(Event::Apply(object))) => tell(told(project(object), Change::Applied)),
                Some(Ok(Event::Delete(object))) => tell(told(project(object), Change::Deleted)),
                Some(Err(error)) => tracing::warn!(kind, %error, "watch failed, trying again"),
                None => break,
            }
        }
        tracing::debug!(kind, "listing anew");
    }
}

fn told<T>(projected: Result<T, Unreadable>, change: impl FnOnce(T) -> Change<T>) -> Told<T> {
    projected.map_or_else(Told::Unreadable, |object| Told::Change(change(object)))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use futures::stream;

    use super::*;

    type Events = Vec<watcher::Result<Event<&'static str>>>;

    fn unreadable() -> Unreadable {
        Unreadable {
            key: ObjectKey::new("ns", "bad"),
            uid: "u".into(),
            error: "bad".into(),
        }
    }

    fn project(object: &'static str) -> Result<&'static str, Unreadable> {
        if object == "bad" {
            Err(unreadable())
        } else {
            Ok(object)
        }
    }

    /// What is told of `rounds`, each a stream of its own that stays open; a relist is asked for after each but the last.
    async fn told_of(rounds: Vec<Events>) -> Vec<Told<&'static str>> {
        let all: Rc<RefCell<Vec<_>>> = Rc::default();
        let relist = Notify::new();
        let left = RefCell::new(rounds.into_iter());
        let open = || {
            let round = left.borrow_mut().next().unwrap_or_default();
            let is_last = left.borrow().len() == 0;
            let end = stream::once(async move {
                if is_last {
                    std::future::pending::<()>().await
                }
            });
            let relist = &relist;
            stream::iter(round).chain(end.filter_map(move |()| async move {
                relist.notify_one();
                std::future::pending::<()>().await;
                None
            }))
        };
        let keep = all.clone();
        let running = run(
            "Test",
            open,
            project,
            move |told| keep.borrow_mut().push(told),
            &relist,
        );
        let limit = tokio::time::sleep(std::time::Duration::from_secs(1));
        tokio::select! {
            () = running => {}
            () = limit => {}
        }
        all.take()
    }

    fn change(change: Change<&'static str>) -> Told<&'static str> {
        Told::Change(change)
    }

    #[tokio::test(start_paused = true)]
    async fn krs_31_a_list_is_told_as_a_whole_and_then_single_changes() {
        let events = vec![
            Ok(Event::Init),
            Ok(Event::InitApply("a")),
            Ok(Event::InitApply("b")),
            Ok(Event::InitDone),
            Ok(Event::Apply("c")),
            Ok(Event::Delete("a")),
        ];
        let wanted = [
            Told::Listing,
            change(Change::Relisted(vec!["a", "b"])),
            change(Change::Applied("c")),
            change(Change::Deleted("a")),
        ];
        assert_eq!(told_of(vec![events]).await, wanted);
    }

    #[tokio::test(start_paused = true)]
    async fn krs_41_a_list_that_broke_off_is_not_told() {
        let events = vec![
            Ok(Event::Init),
            Ok(Event::InitApply("a")),
            Err(watcher::Error::NoResourceVersion),
            Ok(Event::Init),
            Ok(Event::InitApply("b")),
            Ok(Event::InitDone),
        ];
        assert_eq!(
            told_of(vec![events]).await,
            [
                Told::Listing,
                Told::Listing,
                change(Change::Relisted(vec!["b"]))
            ]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn krs_36_a_relist_starts_over() {
        let round = |name| {
            vec![
                Ok(Event::Init),
                Ok(Event::InitApply(name)),
                Ok(Event::InitDone),
            ]
        };
        let told = told_of(vec![round("a"), round("b")]).await;
        let listed = |name| change(Change::Relisted(vec![name]));
        assert_eq!(
            told,
            [Told::Listing, listed("a"), Told::Listing, listed("b")]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn krs_22_an_unreadable_object_holds_up_no_other() {
        let events = vec![
            Ok(Event::Init),
            Ok(Event::InitApply("bad")),
            Ok(Event::InitApply("a")),
            Ok(Event::InitDone),
            Ok(Event::Apply("bad")),
        ];
        let wanted = [
            Told::Listing,
            Told::Unreadable(unreadable()),
            change(Change::Relisted(vec!["a"])),
            Told::Unreadable(unreadable()),
        ];
        assert_eq!(told_of(vec![events]).await, wanted);
    }
}
