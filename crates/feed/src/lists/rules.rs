//! Lists of a user.

use rows::Stamp;

use crate::done::{Done, Outcome};
use crate::facts::Txn;
use crate::ids::UserId;
use crate::limits::{LIST_CHANGED_MAX, LIST_MEMBERS_MAX, LISTS_MAX};
use crate::lists::{List, ListChange, ListCommand, ListId};
use crate::refusal::Refusal;
use crate::users::rules::resolve;

pub(crate) fn change(txn: &mut Txn<'_>, stamp: Stamp, command: &ListCommand) -> Outcome {
    let user = resolve(txn, &command.user)?;
    match &command.change {
        ListChange::Create(list) => {
            if txn.facts().lists(user).len() >= LISTS_MAX {
                return Err(Refusal::TooManyLists);
            }
            let id = ListId(stamp.0);
            txn.put_list(user, id, Some(list));
            Ok(Done::ListSaved(id))
        }
        ListChange::Edit { list, title, replies } => {
            let before = find(txn, user, *list)?;
            let title = title.clone().unwrap_or_else(|| before.title.clone());
            let after = List { title, replies: replies.unwrap_or(before.replies) };
            if after != before {
                txn.put_list(user, *list, Some(&after));
            }
            Ok(Done::ListSaved(*list))
        }
        ListChange::Delete { list } => {
            find(txn, user, *list)?;
            for member in txn.facts().list_members(user, *list) {
                txn.put_list_member(user, *list, member, false);
            }
            txn.put_list(user, *list, None);
            Ok(Done::ListDeleted)
        }
        ListChange::Add { list, users } => add(txn, user, *list, users),
        ListChange::Remove { list, users } => {
            find(txn, user, *list)?;
            for other in users.iter().take(LIST_CHANGED_MAX) {
                if txn.facts().is_list_member(user, *list, *other) {
                    txn.put_list_member(user, *list, *other, false);
                }
            }
            Ok(Done::ListMembersChanged)
        }
    }
}

fn find(txn: &Txn<'_>, user: UserId, list: ListId) -> Result<List, Refusal> {
    txn.facts().list(user, list).ok_or(Refusal::ListNotFound)
}

fn add(txn: &mut Txn<'_>, user: UserId, list: ListId, users: &[UserId]) -> Outcome {
    find(txn, user, list)?;
    let mut new: Vec<UserId> = users.iter().copied().take(LIST_CHANGED_MAX).collect();
    new.sort_unstable();
    new.dedup();
    for other in &new {
        if !txn.facts().exists(*other) {
            return Err(Refusal::OtherNotFound);
        }
        if !txn.facts().follows(user, *other) && !rows::has_bug("list-without-follow") {
            return Err(Refusal::NotFollowed);
        }
    }
    let members = txn.facts().list_members(user, list);
    new.retain(|other| members.binary_search(other).is_err());
    if members.len() + new.len() > LIST_MEMBERS_MAX {
        return Err(Refusal::ListFull);
    }
    for other in new {
        txn.put_list_member(user, list, other, true);
    }
    Ok(Done::ListMembersChanged)
}
