//! Registering users and changing their profiles.

use rows::Stamp;

use crate::done::{Done, Outcome};
use crate::effect::{Act, Effect};
use crate::facts::Txn;
use crate::handle::Handle;
use crate::ids::{UserId, UserRef};
use crate::limits::{
    self, BIO_BYTES_MAX, FIELD_BYTES_MAX, HANDLE_CHARS_MAX, NAME_BYTES_MAX, PROFILE_FIELDS_MAX,
};
use crate::refusal::Refusal;
use crate::text::{Bio, Name};
use crate::users::{User, UserEdit};

pub(crate) fn register(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    handle: &Handle,
    (name, bio): (&Name, &Bio),
    effects: &mut Vec<Effect>,
) -> Outcome {
    if txn.facts().first_by_handle(handle).is_some() {
        return Err(Refusal::HandleTaken);
    }
    let id = UserId(txn.facts().totals().users);
    if id.0 >= limits::USERS_MAX {
        return Err(Refusal::Full);
    }
    let (name, bio) = (name.clone(), bio.clone());
    txn.put_user(id, &User { name, bio, ..User::of(handle.clone(), stamp) });
    txn.put_handle(handle, id);
    // The count changes last, because readers then treat the id as a registered user.
    txn.total(|totals| totals.users += 1);
    effects.push(Effect::Act { user: id, act: Act::Registered });
    Ok(Done::Registered(id))
}

pub(crate) fn edit(txn: &mut Txn<'_>, edit: &UserEdit, effects: &mut Vec<Effect>) -> Outcome {
    let id = resolve(txn, &edit.user)?;
    let Some(mut user) = txn.facts().user(id) else {
        return Err(Refusal::UserNotFound);
    };
    set(&mut user.name, edit.name.as_ref());
    set(&mut user.bio, edit.bio.as_ref());
    set(&mut user.fields, edit.fields.as_ref());
    set(&mut user.bot, edit.bot.as_ref());
    set(&mut user.undiscoverable, edit.discoverable.map(|discoverable| !discoverable).as_ref());
    set(&mut user.indexable, edit.indexable.as_ref());
    set(&mut user.defaults.visibility, edit.visibility.as_ref());
    set(&mut user.defaults.sensitive, edit.sensitive.as_ref());
    set(&mut user.defaults.language, edit.language.as_ref());
    set(&mut user.defaults.quote_policy, edit.quote_policy.as_ref());
    txn.put_user(id, &user);
    if let Some(locked) = edit.locked {
        txn.lock(id, locked);
    }
    effects.push(Effect::Act { user: id, act: Act::Edited });
    Ok(Done::Edited(id))
}

fn set<T: Clone>(field: &mut T, new: Option<&T>) {
    new.into_iter().for_each(|new| field.clone_from(new));
}

/// Resolves two users. Refuses with `same` if they are the same user.
pub(crate) fn resolve_two(
    txn: &Txn<'_>,
    user: &UserRef,
    other: &UserRef,
    same: Refusal,
) -> Result<(UserId, UserId), Refusal> {
    let (user, other) = (resolve(txn, user)?, resolve_other(txn, other)?);
    if user == other { Err(same) } else { Ok((user, other)) }
}

pub(crate) fn resolve(txn: &Txn<'_>, user: &UserRef) -> Result<UserId, Refusal> {
    txn.facts().resolve(user).ok_or(Refusal::UserNotFound)
}

pub(crate) fn resolve_other(txn: &Txn<'_>, other: &UserRef) -> Result<UserId, Refusal> {
    txn.facts().resolve(other).ok_or(Refusal::OtherNotFound)
}

/// Maximum size of the row of a user, in bytes.
pub(crate) const USER_BYTES_MAX: usize = HANDLE_CHARS_MAX
    + NAME_BYTES_MAX
    + BIO_BYTES_MAX
    + 2 * PROFILE_FIELDS_MAX * (FIELD_BYTES_MAX + 2)
    + 160;
