//! Import of users, follows and friendships.

use feed::accounts::{Account, AccountState, Email, PasswordHash, Role};
use feed::limits::{USER_POSTS_MAX, USERS_MAX};
use feed::media::ProfilePicture;
use feed::relation::{RELATIONS, Relation, Total};
use feed::whole::{CONVERSATION_MARKS, FILTERS, MUTED_THREADS};
use feed::{
    Bio, Counts, DueWork, FEATURED_TAGS, FOLLOWED_TAGS, Handle, Language, Marker, Markers, Name,
    PostDefaults, ProfileFields, Refusal, Tag, UserId, UserRef, UserTags, Visibility, write,
};
use hashbrown::{HashMap, HashSet};
use rows::{SetTable, Stamp, Totals};
use store::Loader;

use super::Wrong;
use super::conversations::{marks, muted_threads};
use super::filters::filters;
use super::follow_options::AllOptions;
use super::ids::Ids;
use super::lists::Lists;
use super::media::Pictures;
use crate::export::lines::{Id, Related, Who};
use crate::export::user_lines::{self, User};

/// Users that were read, in memory: their handles and counts.
#[derive(Default)]
pub(super) struct Users {
    ids: HashMap<Handle, UserId>,
    counts: Vec<Counts>,
    deleted: HashSet<UserId>,
    accounts: u32,
    disabled: u32,
    pending: u32,
    emails: HashSet<Email>,
    /// Blocks as (user, blocked user), 8 bytes each. Neither user may follow the other or be a friend.
    blocks: HashSet<(UserId, UserId)>,
    /// Requests as (user, other user), 8 bytes each. The user must not follow the other user yet.
    requests: HashSet<(UserId, UserId)>,
    /// Whether lines of follows were read.
    has_follows: bool,
    /// Whether lines of follows, requests or friends were read.
    pub(super) has_relations: bool,
    pub(super) lists: Lists,
    pub(super) options: AllOptions,
    /// First user who exceeds a limit of relations.
    above: Option<(UserId, &'static Relation, u32)>,
}

/// Whether the line has data that a deleted user cannot have, in addition to profile and account.
fn has_more(line: &User<'_>) -> bool {
    let has_tags = !line.featured_tags.is_empty() || !line.followed_tags.is_empty();
    let has_pictures = line.avatar.is_some() || line.header.is_some();
    let has_markers = line.home_marker.is_some() || line.notifications_marker.is_some();
    let has_choices = !line.filters.is_empty() || !line.muted_threads.is_empty();
    let has_marks = has_markers || !line.conversations.is_empty();
    line.locked || has_tags || has_pictures || has_choices || has_marks
}

impl Users {
    pub(super) fn add(
        &mut self,
        loader: &mut Loader,
        (ids, pictures): (&mut Ids, &mut Pictures),
        line: &User<'_>,
    ) -> Result<(), Wrong> {
        let next = u32::try_from(self.counts.len()).ok().filter(|next| *next < USERS_MAX);
        let id = UserId(next.ok_or(Refusal::Full)?);
        if let Some(given) = line.id.filter(|given| *given != id.0) {
            return Err(format!("the id of the next user must be {}, not {given}", id.0).into());
        }
        let handle = Handle::parse(&line.handle)?;
        let registered = ids.at_or_now(line.registered)?;
        let user = profile(feed::User::of(handle.clone(), registered), line)?;
        if line.deleted {
            if user != feed::User::of(handle.clone(), registered) || has_more(line) {
                return Err("a deleted user can only have a handle".into());
            }
            if line.account.is_some() {
                return Err("a deleted user cannot have an account".into());
            }
            self.deleted.insert(id);
            write::deleted(loader, id);
        }
        if line.locked {
            write::locked(loader, id, true);
        }
        if let Some(line) = &line.account {
            let account = account(ids, line)?;
            if let Some(email) = &account.email
                && !self.emails.insert(email.clone())
            {
                return Err(Refusal::EmailTaken.into());
            }
            self.accounts += 1;
            self.disabled += u32::from(account.state == AccountState::Disabled);
            self.pending += u32::from(account.state == AccountState::Pending);
            write::account(loader, id, &account);
            if account.state == AccountState::Disabled {
                write::due(loader, DueWork::Relist { user: id }.at(0), Some(0));
            }
        }
        let markers = markers(ids, line)?;
        if markers != Markers::default() {
            write::markers(loader, id, markers);
        }
        let mut picture =
            |of, line| pictures.of_profile(loader, ids, (id, of), Option::as_ref(line));
        let avatar = picture(ProfilePicture::Avatar, &line.avatar)?;
        let header = picture(ProfilePicture::Header, &line.header)?;
        let user = feed::User { avatar, header, ..user };
        for (all, lines) in
            [(FEATURED_TAGS, &line.featured_tags), (FOLLOWED_TAGS, &line.followed_tags)]
        {
            for (tag, since) in tags(ids, lines, &all)? {
                all.put(loader, id, &tag, Some(since));
            }
        }
        FILTERS.put(loader, id, &filters(ids, &line.filters)?);
        CONVERSATION_MARKS.put(loader, id, &marks(ids, &line.conversations)?);
        MUTED_THREADS.put(loader, id, &muted_threads(ids, &line.muted_threads)?);
        write::user(loader, id, &user);
        write::handle(loader, &handle, id);
        if self.ids.insert(handle, id).is_some() {
            return Err(Refusal::HandleTaken.into());
        }
        self.counts.push(Counts::default());
        Ok(())
    }

    /// Returns a user of an earlier line, who may be deleted.
    pub(super) fn find_any(&self, Who(user): &Who) -> Result<UserId, Wrong> {
        let found = match user {
            UserRef::Id(id) => Some(*id).filter(|id| (id.0 as usize) < self.counts.len()),
            UserRef::Handle(handle) => self.ids.get(handle).copied(),
        };
        found.ok_or_else(|| match user {
            UserRef::Id(id) => format!("no earlier line has a user with the id {}", id.0).into(),
            UserRef::Handle(handle) => {
                format!("no earlier line has the user {}", handle.as_str()).into()
            }
        })
    }

    /// Returns a user of an earlier line who is not deleted.
    pub(super) fn find(&self, who: &Who) -> Result<UserId, Wrong> {
        let user = self.find_any(who)?;
        match self.deleted.contains(&user) {
            true => Err(format!("the user {} is deleted", user.0).into()),
            false => Ok(user),
        }
    }

    /// Returns the user who has a handle, unless deleted.
    pub(super) fn by_handle(&self, handle: &Handle) -> Option<UserId> {
        self.ids.get(handle).copied().filter(|user| !self.deleted.contains(user))
    }

    pub(super) fn is_deleted(&self, user: UserId) -> bool {
        self.deleted.contains(&user)
    }

    pub(super) fn count_post(&mut self, author: UserId, post: Visibility) -> Result<(), Wrong> {
        let counts = self.of(author);
        if counts.posts >= USER_POSTS_MAX {
            return Err(Refusal::TooManyPosts.into());
        }
        counts.posts += 1;
        counts.closed += u32::from(!post.is_open());
        Ok(())
    }

    pub(super) fn of(&mut self, user: UserId) -> &mut Counts {
        let Some(counts) = self.counts.get_mut(user.0 as usize) else {
            unreachable!("users are found before they are counted")
        };
        counts
    }

    /// Refuses a relation of two users of whom one blocks the other.
    fn refuse_blocked(&mut self, user: UserId, other: UserId) -> Result<(), Wrong> {
        self.has_relations = true;
        let are_blocked =
            self.blocks.contains(&(user, other)) || self.blocks.contains(&(other, user));
        match are_blocked {
            true => {
                Err(format!("one of the users {} and {} blocks the other", user.0, other.0).into())
            }
            false => Ok(()),
        }
    }

    /// Adds relations of a user; returns their number.
    pub(super) fn relate(&mut self, loader: &mut Loader, line: &Related<'_>) -> Result<u64, Wrong> {
        let relation = RELATIONS.into_iter().find(|relation| relation.line == Some(&line.kind));
        let relation = relation.ok_or("there is no such relation")?;
        let is_block = relation.forward == SetTable::Blocks;
        if is_block && self.has_relations {
            return Err("blocks must come before follows and friends".into());
        }
        self.has_follows |= relation.before().is_some();
        if self.has_follows && relation.becomes.is_some() {
            return Err("requests must come before follows".into());
        }
        let user = self.find(&line.user)?;
        for other in &line.users {
            let other = self.find(other)?;
            if other == user {
                return Err(relation.to_self.into());
            }
            if relation.becomes.is_some() {
                self.requests.insert((user, other));
            } else if relation.before().is_some() && self.requests.contains(&(user, other)) {
                let what =
                    format!("the user {} both asks to follow {} and follows", user.0, other.0);
                return Err(what.into());
            }
            if !relation.is_across_blocks {
                self.refuse_blocked(user, other)?;
                self.lists.related(relation, user, other);
                self.options.related(relation, user, other);
            }
            if is_block && !self.blocks.insert((user, other)) {
                return Err(format!("the user {} blocks {} twice", user.0, other.0).into());
            }
            if !Loader::counts_items(relation.forward) {
                self.count(relation, user, other)?;
            }
            relation.put(loader, user, other, Some(0));
        }
        Ok(line.users.len() as u64)
    }

    /// Counts a relation.
    pub(super) fn count(
        &mut self,
        relation: &Relation,
        user: UserId,
        other: UserId,
    ) -> Result<(), Wrong> {
        for (user, (table, count)) in [user, other].into_iter().zip(relation.counts()) {
            let count = count(self.of(user));
            if table == relation.forward && *count >= relation.max {
                return Err(relation.too_many.into());
            }
            *count += 1;
        }
        Ok(())
    }

    /// Counts the items of a set of users.
    pub(super) fn count_set(
        &mut self,
        totals: &mut Totals,
        table: SetTable,
        user: u32,
        items: usize,
    ) {
        let user = UserId(user);
        let number = u32::try_from(items).unwrap_or(u32::MAX);
        let relation = Relation::of_table(table);
        let count = relation.and_then(|it| Some((it, it.counts().find(|(of, _)| *of == table)?)));
        let Some((relation, (_, count))) = count else { return };
        *count(self.of(user)) = number;
        if table != relation.forward {
            return;
        }
        if let Total::Shown(total) | Total::Rows(total) = relation.total() {
            *total(totals) += items as u64;
        }
        let before = relation.before().map_or(0, |before| *before.count(self.of(user)));
        let all = number.saturating_add(before);
        if all > relation.max && self.above.is_none() {
            self.above = Some((user, relation, all));
        }
    }

    /// Writes the counts.
    ///
    /// # Errors
    /// A user exceeds the limit of follows or friends.
    pub(super) fn finish(self, loader: &mut Loader, totals: &mut Totals) -> Result<(), Wrong> {
        if let Some((user, relation, items)) = self.above {
            let (user, most) = (user.0, relation.max);
            let kinds = [Some(relation), relation.before()].into_iter().flatten();
            let kinds: Vec<_> = kinds.filter_map(|it| Some(format!("`{}`", it.line?))).collect();
            let kinds = kinds.join(" and ");
            let what =
                format!("the user {user} has {items} users of {kinds}; the maximum is {most}");
            return Err(what.into());
        }
        self.lists.finish()?;
        self.options.finish(loader)?;
        totals.friendships /= 2;
        totals.users_deleted = self.deleted.len() as u32;
        (totals.accounts, totals.accounts_disabled) = (self.accounts, self.disabled);
        totals.accounts_pending = self.pending;
        for (id, counts) in (0..).map(UserId).zip(self.counts) {
            totals.users += 1;
            totals.posts_closed += u64::from(counts.closed);
            if counts != Counts::default() {
                write::counts(loader, id, counts);
            }
        }
        Ok(())
    }
}

/// Adds the fields of a line to a user, except the handle and the time.
fn profile(user: feed::User, line: &User<'_>) -> Result<feed::User, Wrong> {
    let fields = line.fields.iter().map(|field| (&*field.name, &*field.value));
    Ok(feed::User {
        name: Name::parse(&line.name)?,
        bio: Bio::parse(&line.bio)?,
        fields: ProfileFields::parse(fields)?,
        bot: line.bot,
        undiscoverable: line.discoverable == Some(false),
        indexable: line.indexable,
        defaults: line.defaults.as_ref().map(defaults).transpose()?.unwrap_or_default(),
        ..user
    })
}

fn markers(ids: &mut Ids, line: &User<'_>) -> Result<Markers, Wrong> {
    let mut marker = |line: &Option<user_lines::Marker>| {
        let Some(user_lines::Marker { last_read, version, updated }) = line else {
            return Ok::<_, Wrong>(None);
        };
        let updated = match updated {
            Some(id) => ids.used(*id)?,
            None => ids.at_or_now(None)?,
        };
        Ok(Some(Marker { last_read: last_read.0, version: *version, updated }))
    };
    Ok(Markers {
        home: marker(&line.home_marker)?,
        notifications: marker(&line.notifications_marker)?,
    })
}

/// Checks the hashtags of a user and their times. Apps identify a hashtag by its time, so the times must differ.
fn tags(
    ids: &mut Ids,
    given: &[user_lines::UserTag<'_>],
    all: &UserTags,
) -> Result<Vec<(Tag, Stamp)>, Wrong> {
    if given.len() > all.max {
        return Err(all.too_many.into());
    }
    let mut shown: Vec<(Tag, Stamp)> = Vec::new();
    for one in given {
        let tag = Tag::parse(&one.tag)?;
        let id = match one.id {
            Some(id) => id,
            None => Id(ids.at_or_now(None)?.after(shown.len() as u64).0),
        };
        let since = ids.used(id)?;
        if shown.iter().any(|(other, id)| *other == tag || *id == since) {
            return Err(format!("the hashtag {} or its id occurs twice", tag.as_str()).into());
        }
        shown.push((tag, since));
    }
    Ok(shown)
}

fn defaults(line: &user_lines::Defaults<'_>) -> Result<PostDefaults, Wrong> {
    Ok(PostDefaults {
        visibility: line.visibility,
        sensitive: line.sensitive,
        language: line.language.as_deref().map(Language::parse).transpose()?,
        quote_policy: line.quote_policy,
    })
}

fn account(ids: &mut Ids, line: &user_lines::Account<'_>) -> Result<Account, Wrong> {
    let email = line.email.as_deref().map(Email::parse).transpose()?;
    Ok(Account {
        email,
        password: PasswordHash::parse(&line.password)?,
        role: Role::named(&line.role).ok_or("a role must be user, moderator or admin")?,
        state: AccountState::named(&line.state)
            .ok_or("the state of an account must be pending, active or disabled")?,
        created: ids.at_or_now(line.created)?,
    })
}
