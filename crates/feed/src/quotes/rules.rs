//! Rules of quotes: the check of a draft, the notification of the quoted author, and patches that revoke a quote or change
//! the quote policy.

use super::Quote;
use crate::effect::Effect;
use crate::facts::Txn;
use crate::ids::{PostId, UserId};
use crate::notifications::Stored;
use crate::posts::content::Patch;
use crate::posts::draft::Draft;
use crate::posts::{Post, Visibility};
use crate::refusal::Refusal;
use crate::visible::Viewer;

/// Finds the quote of a draft by `author`, and the visibility of the post. A draft that names a boost quotes the
/// boosted post. A quote of a post for followers is visible to followers at most.
///
/// # Errors
/// [`Refusal::QuotedNotFound`] if the author does not see the quoted post, and [`Refusal::QuoteNotAllowed`].
pub(crate) fn check(
    txn: &Txn<'_>,
    author: UserId,
    draft: &Draft,
) -> Result<(Option<Quote>, Visibility), Refusal> {
    let Some(named) = draft.quote else { return Ok((None, draft.visibility)) };
    let (facts, viewer) = (txn.facts(), Viewer::new(txn.facts(), Some(author)));
    let id = facts.post(named).map(|post| post.boosted_or(named));
    let found = id.and_then(|id| Some((id, facts.post(id)?)));
    let found = found.filter(|(_, quoted)| viewer.visible(quoted));
    let (post, quoted) = found.ok_or(Refusal::QuotedNotFound)?;
    if !viewer.may_quote(&quoted) {
        return Err(Refusal::QuoteNotAllowed);
    }
    let visibility = match quoted.visibility {
        Visibility::Followers => draft.visibility.max(quoted.visibility),
        _ => draft.visibility,
    };
    Ok((Some(Quote { post, is_revoked: false }), visibility))
}

/// Notifies the author of the quoted post, if they may see the new post. A quoted author whom the new post mentions
/// gets only the notification of the mention.
pub(crate) fn announce(txn: &mut Txn<'_>, id: PostId, post: &Post, effects: &mut Vec<Effect>) {
    let Some(Post { author: user, .. }) = quoted(txn, post) else { return };
    let is_told = user == post.author || post.mentions.contains(&user);
    if !is_told && Viewer::new(txn.facts(), Some(user)).receives_updates_of(post) {
        txn.put_notification(user, id.0, Stored::Quote(post.author));
        effects.push(Effect::Notified { user });
    }
}

/// Revokes the quote of a post, or changes who may quote it, as a patch says. Neither counts as an edit.
pub(crate) fn change(post: &mut Post, patch: &Patch) {
    if let Some(quote) = post.quote.as_mut().filter(|_| patch.revoke_quote) {
        quote.is_revoked = true;
    }
    post.quote_policy = patch.quote_policy.unwrap_or(post.quote_policy);
}

/// Removes the notification of a quote that is revoked or deleted.
pub(crate) fn forget_notice(txn: &mut Txn<'_>, id: PostId, post: &Post) {
    if let Some(quoted) = quoted(txn, post) {
        txn.remove_notification(quoted.author, id.0);
    }
}

fn quoted(txn: &Txn<'_>, post: &Post) -> Option<Post> {
    txn.facts().quoted_post(&post.quote?)
}
