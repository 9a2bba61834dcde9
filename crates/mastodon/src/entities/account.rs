//! The entities `Account` and `CredentialAccount`.

use std::sync::Arc;

use feed::accounts::Role;
use feed::{Language, ProfileField, ProfileFields, Span, User, UserId};
use node::Subject;
use serde::Serialize;
use serde_json::{Value, json};

use super::json::{Json, append};
use super::kept::{Depends, KeptAccount};
use super::status::visibility_name;
use super::time::day;
use super::{Entities, html};

/// The entity `Account`.
#[derive(Serialize)]
struct AccountEntity<'a> {
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
    last_status_at: Option<String>,
    statuses_count: u32,
    followers_count: u32,
    following_count: u32,
    fields: Vec<Value>,
    emojis: [(); 0],
    roles: [(); 0],
}

impl Entities<'_> {
    /// The entity `Account` of a user; none if the user does not exist.
    pub(crate) fn account(&self, user: UserId) -> Option<Json> {
        let account = self.shared_account(user)?;
        Json::written(|out| {
            out.extend_from_slice(&account.json);
            Some(())
        })
    }

    /// As [`Entities::account`]: it is the same for all readers.
    pub(super) fn shared_account(&self, user: UserId) -> Option<Arc<KeptAccount>> {
        let (kept, node) = (&self.renderer.kept, &self.renderer.node);
        if self.keeps
            && let Some(account) = kept.account(user, node)
        {
            return Some(account);
        }
        if !self.may_read() {
            return None;
        }
        let depends = Depends::on(Subject::User(user.0.into()), node);
        let profile = self.facts().user(user)?;
        let pictures = [profile.avatar, profile.header].into_iter().flatten();
        let depends = depends.and(pictures.map(|picture| Subject::Media(picture.0)), node);
        let account = KeptAccount { depends, json: self.make_account(user, &profile).into() };
        let account = Arc::new(account);
        if self.keeps {
            kept.keep_account(user, &account);
        }
        Some(account)
    }

    fn make_account(&self, user: UserId, profile: &User) -> Vec<u8> {
        let (facts, base) = (self.facts(), self.base());
        let counts = facts.counts(user);
        let newest = Span::below(None, 1).map(|span| facts.posts_by(user, span));
        let last_status = newest.iter().flatten().next().map(|(post, ..)| day(post.unix_ms()));
        let (handle, bio) = (profile.handle.as_str(), profile.bio.as_str());
        let (avatar, avatar_description) = self.profile_picture(profile.avatar);
        let (header, header_description) = self.profile_picture(profile.header);
        let entity = AccountEntity {
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
            locked: facts.is_locked(user),
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
            last_status_at: last_status,
            statuses_count: counts.posts,
            followers_count: counts.followers,
            following_count: counts.following,
            fields: fields(&profile.fields, |value| html::line(value, base)),
            emojis: [],
            roles: [],
        };
        let mut json = Vec::new();
        append(&entity, &mut json);
        json
    }

    /// The entity `CredentialAccount` of a user; none if the user has no account.
    pub(crate) fn own_account(&self, user: UserId) -> Option<Json> {
        let entity = self.account(user)?;
        let facts = self.facts();
        let (profile, account) = (facts.user(user)?, facts.account(user)?);
        let defaults = &profile.defaults;
        let source = json!({
            "privacy": visibility_name(defaults.visibility),
            "sensitive": defaults.sensitive,
            "language": defaults.language.as_ref().map(Language::as_str),
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

    /// The entity `Preferences` of a user; none if the user does not exist.
    pub(crate) fn preferences(&self, user: UserId) -> Option<Value> {
        let defaults = self.facts().user(user)?.defaults;
        Some(json!({
            "posting:default:visibility": visibility_name(defaults.visibility),
            "posting:default:sensitive": defaults.sensitive,
            "posting:default:language": defaults.language.as_ref().map(Language::as_str),
            "reading:expand:media": "default",
            "reading:expand:spoilers": false,
            "reading:autoplay:gifs": false,
        }))
    }
}

/// The entities `Field`. Nobody verifies links.
fn fields(fields: &ProfileFields, shown: impl Fn(&str) -> String) -> Vec<Value> {
    let fields = fields.as_slice().iter();
    let field = |field: &ProfileField| json!({"name": field.name(), "value": shown(field.value()), "verified_at": null});
    fields.map(field).collect()
}

/// The entity `Role`.
fn role(role: Role) -> Value {
    let (id, name) = match role {
        Role::User => ("-99", ""),
        Role::Moderator => ("1", "Moderator"),
        Role::Admin => ("2", "Admin"),
    };
    json!({"id": id, "name": name, "permissions": "0", "color": "", "highlighted": false})
}
