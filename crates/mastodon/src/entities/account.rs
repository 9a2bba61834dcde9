//! The entities `Account` and `CredentialAccount`.

use feed::accounts::Role;
use feed::{Language, ProfileField, ProfileFields, Span, UserId};
use serde_json::{Value, json};

use super::status::visibility_name;
use super::time::day;
use super::{Entities, html};

impl Entities<'_> {
    /// The entity `Account` of a user; none if the user does not exist.
    pub(crate) fn account(&mut self, user: UserId) -> Option<Value> {
        if let Some(made) = self.accounts.get(&user) {
            return made.clone();
        }
        let made = self.make_account(user);
        self.accounts.insert(user, made.clone());
        made
    }

    fn make_account(&self, user: UserId) -> Option<Value> {
        let (facts, base) = (self.facts(), self.base);
        let profile = facts.user(user)?;
        let counts = facts.counts(user);
        let newest = Span::below(None, 1).map(|span| facts.posts_by(user, span));
        let last_status = newest.iter().flatten().next().map(|(post, ..)| day(post.unix_ms()));
        let (handle, bio) = (profile.handle.as_str(), profile.bio.as_str());
        let (avatar, avatar_description) = self.profile_picture(profile.avatar);
        let (header, header_description) = self.profile_picture(profile.header);
        let created = format!("{}T00:00:00.000Z", day(profile.registered.unix_ms()));
        Some(json!({
            "id": user.0.to_string(),
            "username": handle,
            "acct": handle,
            "display_name": profile.name.as_str(),
            "note": html::content(bio, base, |_| None),
            "url": format!("{base}/@{handle}"),
            "uri": format!("{base}/users/{handle}"),
            "avatar": avatar,
            "avatar_static": avatar,
            "avatar_description": avatar_description,
            "header": header,
            "header_static": header,
            "header_description": header_description,
            "locked": facts.is_locked(user),
            "bot": profile.bot,
            "group": false,
            "discoverable": !profile.undiscoverable,
            "indexable": profile.indexable,
            "noindex": false,
            "hide_collections": false,
            "moved": null,
            "suspended": false,
            "limited": false,
            "created_at": created,
            "last_status_at": last_status,
            "statuses_count": counts.posts,
            "followers_count": counts.followers,
            "following_count": counts.following,
            "fields": fields(&profile.fields, |value| html::line(value, base)),
            "emojis": [],
            "roles": [],
        }))
    }

    /// The entity `CredentialAccount` of a user; none if the user has no account.
    pub(crate) fn own_account(&mut self, user: UserId) -> Option<Value> {
        let mut entity = self.account(user)?;
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
        let parts = entity.as_object_mut()?;
        parts.insert("source".to_owned(), source);
        parts.insert("role".to_owned(), role(account.role));
        Some(entity)
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
