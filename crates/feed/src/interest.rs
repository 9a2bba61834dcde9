//! Authors in whom a user is not interested. Ranked feeds leave out their posts, except those of the home timeline.

use rows::{Rows, SetTable, Span};

use crate::done::{Done, Outcome};
use crate::effect::{Effect, Tie};
use crate::facts::{Facts, Txn};
use crate::ids::{UserId, UserRef};
use crate::refusal::Refusal;
use crate::relation::NOT_INTERESTED;
use crate::users::rules::resolve_two;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// Authors in whom `user` is not interested, in ascending order of ids: at most
    /// [`limits::NOT_INTERESTED_MAX`](crate::limits::NOT_INTERESTED_MAX). Some may be deleted.
    #[must_use]
    pub fn not_interested(&self, user: UserId) -> Vec<UserId> {
        self.users_in(SetTable::NotInterested, user, Span::ALL)
    }
}

pub(crate) fn set(
    txn: &mut Txn<'_>,
    user: &UserRef,
    other: &UserRef,
    on: bool,
    effects: &mut Vec<Effect>,
) -> Outcome {
    let (user, other) = resolve_two(txn, user, other, Refusal::SelfNotInterested)?;
    if !on {
        txn.end_with_effects(&NOT_INTERESTED, (user, other), effects);
    } else if txn.facts().related(&NOT_INTERESTED, user, other).is_none() {
        txn.refuse_full(&NOT_INTERESTED, user)?;
        txn.relate(&NOT_INTERESTED, user, other, 0);
        effects.push(Effect::tie(user, other, Tie::NotInterested, true));
    }
    Ok(Done::InterestSet)
}
