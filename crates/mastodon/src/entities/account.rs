//! Entities `Account` and `CredentialAccount`.

use feed::accounts::Role;
use feed::{
    Counts, Handle, Language, Post, PostDefaults, PostId, ProfileField, ProfileFields, User, UserId,
};
use node::{Entity, EntityKey, Subject};
use serde::Serialize;
use serde_json::{Value, json};

use super::json::{Json, append, field};
use super::status::visibility_name;
use super::time::day;
use super::{Entities, Renderer, html};
use crate::api::pictures::{NO_AVATAR, NO_HEADER};

/// Size of [`ProfileParts`] including its texts, in bytes.
const PROFILE_PARTS_BYTES: usize = size_of::<ProfileParts>() + 32;

/// Part of the entity `Account` that depends only on the profile. In the JSON, the counts come after this part.
#[derive(Serialize)]
struct ProfilePart<'a> {
    id: String,
    username: &'a str,
    acct: &'a str,
    display_name: &'a str,
    note: String,
    url: String,
    uri: String,
    avatar: &'a str,
    avatar_static: &'a str,
    avatar_description: String,
    header: &'a str,
    header_static: &'a str,
    header_description: String,
    locked: bool,
    bot: bool,
    group: bool,
    discoverable: bool,
    indexable: bool,
    noindex: bool,
    hide_collections: bool,
    moved: (),
    suspended: bool,
    limited: bool,
    created_at: String,
    fields: Vec<Value>,
    emojis: [(); 0],
    roles: [(); 0],
}

/// Facts that are cached with the profile part of an account.
pub(super) struct ProfileParts {
    pub(super) handle: Handle,
    defaults: PostDefaults,
}

impl Renderer {
    /// Default settings of a user's posts, if they are cached.
    pub(crate) fn defaults(&self, user: UserId) -> Option<PostDefaults> {
        let profile = self.kept(EntityKey::Profile(user))?;
        Some(profile.parts::<ProfileParts>()?.defaults.clone())
    }
}

impl Entities<'_> {
    /// The `Account` of a user; `None` if the user does not exist.
    pub(crate) fn account(&self, user: UserId) -> Option<Json> {
        let account = self.shared_account(user)?;
        Json::written(|out| {
            out.extend_from_slice(account.bytes());
            Some(())
        })
    }

    /// The cached `Account` of a user, which is the same for all readers.
    pub(super) fn shared_account(&self, user: UserId) -> Option<Entity> {
        let (renderer, key) = (self.renderer, EntityKey::Account(user));
        if let Some(account) = self.counted(key, |_| self.counts_nobody_erasing(user)) {
            return Some(account);
        }
        let node = &renderer.node;
        let made_of = node.made_of(self.hidings, [Subject::User(user.0.into())]);
        let profile = renderer.kept(EntityKey::Profile(user));
        // A public post that the reader has just published is the newest one of the reader's account.
        let newest = self.new.filter(|new| {
            let is_open = |post: Post| post.visibility.is_open();
            profile.is_some()
                && self.reader == Some(user)
                && node.has_counts_in_memory(user)
                && node.try_new_post(*new).is_some_and(is_open)
        });
        if newest.is_none() && !self.may_read() {
            return None;
        }
        let profile = match profile {
            Some(profile) => profile,
            None => self.make_profile(user)?,
        };
        let last = || newest.or_else(|| self.facts().newest_open_post(user));
        let counts = self.facts().counts(user);
        let mut json = profile.bytes().to_vec();
        append_counts(last(), counts, &mut json);
        let account = Entity::new(&made_of.with(&profile.made_of()), &json);
        renderer.keep(key, &account);
        Some(account)
    }

    /// Whether a user exists and the user's counts include no user who is being erased.
    fn counts_nobody_erasing(&self, user: UserId) -> bool {
        self.may_read() && self.facts().exists(user) && !self.facts().follows_erasing(user)
    }

    /// The `Account` of a user hidden from the reader: only the handle.
    pub(super) fn blank_account(&self, user: UserId) -> Option<Vec<u8>> {
        let known = self.facts().user(user)?;
        let mut json = self.profile_json(user, &User::of(known.handle, known.registered), false);
        append_counts(None, Counts::default(), &mut json);
        Some(json)
    }

    fn make_profile(&self, user: UserId) -> Option<Entity> {
        let (facts, node) = (self.facts(), &self.renderer.node);
        let made_of = node.made_of(self.hidings, [Subject::Profile(user.0.into())]);
        let profile = facts.user(user)?;
        let pictures = [profile.avatar, profile.header].into_iter().flatten();
        let pictures = pictures.map(|picture| Subject::Media(picture.0));
        let made_of = made_of.with(&node.made_of(self.hidings, pictures));
        let json = self.profile_json(user, &profile, facts.is_locked(user));
        let parts = ProfileParts { handle: profile.handle, defaults: profile.defaults };
        let made = Entity::with_parts(&made_of, &json, (parts, PROFILE_PARTS_BYTES));
        self.renderer.keep(EntityKey::Profile(user), &made);
        Some(made)
    }

    /// Profile part of the entity `Account`: an unclosed object.
    fn profile_json(&self, user: UserId, profile: &User, locked: bool) -> Vec<u8> {
        let base = self.base();
        let (handle, bio) = (profile.handle.as_str(), profile.bio.as_str());
        let (avatar, avatar_description) = self.profile_picture(profile.avatar, NO_AVATAR);
        let (header, header_description) = self.profile_picture(profile.header, NO_HEADER);
        let part = ProfilePart {
            id: user.0.to_string(),
            username: handle,
            acct: handle,
            display_name: profile.name.as_str(),
            note: html::content(bio, base, |_| None),
            url: format!("{base}/@{handle}"),
            uri: format!("{base}/users/{handle}"),
            avatar: &avatar,
            avatar_static: &avatar,
            avatar_description,
            header: &header,
            header_static: &header,
            header_description,
            locked,
            bot: profile.bot,
            group: false,
            discoverable: !profile.undiscoverable,
            indexable: profile.indexable,
            noindex: false,
            hide_collections: false,
            moved: (),
            suspended: false,
            limited: false,
            created_at: format!("{}T00:00:00.000Z", day(profile.registered.unix_ms())),
            fields: fields(&profile.fields, |value| html::line(value, base)),
            emojis: [],
            roles: [],
        };
        let mut json = Vec::new();
        append(&part, &mut json);
        json.pop();
        json
    }

    /// The `CredentialAccount` of a user; `None` without an account.
    pub(crate) fn own_account(&self, user: UserId) -> Option<Json> {
        let entity = self.account(user)?;
        let facts = self.facts();
        let (profile, account) = (facts.user(user)?, facts.account(user)?);
        let defaults = &profile.defaults;
        let source = json!({
            "privacy": visibility_name(defaults.visibility),
            "sensitive": defaults.sensitive,
            "language": defaults.language.as_ref().map(Language::as_str),
            "quote_policy": defaults.quote_policy.name(),
            "note": profile.bio.as_str(),
            "fields": fields(&profile.fields, str::to_owned),
            "follow_requests_count": facts.counts(user).requests,
            "discoverable": !profile.undiscoverable,
            "indexable": profile.indexable,
            "hide_collections": false,
            "attribution_domains": [],
        });
        Some(entity.with("source", &source).with("role", &role(account.role)))
    }

    /// The `Preferences` of a user; `None` if the user does not exist.
    pub(crate) fn preferences(&self, user: UserId) -> Option<Value> {
        let defaults = self.facts().user(user)?.defaults;
        Some(json!({
            "posting:default:visibility": visibility_name(defaults.visibility),
            "posting:default:sensitive": defaults.sensitive,
            "posting:default:language": defaults.language.as_ref().map(Language::as_str),
            "posting:default:quote_policy": defaults.quote_policy.name(),
            "reading:expand:media": "default",
            "reading:expand:spoilers": false,
            "reading:autoplay:gifs": false,
        }))
    }
}

/// Appends the counts of an `Account`, which come after its profile part, and closes the object.
fn append_counts(last: Option<PostId>, counts: Counts, json: &mut Vec<u8>) {
    field("last_status_at", &last.map(|post| day(post.unix_ms())), json);
    field("statuses_count", &counts.open_posts(), json);
    field("followers_count", &counts.followers, json);
    field("following_count", &counts.following, json);
    json.push(b'}');
}

/// Entities `Field`. Links are never verified.
fn fields(fields: &ProfileFields, shown: impl Fn(&str) -> String) -> Vec<Value> {
    let fields = fields.as_slice().iter();
    let field = |field: &ProfileField| json!({"name": field.name(), "value": shown(field.value()), "verified_at": null});
    fields.map(field).collect()
}

/// Entity `Role`.
fn role(role: Role) -> Value {
    let (id, name) = match role {
        Role::User => ("-99", ""),
        Role::Moderator => ("1", "Moderator"),
        Role::Admin => ("2", "Admin"),
    };
    json!({"id": id, "name": name, "permissions": "0", "color": "", "highlighted": false})
}
