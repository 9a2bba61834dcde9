//! Read-ahead for scheduled work: reads the rows that the writer will need into the cache of the store, because all
//! changes wait while the writer reads the disk.

use feed::accounts::GrantId;
use feed::limits::{ERASE_ROWS_MAX, RELISTED_POSTS_MAX, STORY_VIEWS_REMOVED};
use feed::media::MediaId;
use feed::relation::Relation;
use feed::schedule::ScheduledPost;
use feed::{
    Command, Due, DueWork, ErasurePhase, Facts, ListId, PollId, PostId, Reaction, ScheduledId,
    Span, UserId, Viewer, mentioned,
};
use rows::{NameTable, Rows, SetTable, Table};

/// Number of items whose rows are read before the writer removes them: the number that one command removes.
const READ_AHEAD: usize = ERASE_ROWS_MAX / 3;

/// Returns the command for the next part of due work. May block.
pub(super) fn command(facts: Facts<'_, impl Rows>, due: Due) -> Command {
    let from = facts.due_from(due).unwrap_or(0);
    match due.work {
        DueWork::Erase { user } => return erasure(facts, due, user),
        DueWork::RemoveStory { story } => {
            let _ = facts.stored_story(story);
            let limit = STORY_VIEWS_REMOVED as usize;
            drop(facts.story_views(story, Span { limit, ..Span::ALL }));
        }
        DueWork::EndMute { user, other } => {
            let _ = (facts.mute(user, other), user_rows(facts, user), facts.exists(other));
        }
        DueWork::EndPoll { post } => {
            let author = facts.stored_post(post).filter(|_| from == 0).map(|post| post.author);
            let voters = facts.notified_of_end(post, from);
            author.into_iter().chain(voters).for_each(|user| notice(facts, user, post));
        }
        DueWork::Publish { user, id } => scheduled(facts, user, id),
        DueWork::RemoveMedia { media } => {
            let _ = facts.media(media).map(|media| facts.media_space(media.owner));
        }
        DueWork::NotifyOfEdit { post } => {
            let users = facts.notified_of_edit(post, from).into_iter();
            users.for_each(|(user, _)| notice(facts, user, post));
        }
        DueWork::SweepReactions { post } => reactions(facts, post, from),
        DueWork::SweepVotes { poll } => {
            for (user, _) in facts.poll_votes(poll, from, ERASE_ROWS_MAX / 2) {
                drop(facts.votes_of(user, poll, 1));
            }
        }
        DueWork::Relist { user } => {
            let span = Span { low: from, limit: RELISTED_POSTS_MAX, ..Span::ALL };
            for (post, listed) in facts.posts_by(user, span) {
                if listed.visibility().is_open() {
                    drop(facts.stored_post(post));
                }
            }
        }
        DueWork::ExpireGrant { grant } => {
            let _ = facts.grant(grant).and_then(|grant| grant.app).map(|app| facts.app_uses(app));
        }
    }
    Command::DoDue(due)
}

/// Reads the row and the counts of a user.
fn user_rows(facts: Facts<'_, impl Rows>, user: UserId) {
    let _ = (facts.exists(user), facts.stored_counts(user));
}

/// Reads the rows for a notification of a post, including the blocks and mutes of its user.
fn notice(facts: Facts<'_, impl Rows>, user: UserId, post: PostId) {
    let _ = (facts.exists(user), Viewer::new(facts, Some(user)).notified(post));
    facts.prefetch_notification(user);
}

/// Reads the rows that are checked when a scheduled post is published, and those of the mentioned users.
fn scheduled(facts: Facts<'_, impl Rows>, user: UserId, id: ScheduledId) {
    let Some(ScheduledPost { draft, .. }) = facts.scheduled(user, id) else { return };
    let _ = (facts.account(user), facts.media_space(user), user_rows(facts, user));
    draft.content.media.iter().for_each(|media| drop(facts.media(*media)));
    let replied = draft.parent.and_then(|parent| {
        let _ = facts.post_counts(parent);
        facts.stored_post(parent).map(|post| post.author)
    });
    for mentioned in mentioned(&draft.content.text, user, replied, |handle| facts.by_handle(handle))
    {
        let _ = (facts.notice_state(mentioned), facts.is_blocked_between(user, mentioned));
    }
}

fn reactions(facts: Facts<'_, impl Rows>, post: PostId, from: u64) {
    for (_, reaction, user, stamp) in facts.reactions_to(post, from, ERASE_ROWS_MAX / 2) {
        match reaction {
            Reaction::Boost => {
                let _ = (facts.stored_post(PostId(stamp)), user_rows(facts, user));
            }
            _ => {
                let span = Span { low: stamp, high: stamp, ..Span::ALL };
                drop(facts.reactions_of(user, reaction, span));
            }
        }
    }
}

/// Returns the command that removes the next rows of a deleted user. The command lists the rows, so that the writer
/// does not scan removed rows and no outcome depends on ephemeral rows.
fn erasure(facts: Facts<'_, impl Rows>, due: Due, user: UserId) -> Command {
    let (mut phase, mut from) = facts.erasure(due).unwrap_or((ErasurePhase::first(), 0));
    let _ = (facts.erasing(), facts.exists(user));
    while let Some(table) = phase.table() {
        let rest = facts.items_in_phase(user, phase, from, READ_AHEAD);
        if let Some(first) = rest.first() {
            read_ahead(facts, user, table, &rest);
            return Command::EraseUser { user, phase, from: *first };
        }
        (phase, from) = (phase.next(), 0);
    }
    drop((facts.featured_tags(user), facts.followed_tags(user)));
    Command::EraseUser { user, phase, from }
}

fn read_ahead(facts: Facts<'_, impl Rows>, user: UserId, table: Table, items: &[u64]) {
    // Each item has two rows.
    let mut members_left = ERASE_ROWS_MAX / 2;
    for item in items {
        let reacted_to = |post, reaction| {
            let _ = (facts.reaction(user, post, reaction), facts.post_counts(post));
        };
        let reacted = |reaction| {
            let span = Span { low: *item, high: *item, ..Span::ALL };
            for (_, post) in facts.reactions_of(user, reaction, span) {
                reacted_to(post, reaction);
            }
        };
        match table {
            Table::Set(SetTable::AuthorPosts) => {
                drop(facts.reactions_left(PostId(*item), 0, 1));
                if let Some(boost) = facts.stored_post(PostId(*item)).and_then(|post| post.boost) {
                    reacted_to(boost.post, Reaction::Boost);
                }
            }
            Table::Set(SetTable::Favourites) => reacted(Reaction::Favourite),
            Table::Set(SetTable::Bookmarks) => reacted(Reaction::Bookmark),
            Table::Set(SetTable::Less) => reacted(Reaction::Less),
            Table::Set(SetTable::Pins) => reacted(Reaction::Pin),
            Table::Name(NameTable::List) => {
                let (list, first) = (ListId(*item), UserId(0));
                members_left -= facts.list_members_from(user, list, first, members_left).len();
            }
            Table::Name(NameTable::GrantOf) => drop(facts.grant(GrantId(*item))),
            Table::Name(NameTable::MediaOf) => drop(facts.media(MediaId(*item))),
            Table::Set(SetTable::Votes) => {
                let _ = (facts.vote(PollId(*item), user), facts.poll_counts(PollId(*item)));
            }
            Table::Name(NameTable::Scheduled) => drop(facts.scheduled(user, ScheduledId(*item))),
            Table::Set(SetTable::Mentions) => {
                let _ = facts.conversation_of(user, *item);
            }
            Table::Set(table) => {
                let Some(relation) = Relation::of_table(table) else { continue };
                let Ok(other) = u32::try_from(*item).map(UserId) else { continue };
                let _ = facts.exists(other);
                if relation.is_counted_by_items(table) {
                    let _ = facts.stored_counts(other);
                }
                match table {
                    SetTable::Followers => drop(facts.lists_with(other, user)),
                    SetTable::Following => drop(facts.lists_with(user, other)),
                    _ => {}
                }
            }
            _ => {}
        }
    }
}
