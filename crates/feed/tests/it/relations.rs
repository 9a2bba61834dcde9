//! All declared relations and whole rows: a deletion leaves no row of its users, and a repair restores a lost
//! direction.

use feed::relation::{RELATIONS, Relation};
use feed::whole::tables_of_users;
use feed::{
    Command, Done, ErasurePhase, List, ListChange, ListCommand, ListReplies, ListTitle, Mend, Note,
    Txn, UserId,
};
use rows::{PutRows as _, Rows as _, Scan as _, Table, Value, encode};
use testkit::MemoryRows;

use crate::support::{World, block, id, register};

/// The deleted user. No other item or owner has this number.
const USER: UserId = UserId(7);

/// Tags of tables in the order of removal.
const ORDER: [u8; 27] = [
    41, 42, 46, 51, 52, 91, 33, 53, 44, 20, 77, 74, 82, 66, 47, 48, 49, 50, 39, 40, 31, 30, 43, 28,
    29, 92, 93,
];

/// Creates every relation in both directions between the user and another one for each.
fn related() -> World {
    let mut world = World::new();
    for user in 3..20 {
        world.run(register(&format!("u{user}"))).unwrap();
    }
    let others = (8..20).map(UserId);
    for (relation, other) in RELATIONS.into_iter().zip(others) {
        let mut txn = Txn::new(&mut world.rows);
        txn.relate(relation, USER, other, 0);
        if relation.tables().count() == 2 {
            txn.relate(relation, other, USER, 0);
        }
        for (user, other) in [(USER, other), (other, USER)] {
            if let Some(table) = relation.text {
                let text = encode(&Note::parse("a text").unwrap());
                world.rows.put_point(table, Relation::key(user, other), Some(text));
            }
        }
    }
    world
}

#[test]
fn a_block_ends_every_relation_that_is_not_across_blocks() {
    let mut world = related();
    for (relation, other) in RELATIONS.into_iter().zip((8..20).map(UserId)) {
        assert_eq!(world.run(block(id(other.0), id(USER.0))), Ok(Done::Blocked));
        for (user, other) in [(USER, other), (other, USER)] {
            let left = world.facts().related(relation, user, other).is_some();
            assert_eq!(left, relation.is_across_blocks, "{:?}", relation.forward);
        }
    }
}

/// All rows about a user.
fn of_user(rows: &MemoryRows, user: UserId) -> Vec<(Table, Vec<u8>)> {
    let (number, key) = (u64::from(user.0), user.0.to_be_bytes());
    let mut found = Vec::new();
    for table in Table::all() {
        match table {
            Table::Point(of) => {
                let parts = |key: u64| [key, key >> 32, key & u64::from(u32::MAX)];
                let is_of = |key: u64| parts(key).contains(&number);
                let keys = rows.points_from(of, 0, usize::MAX).0.into_iter().map(|(key, _)| key);
                found.extend(
                    keys.filter(|key| is_of(*key)).map(|key| (table, key.to_be_bytes().to_vec())),
                );
            }
            Table::Set(of) => {
                let members = rows.members_from(of, (0, 0), usize::MAX).0.into_iter();
                let of_user =
                    members.filter(|(owner, item, _)| *owner == number || *item == number);
                found.extend(of_user.map(|row| (table, format!("{row:?}").into_bytes())));
            }
            Table::Name(of) => {
                let names = rows.first_names(of, &[], usize::MAX).into_iter();
                found.extend(names.filter(|name| name.starts_with(&key)).map(|name| (table, name)));
            }
        }
    }
    found
}

#[test]
fn nothing_is_left_of_a_deleted_user_in_any_table() {
    let mut world = related();
    for table in tables_of_users() {
        let nothing = Value::from_slice(&[0]);
        world.rows.put_name(table, &USER.0.to_be_bytes(), Some(nothing));
    }
    let before = of_user(&world.rows, USER);
    for table in RELATIONS.into_iter().flat_map(Relation::tables) {
        let rows = before.iter().filter(|(found, _)| *found == Table::Set(table)).count();
        assert_eq!(rows, 2, "{table:?}: a row of the user, and one of the other");
    }
    assert_eq!(world.run(Command::DeleteUser { user: id(USER.0) }), Ok(Done::UserDeleted));
    world.erase(USER.0);
    let left = of_user(&world.rows, USER);
    let tables: Vec<String> = left.iter().map(|(table, _)| format!("{table:?}")).collect();
    assert_eq!(tables, ["Point(User)", "Set(DeletedUsers)"], "{left:?}");
    for other in (8..20).map(UserId) {
        assert_eq!(world.facts().stored_counts(other), feed::Counts::default(), "{other:?}");
    }
    assert_eq!(mend(&mut world.rows), 0);
}

/// A deleted member leaves a list even while its owner, deleted before, is still being removed.
#[test]
fn lists_of_a_user_who_is_being_removed_lose_members() {
    let mut world = related();
    let (owner, member) = (UserId(8), UserId(9));
    world.run(Command::Follow { user: id(owner.0), other: id(member.0) }).unwrap();
    let change = ListChange::Create(List {
        title: ListTitle::parse("list").unwrap(),
        replies: ListReplies::default(),
    });
    let created =
        world.run(Command::List(Box::new(ListCommand { user: id(owner.0), change }))).unwrap();
    let Done::ListSaved(list) = created else { panic!("{created:?}") };
    let change = ListChange::Add { list, users: vec![member] };
    world.run(Command::List(Box::new(ListCommand { user: id(owner.0), change }))).unwrap();
    for user in [owner, member] {
        world.run(Command::DeleteUser { user: id(user.0) }).unwrap();
    }
    world.erase(member.0);
    assert_eq!(mend(&mut world.rows), 0);
    assert_eq!(world.facts().list_members(owner, list), []);
}

/// The order of removal is stored, so it must not change within a format version.
#[test]
fn tables_of_deleted_users_are_emptied_in_a_fixed_order() {
    let mut order = Vec::new();
    let mut phase = ErasurePhase::first();
    while let Some(table) = phase.table() {
        order.push(table.tag());
        phase = phase.next();
    }
    assert_eq!(order, ORDER);
}

#[test]
fn a_lost_row_of_a_relation_is_found() {
    for relation in RELATIONS {
        for table in relation.tables() {
            let mut world = related();
            let rows = world.rows.members_from(table, (0, 0), usize::MAX).0;
            let (owner, item, _) = rows[0];
            world.rows.put_member(table, owner, item, None);
            assert!(mend(&mut world.rows) > 0, "{table:?}");
            assert_eq!(mend(&mut world.rows), 0, "{table:?}: a second check finds nothing");
        }
    }
}

fn mend(rows: &mut MemoryRows) -> usize {
    let (mut check, mut findings) = (Mend::new(false), 0);
    while check.step(rows, &mut |_| findings += 1) {}
    findings
}
