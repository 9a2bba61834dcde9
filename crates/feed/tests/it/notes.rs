//! Notes: private texts of users about others.

use crate::support::{World, block, id, note};
use feed::limits::NOTES_MAX;
use feed::{Done, Note, Refusal, SetTable, Span, Txn, UserId};

#[test]
fn a_note_is_its_authors_alone_and_is_replaced_or_removed() {
    let mut world = World::new();
    for (user, other, text, notes) in [
        (0, 1, "met in Rome", 1),
        (0, 1, "met in Oslo", 1),
        (0, 2, "", 1),
        (0, 2, "a bot?", 2),
        (0, 0, "buy milk", 3),
        (0, 1, "", 2),
        (0, 1, "", 2),
    ] {
        assert_eq!(world.run(note(user, other, text)), Ok(Done::NoteSet));
        let found = world.facts().note(UserId(user), UserId(other)).unwrap_or_default();
        assert_eq!(found.as_str(), text);
        assert_eq!(world.facts().counts(UserId(0)).notes, notes, "{text:?}");
        assert_eq!(world.effects, []);
    }
    let facts = world.facts();
    assert_eq!(facts.users_in(SetTable::Notes, UserId(0), Span::ALL), [UserId(0), UserId(2)]);
    assert_eq!(facts.users_in(SetTable::NotedBy, UserId(2), Span::ALL), [UserId(0)]);
    assert_eq!(facts.note(UserId(2), UserId(0)), None);
    assert_eq!(facts.counts(UserId(2)).notes, 0);
}

#[test]
fn a_note_about_a_user_who_does_not_exist_for_the_author_is_refused() {
    let mut world = World::new();
    world.run(note(0, 1, "before")).unwrap();
    world.run(block(id(1), id(0))).unwrap();
    world.run(block(id(0), id(2))).unwrap();
    let before = world.snapshot();
    for (user, other, unknown) in [
        (0, 1, Refusal::OtherNotFound),
        (0, 9, Refusal::OtherNotFound),
        (9, 0, Refusal::UserNotFound),
    ] {
        assert_eq!(world.run(note(user, other, "x")), Err(unknown));
    }
    assert_eq!(world.snapshot(), before);
    assert_eq!(world.run(note(0, 2, "why I block them")), Ok(Done::NoteSet));
}

#[test]
fn the_number_of_notes_is_bounded() {
    let mut world = World::new();
    world.run(note(0, 1, "one")).unwrap();
    Txn::new(&mut world.rows).count(UserId(0), |counts| counts.notes = NOTES_MAX);
    assert_eq!(world.run(note(0, 2, "x")), Err(Refusal::TooManyNotes));
    assert_eq!(world.run(note(0, 2, "")), Ok(Done::NoteSet));
    assert_eq!(world.run(note(0, 1, "replaced")), Ok(Done::NoteSet));
    assert_eq!(world.run(note(0, 1, "")), Ok(Done::NoteSet));
    assert_eq!(world.run(note(0, 2, "x")), Ok(Done::NoteSet));
    assert_eq!(world.facts().note(UserId(0), UserId(2)), Note::parse("x").ok());
}
