//! Registering users and changing their profiles.

use rows::Stamp;

use crate::command::{Done, Outcome};
use crate::effect::Effect;
use crate::facts::Txn;
use crate::ids::{UserId, UserRef};
use crate::limits;
use crate::records::User;
use crate::refusal::Refusal;
use crate::text::{Bio, Handle, Name};

pub(super) fn register(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    handle: &Handle,
    name: &Name,
    bio: &Bio,
) -> Outcome {
    if txn.facts().first_by_handle(handle).is_some() {
        return Err(Refusal::HandleTaken);
    }
    let id = UserId(txn.facts().totals().users);
    if id.0 >= limits::USERS_MAX {
        return Err(Refusal::Full);
    }
    let user =
        User { handle: handle.clone(), name: name.clone(), bio: bio.clone(), registered: stamp };
    txn.put_user(id, &user);
    txn.put_handle(handle, id);
    // Last: from here on readers treat the id as a registered user.
    txn.total(|totals| totals.users += 1);
    Ok(Done::Registered(id))
}

pub(super) fn edit(
    txn: &mut Txn<'_>,
    user: &UserRef,
    name: Option<&Name>,
    bio: Option<&Bio>,
    effects: &mut Vec<Effect>,
) -> Outcome {
    let id = super::resolve(txn, user)?;
    let Some(mut user) = txn.facts().user(id) else {
        return Err(Refusal::UserNotFound);
    };
    if let Some(name) = name.filter(|name| **name != user.name) {
        user.name = name.clone();
        effects.push(Effect::ProfileChanged { user: id });
    }
    if let Some(bio) = bio {
        user.bio = bio.clone();
    }
    txn.put_user(id, &user);
    Ok(Done::Edited(id))
}
