//! The entities `Account` and `CredentialAccount`.

use feed::accounts::Role;
use feed::{Span, UserId};
use serde_json::{Value, json};

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
        let picture = format!("{base}/assets/icon.png");
        let created = format!("{}T00:00:00.000Z", day(profile.registered.unix_ms()));
        Some(json!({
            "id": user.0.to_string(),
            "username": handle,
            "acct": handle,
            "display_name": profile.name.as_str(),
            "note": html::content(bio, base, |_| None),
            "url": format!("{base}/@{handle}"),
            "uri": format!("{base}/users/{handle}"),
            "avatar": picture,
            "avatar_static": picture,
            "avatar_description": "",
            "header": picture,
            "header_static": picture,
            "header_description": "",
            "locked": false,
            "bot": false,
            "group": false,
            "discoverable": true,
            "indexable": false,
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
            "fields": [],
            "emojis": [],
            "roles": [],
        }))
    }

    /// The entity `CredentialAccount` of a user; none if the user has no account.
    pub(crate) fn own_account(&mut self, user: UserId) -> Option<Value> {
        let mut entity = self.account(user)?;
        let facts = self.facts();
        let (profile, account) = (facts.user(user)?, facts.account(user)?);
        let fields = entity.as_object_mut()?;
        let source = json!({
            "privacy": "public",
            "sensitive": false,
            "language": null,
            "note": profile.bio.as_str(),
            "fields": [],
            "follow_requests_count": 0,
            "discoverable": true,
            "indexable": false,
            "hide_collections": false,
            "attribution_domains": [],
        });
        fields.insert("source".to_owned(), source);
        fields.insert("role".to_owned(), role(account.role));
        Some(entity)
    }
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
