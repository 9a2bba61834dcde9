//! Test of a command whose rule panics, in a cluster: all nodes refuse the command, go on, can restart, and have the
//! same rows.

use serde_json::json;

use super::{PANIC, World, texts};

#[test]
fn all_nodes_survive_a_command_whose_rule_panics() {
    if !cfg!(debug_assertions) {
        return crate::support::not_here("rules panic on purpose only in a debug build");
    }
    let Some(mut world) = World::start(2) else { return };
    let user = world.client(0).register("anna");
    let path = format!("/v1/users/{user}/posts");
    world.client(0).publish(user, "first");
    let failed = world.client(0).post(&path, &json!({"text": PANIC}));
    failed.assert_error(500, "internal", "a panic");
    let after = world.client(0).post(&path, &json!({"text": "second"})).expect(201);
    let after: u64 = after.header("roost-position").unwrap().parse().unwrap();
    for node in 0..2 {
        assert_eq!(texts(&mut world.client(node), user.into(), after), ["first", "second"]);
    }
    let before = world.same_digests();
    (0..2).for_each(|node| world.kill(node));
    (0..2).for_each(|node| world.restart(node));
    let (position, _) = world.same_digests();
    assert!(position >= before.0);
    for node in 0..2 {
        assert_eq!(texts(&mut world.client(node), user.into(), after), ["first", "second"]);
    }
}
