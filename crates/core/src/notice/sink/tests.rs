use super::*;
use crate::intent::{Kind, Target};
use crate::model::ObjectKey;
use crate::notice::Note;

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn reference(name: &str) -> Reference {
    Reference {
        target: Target {
            kind: Kind::LeaderWorkerSet,
            key: ObjectKey::new("ns", name),
        },
        uid: name.into(),
    }
}

fn notice(name: &str, reason: &'static str, text: &str) -> Notice {
    Notice::normal(reference(name), reason, Action::Create, text)
}

fn created(leader: &str) -> Notice {
    let note = Note::Named {
        one: "Created worker statefulset for leader pod".into(),
        many: "Created worker statefulset for leader pods".into(),
        name: leader.into(),
        tail: String::new(),
    };
    Notice::normal(reference("x"), "GroupsProgressing", Action::Create, note)
        .related(reference(leader))
}

fn texts(posts: &[Post]) -> Vec<(&str, u32)> {
    posts
        .iter()
        .map(|post| (post.note.as_str(), post.count))
        .collect()
}

#[test]
fn ord_115_notices_of_one_second_become_one_event() {
    let mut sink = Sink::default();
    sink.offer(created("x-0"), s(10));
    sink.offer(created("x-1"), s(10) + HOLD / 2);
    assert_eq!(sink.next_deadline(), Some(s(11)));
    assert_eq!(sink.due(s(11) - Duration::from_millis(1)), []);
    let posts = sink.due(s(11));
    let wanted = Post {
        id: 1,
        count: 1,
        regarding: reference("x"),
        related: Some(reference("x-0")),
        severity: Severity::Normal,
        reason: "GroupsProgressing",
        action: Action::Create,
        note: "Created worker statefulset for leader pods x-0, x-1".into(),
    };
    assert_eq!(posts, [wanted]);
    assert_eq!((sink.depth(), sink.next_deadline()), (0, None));
}

#[test]
fn ord_115_object_type_and_reason_keep_events_apart() {
    let mut sink = Sink::default();
    let warning = Notice {
        severity: Severity::Warning,
        ..notice("x", "A", "3")
    };
    sink.offer(notice("y", "A", "1"), s(0));
    sink.offer(notice("x", "B", "2"), s(0) + HOLD / 4);
    sink.offer(warning, s(0) + HOLD / 3);
    sink.offer(notice("x", "A", "4"), s(0) + HOLD / 2);
    assert_eq!(
        texts(&sink.due(s(2))),
        [("1", 1), ("2", 1), ("3", 1), ("4", 1)],
        "in the order of arrival"
    );
}

#[test]
fn krs_65_the_same_event_again_is_a_series_update_once_in_five_minutes() {
    let mut sink = Sink::default();
    let mut happen = |at| {
        sink.offer(notice("x", "A", "text"), at);
        let posts = sink.due(at + HOLD);
        (
            posts
                .iter()
                .map(|post| (post.id, post.count))
                .collect::<Vec<_>>(),
            sink.next_deadline(),
        )
    };
    assert_eq!(happen(s(0)), (vec![(1, 1)], None));
    assert_eq!(happen(s(10)), (vec![], Some(s(301))));
    assert_eq!(happen(s(20)), (vec![], Some(s(301))));
    assert_eq!(happen(s(300)), (vec![(1, 4)], None));
    assert_eq!(sink.due(s(700)), []);
    sink.offer(notice("x", "A", "text"), s(700));
    assert_eq!(texts(&sink.due(s(701))), [("text", 5)]);
}

#[test]
fn krs_65_what_happened_meanwhile_is_told_when_its_time_comes() {
    let mut sink = Sink::default();
    for at in [0, 10, 20] {
        sink.offer(notice("x", "A", "text"), s(at));
        sink.due(s(at + 1));
    }
    assert_eq!(sink.due(s(300)), []);
    assert_eq!(texts(&sink.due(s(301))), [("text", 3)]);
    assert_eq!(sink.due(s(400)), []);
}

#[test]
fn krs_64_another_text_is_another_event() {
    let mut sink = Sink::default();
    sink.offer(notice("x", "A", "one"), s(0));
    let first = sink.due(s(1));
    sink.offer(notice("x", "A", "two"), s(1));
    let second = sink.due(s(2));
    assert_eq!(
        (texts(&first), texts(&second)),
        (vec![("one", 1)], vec![("two", 1)])
    );
    assert_ne!(first[0].id, second[0].id);
}

#[test]
fn krs_65_an_event_that_was_quiet_for_long_is_created_anew() {
    let mut sink = Sink::default();
    for (at, id) in [(0, 1), (601, 2)] {
        sink.offer(notice("x", "A", "text"), s(at));
        let posts = sink.due(s(at + 1));
        assert_eq!(
            posts
                .iter()
                .map(|post| (post.id, post.count))
                .collect::<Vec<_>>(),
            [(id, 1)]
        );
    }
}

#[test]
fn krs_65_each_object_has_a_budget_of_posts() {
    let mut sink = Sink::default();
    let mut post = |name: &str, index: u64, at| {
        sink.offer(notice(name, "A", &index.to_string()), s(at));
        sink.due(s(at + 1)).len()
    };
    for index in 0..25 {
        assert_eq!(post("x", index, index), 1, "{index}");
    }
    assert_eq!(post("x", 25, 25), 0, "the burst is used up");
    assert_eq!(post("y", 0, 26), 1, "another object has its own");
    assert_eq!(
        post("x", 26, 299),
        0,
        "nothing is earned before five minutes"
    );
    assert_eq!(post("x", 27, 300), 1);
    assert_eq!(post("x", 28, 301), 0);
    assert_eq!(
        post("x", 29, 1202),
        1,
        "three are earned in fifteen minutes"
    );
    assert_eq!(
        (
            post("x", 30, 1203),
            post("x", 31, 1204),
            post("x", 32, 1205)
        ),
        (1, 1, 0)
    );
    assert_eq!(sink.dropped(), 4);
}

#[test]
fn krs_65_routine_leaves_posts_for_how_it_ends() {
    let mut sink = Sink::default();
    for index in 0..30 {
        sink.offer(notice("x", "A", &index.to_string()).routine(), s(index));
        assert_eq!(sink.due(s(index + 1)).len(), usize::from(index < 20));
    }
    for index in 30..36 {
        sink.offer(notice("x", "B", &index.to_string()), s(index));
        assert_eq!(sink.due(s(index + 1)).len(), usize::from(index < 35));
    }
}

#[test]
fn krs_65_an_event_that_was_never_created_is_not_updated() {
    let mut sink = Sink::default();
    for index in 0..26 {
        sink.offer(notice("x", "A", &index.to_string()), s(index));
        sink.due(s(index + 1));
    }
    sink.offer(notice("x", "A", "25"), s(400));
    assert_eq!(texts(&sink.due(s(401))), [("25", 1)]);
}

#[test]
fn krs_65_what_waits_is_bounded() {
    let mut sink = Sink::default();
    for index in 0..1030 {
        sink.offer(notice(&format!("x-{index}"), "A", "text"), s(0));
    }
    assert_eq!((sink.depth(), sink.dropped()), (1024, 6));
    assert_eq!(sink.due(s(1)).len(), 1024);
    sink.offer(notice("x", "A", "text"), s(1));
    assert_eq!((sink.depth(), sink.dropped()), (1, 6));
}

#[test]
fn krs_65_nothing_is_remembered_for_ever() {
    let mut sink = Sink::default();
    sink.offer(notice("x", "A", "text"), s(0));
    sink.due(s(1));
    sink.due(s(10_000));
    assert_eq!(
        sink,
        Sink {
            last_id: 1,
            ..Sink::default()
        }
    );
}
