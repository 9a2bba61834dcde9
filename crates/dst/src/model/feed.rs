//! Expected users, follows, posts, friends, stories and samples.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use feed::feeds::{FeedDefinition, FeedName};
use feed::limits::{
    ERASE_ROWS_MAX, ERASING_USERS_MAX, FRIENDS_MAX, SAMPLE_SETS_MAX, SET_LABELS_MAX,
    SET_SAMPLES_MAX, STORED_FEEDS_MAX,
};
use feed::quotes::QuotePolicy;
use feed::schedule::ScheduledPost;
use feed::{
    Bio, Command, Counts, Done, Due, DueWork, ErasurePhase, Handle, MarkedTimeline, Name, Outcome,
    ProfileFields, Reaction, Refusal, SampleId, UserEdit, UserId, UserRef, Visibility,
};

use rows::{NameTable, Table};

use super::accounts::Accounts;
use super::conversations::ModelMark;
use super::filters::ModelFilter;
use super::follows::ModelOptions;
use super::lists::ModelList;
use super::media::ModelMedia;
use super::ms_of;
use super::notices::{Cause, ModelEdit};
use super::posts::ModelPost;
use super::revisions::Revised;
use super::stories::ModelStory;
use super::versions::ModelVersion;

/// Expected user. The user's id is the index in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelUser {
    pub(crate) handle: String,
    pub(crate) name: String,
    pub(crate) bio: String,
    pub(crate) registered: u64,
    pub(crate) settings: ModelSettings,
    pub(crate) deleted: bool,
}

/// Settings of a user, except the name and the biography.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ModelSettings {
    /// Names and values of the fields.
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) bot: bool,
    pub(crate) undiscoverable: bool,
    pub(crate) indexable: bool,
    pub(crate) visibility: Visibility,
    pub(crate) sensitive: bool,
    pub(crate) quote_policy: QuotePolicy,
    pub(crate) language: Option<String>,
    pub(crate) locked: bool,
}

/// Expected state of the feed.
#[derive(Clone, Default)]
pub(crate) struct Feed {
    pub(crate) users: Vec<ModelUser>,
    pub(super) handles: HashMap<String, u32>,
    pub(crate) follows: BTreeSet<(u32, u32)>,
    /// Follow requests: (user, other).
    pub(crate) requests: BTreeSet<(u32, u32)>,
    /// Options of follows and follow requests that differ from the default.
    pub(crate) follow_options: BTreeMap<(u32, u32), ModelOptions>,
    /// Friendships, each in both directions.
    pub(crate) friends: BTreeSet<(u32, u32)>,
    /// Blocks: (user, other).
    pub(crate) blocks: BTreeSet<(u32, u32)>,
    /// Mutes: (user, other) -> whether mentions are hidden too, and the end.
    pub(crate) mutes: BTreeMap<(u32, u32), (bool, Option<u64>)>,
    /// Authors in whom users are not interested: (user, author).
    pub(crate) not_interested: BTreeSet<(u32, u32)>,
    /// Stored definitions of ranked feeds.
    pub(crate) stored_feeds: BTreeMap<String, String>,
    pub(crate) posts: BTreeMap<u64, ModelPost>,
    /// Boosts of deleted posts. The node may have removed their rows.
    pub(crate) orphans: BTreeMap<u64, ModelPost>,
    /// Last boosters of each post, most recent first. Some may have undone the boost.
    pub(super) boosters: BTreeMap<u64, Vec<u32>>,
    /// Marks of users in conversations, by the first post of the conversation.
    pub(super) marks: BTreeMap<u32, BTreeMap<u64, ModelMark>>,
    /// Earlier versions of each post, including deleted posts.
    pub(crate) versions: BTreeMap<u64, Vec<ModelVersion>>,
    pub(crate) stories: BTreeMap<u64, ModelStory>,
    /// Deleted users. The node may not have removed all their rows.
    pub(crate) erasing: BTreeMap<u32, (Reverse<usize>, u64)>,
    /// Set and label of each sample.
    pub(crate) samples: BTreeMap<u64, (String, String)>,
    pub(crate) accounts: Accounts,
    /// Stamp of each reaction: user, post and kind.
    pub(crate) reactions: BTreeMap<(u32, u64, Reaction), u64>,
    /// Stored notifications: (user, stamp) -> causing user, cause.
    pub(crate) notices: BTreeMap<(u32, u64), (u32, Cause)>,
    /// Dismissed mentions and posts by followed users: (user, post).
    pub(crate) dismissed: BTreeSet<(u32, u64)>,
    /// Mentions that an edit added and notified: (user, post) -> stamp of the edit.
    pub(crate) mentioned_since: BTreeMap<(u32, u64), u64>,
    /// Stamp up to which a user has cleared notifications.
    pub(crate) cleared: BTreeMap<u32, u64>,
    /// First posts of the threads that users mute, in the order in which they were muted.
    pub(crate) muted_threads: BTreeMap<u32, Vec<u64>>,
    /// Last edits of posts about which the node still has to notify boosters.
    pub(crate) edits: BTreeMap<u64, ModelEdit>,
    /// Boosts and quotes by deleted users: (user, post). The node may have removed them.
    pub(super) erased_boosts: BTreeSet<(u32, u64)>,
    /// Notifications of edits that exist only if boosts by deleted users still existed when the post was edited.
    pub(crate) unsure: Vec<((u32, u64), (u32, Cause))>,
    /// Revisions that clients have read, with the state that they read.
    pub(crate) revisions: BTreeMap<u64, Revised>,
    /// Notes: (author, subject) -> text.
    pub(crate) notes: BTreeMap<(u32, u32), String>,
    /// Featured hashtags of profiles: (user, hashtag) -> stamp.
    pub(crate) featured_tags: BTreeMap<(u32, String), u64>,
    /// Filters by owner and id.
    pub(crate) filters: BTreeMap<(u32, u64), ModelFilter>,
    /// Followed hashtags: (user, hashtag) -> stamp.
    pub(crate) followed_tags: BTreeMap<(u32, String), u64>,
    /// Lists by owner and id.
    pub(crate) lists: BTreeMap<(u32, u64), ModelList>,
    /// Votes: (poll, user) -> options.
    pub(crate) votes: BTreeMap<(u64, u32), Vec<usize>>,
    /// Ended polls by post: the end of the poll, and the first user who was not notified, if any.
    pub(super) ended: BTreeMap<u64, (u64, Option<u32>)>,
    /// Scheduled posts by author and id.
    pub(crate) scheduled: BTreeMap<(u32, u64), ScheduledPost>,
    /// Pictures by id.
    pub(crate) media: BTreeMap<u64, ModelMedia>,
    /// Markers: (user, timeline) -> last read item, version, stamp of the change.
    pub(crate) markers: BTreeMap<(u32, MarkedTimeline), (u64, u32, u64)>,
}

impl Feed {
    pub(super) fn apply(&mut self, stamp: u64, command: &Command) -> Outcome {
        match command {
            Command::Register { handle, name, bio } => self.register(stamp, handle, name, bio),
            Command::EditUser(edit) => self.edit_user(edit),
            Command::SetNote { user, other, note } => self.set_note(user, other, note),
            Command::Media(command) => self.change_media(stamp, command),
            Command::Filter(command) => self.change_filters(stamp, command),
            Command::List(command) => self.change_lists(stamp, command),
            Command::Conversation(update) => self.update_conversation(stamp, update),
            Command::UnreadConversation { user, first, last } => {
                self.unread_conversation(stamp, user, (first.0, last.0))
            }
            Command::SetMarkers(update) => self.set_markers(stamp, update),
            Command::FeatureTag { user, tag, on } => self.feature_tag(stamp, user, tag, *on),
            Command::FollowTag { user, tag, on } => self.follow_tag(stamp, user, tag, *on),
            Command::Follow { user, other } => self.follow(stamp, user, other),
            Command::FollowWith(new) => self.follow_with(stamp, new),
            Command::FollowMany { user, others } => self.follow_many(user, others),
            Command::Unfollow { user, other } => self.unfollow(user, other),
            Command::AnswerRequest { user, other, accept } => {
                self.answer(stamp, (user, other), *accept)
            }
            Command::Befriend { user, other } => self.befriend(user, other),
            Command::Unfriend { user, other } => self.unfriend(user, other),
            Command::Publish(new) => self.publish(stamp, new, &[]),
            Command::Edit { post, patch } => self.edit(stamp, *post, patch),
            Command::Vote { user, post, choices } => self.vote(stamp, user, *post, *choices),
            Command::Schedule(command) => self.change_schedule(stamp, command),
            Command::DeletePost { post } => self.delete_post(*post),
            Command::PostStory { author, text, life } => {
                self.post_story(stamp, author, text, *life)
            }
            Command::DeleteStory { story } => self.delete_story(stamp, *story),
            Command::ViewStory { story, viewer } => self.view(stamp, *story, viewer),
            Command::AddSample { set, label, .. } => {
                self.add_sample(stamp, set.as_str(), label.as_str())
            }
            Command::DeleteSample { sample } => self.delete_sample(*sample),
            Command::DeleteUser { user } => self.delete_user(user),
            Command::Account(command) => self.account(stamp, command),
            Command::Block { .. }
            | Command::Unblock { .. }
            | Command::Mute { .. }
            | Command::Unmute { .. }
            | Command::NotInterested { .. } => self.hide(stamp, command),
            Command::React { user, post, reaction, on } => {
                let user = self.resolve(user)?;
                self.set_reaction(stamp, (user, post.0, *reaction), *on)
            }
            Command::ClearNotifications { .. }
            | Command::DismissNotification { .. }
            | Command::MuteThread { .. } => self.change_notices(stamp, command),
            Command::SetFeed { name, definition } => self.set_feed(name, definition.as_ref()),
            Command::If(condition) => {
                self.check_condition(stamp, condition)?;
                self.apply(stamp, &condition.command())
            }
            Command::DoDue(_) | Command::EraseUser { .. } => {
                unreachable!("clients do not send this command")
            }
        }
    }

    fn set_feed(&mut self, name: &FeedName, definition: Option<&FeedDefinition>) -> Outcome {
        let name = name.as_str().to_owned();
        match definition {
            None => drop(self.stored_feeds.remove(&name)),
            Some(definition) => {
                let is_new = !self.stored_feeds.contains_key(&name);
                if is_new && self.stored_feeds.len() >= STORED_FEEDS_MAX {
                    return Err(Refusal::TooManyFeeds);
                }
                self.stored_feeds.insert(name, definition.as_str().to_owned());
            }
        }
        Ok(Done::FeedSet)
    }

    fn register(&mut self, stamp: u64, handle: &Handle, name: &Name, bio: &Bio) -> Outcome {
        let handle = handle.as_str().to_owned();
        if self.handles.contains_key(&handle) {
            return Err(Refusal::HandleTaken);
        }
        let id = self.users.len() as u32;
        self.handles.insert(handle.clone(), id);
        self.users.push(ModelUser {
            handle,
            name: name.as_str().to_owned(),
            bio: bio.as_str().to_owned(),
            registered: stamp,
            settings: ModelSettings::default(),
            deleted: false,
        });
        Ok(Done::Registered(UserId(id)))
    }

    fn edit_user(&mut self, edit: &UserEdit) -> Outcome {
        let id = self.resolve(&edit.user)?;
        let user = &mut self.users[id as usize];
        edit.name.iter().for_each(|name| user.name = name.as_str().to_owned());
        edit.bio.iter().for_each(|bio| user.bio = bio.as_str().to_owned());
        let settings = &mut user.settings;
        if let Some(fields) = &edit.fields {
            settings.fields = texts(fields);
        }
        edit.bot.iter().for_each(|bot| settings.bot = *bot);
        edit.discoverable.iter().for_each(|yes| settings.undiscoverable = !yes);
        edit.indexable.iter().for_each(|indexable| settings.indexable = *indexable);
        edit.visibility.iter().for_each(|visibility| settings.visibility = *visibility);
        edit.quote_policy.iter().for_each(|policy| settings.quote_policy = *policy);
        edit.sensitive.iter().for_each(|sensitive| settings.sensitive = *sensitive);
        if let Some(language) = &edit.language {
            settings.language = language.as_ref().map(|code| code.as_str().to_owned());
        }
        edit.locked.iter().for_each(|locked| settings.locked = *locked);
        Ok(Done::Edited(UserId(id)))
    }

    pub(crate) fn resolve_other(&self, other: &UserRef) -> Result<u32, Refusal> {
        self.resolve(other).map_err(|_| Refusal::OtherNotFound)
    }

    pub(crate) fn resolve(&self, user: &UserRef) -> Result<u32, Refusal> {
        let known = match user {
            UserRef::Id(UserId(id)) => Some(*id).filter(|id| (*id as usize) < self.users.len()),
            UserRef::Handle(handle) => self.handles.get(handle.as_str()).copied(),
        };
        known.filter(|id| !self.users[*id as usize].deleted).ok_or(Refusal::UserNotFound)
    }

    /// Deletes a user. The handle stays reserved.
    fn delete_user(&mut self, user: &UserRef) -> Outcome {
        let user = self.resolve(user)?;
        if self.erasing.len() >= ERASING_USERS_MAX as usize {
            return Err(Refusal::TooManyDeletions);
        }
        self.users[user as usize].deleted = true;
        self.accounts.forget(user);
        self.erasing.insert(user, (Reverse(usize::MAX), 0));
        let of_user = self.posts.values().filter(|post| post.author == user);
        let quoted: Vec<_> = of_user.filter_map(|post| Some((user, post.quote?.post))).collect();
        self.posts.retain(|_, post| post.author != user);
        self.orphans.retain(|_, post| post.author != user);
        self.stories.retain(|_, story| story.author != user);
        for story in self.stories.values_mut() {
            story.viewers.remove(&user);
        }
        self.follows.retain(|(one, other)| *one != user && *other != user);
        self.requests.retain(|(one, other)| *one != user && *other != user);
        self.friends.retain(|(one, other)| *one != user && *other != user);
        self.blocks.retain(|(one, other)| *one != user && *other != user);
        self.mutes.retain(|(one, other), _| *one != user && *other != user);
        self.not_interested.retain(|(one, other)| *one != user && *other != user);
        let boosts = self.reactions.keys().filter(|(_, _, kind)| *kind == Reaction::Boost);
        let of_user = boosts.filter(|(one, ..)| *one == user).map(|(one, post, _)| (*one, *post));
        self.erased_boosts.extend(of_user);
        self.erased_boosts.extend(quoted);
        self.reactions.retain(|(one, ..), _| *one != user);
        self.muted_threads.remove(&user);
        self.markers.retain(|(one, _), _| *one != user);
        self.notes.retain(|(one, other), _| *one != user && *other != user);
        self.filters.retain(|(one, _), _| *one != user);
        self.votes.retain(|(_, one), _| *one != user);
        self.scheduled.retain(|(one, _), _| *one != user);
        self.leave_lists();
        self.forget_options();
        self.forget_media();
        self.forget_reactions();
        self.forget_votes();
        Ok(Done::UserDeleted)
    }

    /// Applies scheduled work of the node. Ignores work that only removes rows that no read shows.
    pub(super) fn do_due(&mut self, stamp: u64, due: Due) {
        if due.at_ms > ms_of(stamp) {
            return;
        }
        match due.work {
            DueWork::EndMute { user, other } => {
                let pair = (user.0, other.0);
                if self.mutes.get(&pair).is_some_and(|(_, ends_ms)| *ends_ms == Some(due.at_ms)) {
                    self.mutes.remove(&pair);
                }
            }
            DueWork::EndPoll { post } => self.end_poll(stamp, post, due.at_ms),
            DueWork::Publish { user, id } => self.publish_due(stamp, (user, id), due.at_ms),
            DueWork::RemoveMedia { media } => self.expire_media(media.0, due.at_ms),
            DueWork::NotifyOfEdit { post } => self.notify_of_edit(stamp, post.0, due.at_ms),
            DueWork::ExpireGrant { grant } => self.accounts.expire(grant.0, due.at_ms),
            DueWork::RemoveStory { .. }
            | DueWork::SweepReactions { .. }
            | DueWork::SweepVotes { .. }
            | DueWork::Relist { .. }
            | DueWork::Erase { .. } => {}
        }
    }

    pub(super) fn erased(&mut self, user: UserId, phase: ErasurePhase, from: u64) {
        let Some(progress) = self.erasing.get_mut(&user.0) else { return };
        let at = (Reverse(phase.phases_left()), from);
        if at < *progress {
            return;
        }
        *progress = at;
        if phase == ErasurePhase::LAST {
            self.erasing.remove(&user.0);
            self.erased_boosts.retain(|(one, _)| *one != user.0);
        }
        if phase.table() == Some(Table::Name(NameTable::GrantOf)) {
            let grants = self.accounts.grants.range(from..);
            let of_user = grants.filter(|(_, grant)| grant.user == Some(user.0)).map(|(id, _)| *id);
            let removed: Vec<u64> = of_user.take(ERASE_ROWS_MAX / 8).collect();
            self.accounts.grants.retain(|id, _| !removed.contains(id));
        }
    }

    pub(super) fn two(
        &self,
        user: &UserRef,
        other: &UserRef,
        same: Refusal,
    ) -> Result<(u32, u32), Refusal> {
        let (user, other) = (self.resolve(user)?, self.resolve_other(other)?);
        if user == other { Err(same) } else { Ok((user, other)) }
    }

    fn unfriend(&mut self, user: &UserRef, other: &UserRef) -> Outcome {
        let (user, other) = self.two(user, other, Refusal::SelfFriend)?;
        self.friends.remove(&(user, other));
        self.friends.remove(&(other, user));
        Ok(Done::Unfriended)
    }

    fn delete_sample(&mut self, sample: SampleId) -> Outcome {
        if sample.is_built_in() {
            return Err(Refusal::SampleBuiltIn);
        }
        self.samples.remove(&sample.0).ok_or(Refusal::SampleNotFound)?;
        Ok(Done::SampleDeleted)
    }

    fn befriend(&mut self, user: &UserRef, other: &UserRef) -> Outcome {
        let (user, other) = self.two(user, other, Refusal::SelfFriend)?;
        self.refuse_blocked((user, other))?;
        let full = |user| self.friends_of(user).count() >= FRIENDS_MAX as usize;
        if !self.friends.contains(&(user, other)) && (full(user) || full(other)) {
            return Err(Refusal::TooManyFriends);
        }
        self.friends.insert((user, other));
        self.friends.insert((other, user));
        Ok(Done::Befriended)
    }

    fn add_sample(&mut self, stamp: u64, set: &str, label: &str) -> Outcome {
        let of_set = || self.samples.values().filter(|(of, _)| of == set);
        if of_set().next().is_none() {
            let sets: BTreeSet<&String> = self.samples.values().map(|(set, _)| set).collect();
            if sets.len() >= SAMPLE_SETS_MAX {
                return Err(Refusal::TooManySets);
            }
        }
        if of_set().count() >= SET_SAMPLES_MAX as usize {
            return Err(Refusal::SetFull);
        }
        let labels: BTreeSet<&String> = of_set().map(|(_, label)| label).collect();
        if labels.len() >= SET_LABELS_MAX as usize && !labels.iter().any(|known| *known == label) {
            return Err(Refusal::TooManyLabels);
        }
        self.samples.insert(stamp, (set.to_owned(), label.to_owned()));
        Ok(Done::SampleAdded { sample: SampleId(stamp) })
    }

    pub(super) fn following(&self, user: u32) -> impl Iterator<Item = u32> {
        self.follows.range((user, 0)..=(user, u32::MAX)).map(|(_, other)| *other)
    }

    fn friends_of(&self, user: u32) -> impl Iterator<Item = u32> {
        self.friends.range((user, 0)..=(user, u32::MAX)).map(|(_, friend)| *friend)
    }

    /// Counts of a user. They include boosts of deleted posts that the node still stores.
    pub(crate) fn counts(&self, user: u32, orphans: &[u64]) -> Counts {
        let orphans = orphans.iter().map(|id| &self.orphans[id]);
        let posts = self.posts.values().chain(orphans).filter(|post| post.author == user);
        let is_closed = |post: &&ModelPost| {
            matches!(post.visibility, Visibility::Followers | Visibility::Direct)
        };
        Counts {
            closed: posts.clone().filter(is_closed).count() as u32,
            posts: posts.count() as u32,
            followers: self.follows.iter().filter(|(_, other)| *other == user).count() as u32,
            following: self.following(user).count() as u32,
            friends: self.friends_of(user).count() as u32,
            blocks: self.blocks.iter().filter(|(one, _)| *one == user).count() as u32,
            mutes: self.mutes.keys().filter(|(one, _)| *one == user).count() as u32,
            notes: self.notes.keys().filter(|(one, _)| *one == user).count() as u32,
            requests: self.requests.iter().filter(|(_, other)| *other == user).count() as u32,
            requested: self.requests.iter().filter(|(one, _)| *one == user).count() as u32,
            not_interested: self.not_interested.iter().filter(|(one, _)| *one == user).count()
                as u32,
        }
    }
}

/// Names and values of fields.
pub(crate) fn texts(fields: &ProfileFields) -> Vec<(String, String)> {
    let fields = fields.as_slice().iter();
    fields.map(|field| (field.name().to_owned(), field.value().to_owned())).collect()
}
