//! The text of several notices as one event (ORD-115).

use crate::notice::{NOTE_LIMIT, Note};

/// Names that are listed when all of them are too many.
const FEW: usize = 3;

/// Notes that differ in nothing but a name, or a note that has none.
struct Part<'a> {
    note: &'a Note,
    names: Vec<&'a str>,
}

/// One text of at most [`NOTE_LIMIT`] bytes: names that stand in the same text are listed in it, other texts follow after `; `.
pub(super) fn join<'a>(notes: impl Iterator<Item = &'a Note>) -> String {
    let mut parts: Vec<Part<'a>> = Vec::new();
    for note in notes {
        match parts
            .iter_mut()
            .find(|part| differs_in_name_only(part.note, note))
        {
            Some(part) => part
                .names
                .extend(name(note).filter(|name| !part.names.contains(name))),
            None => parts.push(Part {
                note,
                names: name(note).into_iter().collect(),
            }),
        }
    }
    let whole = parts
        .iter()
        .map(|part| part.text(usize::MAX))
        .collect::<Vec<_>>()
        .join("; ");
    if whole.len() <= NOTE_LIMIT {
        return whole;
    }
    fit(&parts.iter().map(|part| part.text(FEW)).collect::<Vec<_>>())
}

impl Part<'_> {
    /// The text with at most `limit` names.
    fn text(&self, limit: usize) -> String {
        match (self.note, self.names.as_slice()) {
            (Note::Text(text), _) => text.clone(),
            (Note::Named { one, tail, .. }, [name]) => format!("{one} {name}{tail}"),
            (Note::Named { many, tail, .. }, names) => {
                format!("{many} {}{tail}", list(names, limit))
            }
        }
    }
}

fn differs_in_name_only(a: &Note, b: &Note) -> bool {
    match (a, b) {
        (Note::Text(a), Note::Text(b)) => a == b,
        (
            Note::Named {
                one,
                many,
                tail,
                name: _,
            },
            Note::Named {
                one: other_one,
                many: other_many,
                tail: other_tail,
                name: _,
            },
        ) => one == other_one && many == other_many && tail == other_tail,
        (Note::Text(_), Note::Named { .. }) | (Note::Named { .. }, Note::Text(_)) => false,
    }
}

fn name(note: &Note) -> Option<&str> {
    match note {
        Note::Text(_) => None,
        Note::Named { name, .. } => Some(name),
    }
}

fn list(names: &[&str], limit: usize) -> String {
    let (few, rest) = names.split_at(limit.min(names.len()));
    let listed = few.join(", ");
    if rest.is_empty() {
        listed
    } else {
        format!("{listed} and {} more", rest.len())
    }
}

/// As many texts as fit, and how many more there are; the first one is cut if it is too long by itself.
fn fit(texts: &[String]) -> String {
    let mut joined = String::new();
    let mut fitting = None;
    for (index, text) in texts.iter().enumerate() {
        joined += if index == 0 { "" } else { "; " };
        joined += text;
        if joined.len() > NOTE_LIMIT {
            break;
        }
        let candidate = joined.clone() + &more(texts.len() - index - 1);
        if candidate.len() <= NOTE_LIMIT {
            fitting = Some(candidate);
        }
    }
    fitting.unwrap_or_else(|| {
        let rest = more(texts.len().saturating_sub(1));
        cut(
            texts.first().map_or("", String::as_str),
            NOTE_LIMIT - rest.len(),
        ) + &rest
    })
}

fn more(count: usize) -> String {
    if count == 0 {
        String::new()
    } else {
        format!("; and {count} more")
    }
}

/// The text, or its beginning and a mark of the cut, in at most `limit` bytes, cut between two characters.
fn cut(text: &str, limit: usize) -> String {
    const MARK: char = '…';
    if text.len() <= limit {
        return text.to_owned();
    }
    let room = limit.saturating_sub(MARK.len_utf8());
    let fits = |(at, c): &(usize, char)| at + c.len_utf8() <= room;
    text.char_indices()
        .take_while(fits)
        .map(|(_, c)| c)
        .chain([MARK])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, tail: &str) -> Note {
        Note::Named {
            one: "Created worker statefulset for leader pod".into(),
            many: "Created worker statefulset for leader pods".into(),
            name: name.into(),
            tail: tail.into(),
        }
    }

    fn joined(notes: &[Note]) -> String {
        join(notes.iter())
    }

    #[test]
    fn ord_115_texts_that_differ_in_a_name_list_the_names() {
        let one = "Created worker statefulset for leader pod x-0";
        assert_eq!(joined(&[named("x-0", "")]), one);
        assert_eq!(joined(&[named("x-0", ""), named("x-0", "")]), one);
        let two = "Created worker statefulset for leader pods x-1, x-0: no";
        assert_eq!(joined(&[named("x-1", ": no"), named("x-0", ": no")]), two);
    }

    #[test]
    fn ord_115_other_texts_follow_after_a_semicolon() {
        let notes = [
            Note::from("a"),
            named("x-0", ""),
            Note::from("a"),
            named("x-1", ""),
            named("x-2", ": no"),
        ];
        let wanted = "a; Created worker statefulset for leader pods x-0, x-1; Created worker statefulset for leader pod x-2: no";
        assert_eq!(joined(&notes), wanted);
    }

    #[test]
    fn ord_115_too_many_names_become_a_count() {
        let notes: Vec<_> = (0..200)
            .map(|index| named(&format!("x-{index}"), ""))
            .collect();
        assert_eq!(
            joined(&notes),
            "Created worker statefulset for leader pods x-0, x-1, x-2 and 197 more"
        );
        let most: Vec<_> = (0..100)
            .map(|index| named(&format!("x-{index}"), ""))
            .collect();
        assert!(joined(&most).ends_with(", x-99"), "what fits is listed");
    }

    #[test]
    fn ord_115_too_many_texts_become_a_count() {
        let notes: Vec<_> = (0..100)
            .map(|index| Note::from(format!("{index:020}")))
            .collect();
        let text = joined(&notes);
        assert!(
            text.len() <= NOTE_LIMIT && text.len() > NOTE_LIMIT - 25,
            "{}",
            text.len()
        );
        assert!(
            text.ends_with("00000000000000000045; and 54 more"),
            "{text}"
        );
    }

    #[test]
    fn ord_115_a_text_is_cut_between_characters() {
        for (first, what) in [
            ("ä".repeat(1000), "two bytes"),
            ("語".repeat(1000), "three"),
            ("a".repeat(2000), "one"),
        ] {
            let text = joined(&[Note::from(first.clone())]);
            assert!(
                text.len() <= NOTE_LIMIT && text.len() > NOTE_LIMIT - 4,
                "{what}: {}",
                text.len()
            );
            assert!(
                text.ends_with('…') && first.starts_with(text.trim_end_matches('…')),
                "{what}"
            );
            let text = joined(&[Note::from(first), Note::from("b")]);
            assert!(
                text.len() <= NOTE_LIMIT && text.ends_with("…; and 1 more"),
                "{what}"
            );
        }
        let exact = "a".repeat(NOTE_LIMIT);
        assert_eq!(joined(&[Note::from(exact.clone())]), exact);
    }
}
