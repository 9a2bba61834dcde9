//! The entities of the API, with every field that its documentation lists for a server without the feature.

use feed::{Span, UserId};
use jiff::Timestamp;
use jiff::fmt::strtime;
use maud::html;
use node::Node;
use serde_json::{Value, json};

/// The entity `CredentialAccount` of a user; none if the user does not exist. May block.
pub(crate) fn own_account(node: &Node, user: UserId, base: &str) -> Option<Value> {
    let facts = node.facts();
    let (profile, account) = (facts.user(user)?, facts.account(user)?);
    let counts = facts.counts(user);
    let newest = Span::below(None, 1).map(|span| facts.posts_by(user, span)).unwrap_or_default();
    let last_status = newest.first().map(|(post, _)| day(post.unix_ms()));
    let (handle, bio) = (profile.handle.as_str(), profile.bio.as_str());
    let name = Some(profile.name.as_str()).filter(|name| !name.is_empty()).unwrap_or(handle);
    let picture = format!("{base}/assets/icon.svg");
    let created = format!("{}T00:00:00.000Z", day(profile.registered.unix_ms()));
    let note = if bio.is_empty() { String::new() } else { html! { p { (bio) } }.into_string() };
    Some(json!({
        "id": user.0.to_string(),
        "username": handle,
        "acct": handle,
        "display_name": name,
        "note": note,
        "url": format!("{base}/@{handle}"),
        "uri": format!("{base}/users/{handle}"),
        "avatar": picture,
        "avatar_static": picture,
        "header": picture,
        "header_static": picture,
        "locked": false,
        "bot": false,
        "group": false,
        "discoverable": true,
        "indexable": false,
        "noindex": false,
        "created_at": created,
        "last_status_at": last_status,
        "statuses_count": counts.posts,
        "followers_count": counts.followers,
        "following_count": counts.following,
        "fields": [],
        "emojis": [],
        "roles": [],
        "source": {
            "privacy": "public",
            "sensitive": false,
            "language": null,
            "note": bio,
            "fields": [],
            "follow_requests_count": 0,
        },
        "role": role(account.role),
    }))
}

/// The entity `Role`.
fn role(role: feed::accounts::Role) -> Value {
    use feed::accounts::Role;
    let (id, name) = match role {
        Role::User => ("-99", ""),
        Role::Moderator => ("1", "Moderator"),
        Role::Admin => ("2", "Admin"),
    };
    json!({"id": id, "name": name, "permissions": "0", "color": "", "highlighted": false})
}

/// The day of a time in milliseconds since 1970, such as 2026-11-23.
pub(crate) fn day(unix_ms: u64) -> String {
    let time = i64::try_from(unix_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    let day = time.and_then(|time| strtime::format("%Y-%m-%d", time).ok());
    day.unwrap_or_else(|| "1970-01-01".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_day() {
        for (ms, expect) in
            [(0, "1970-01-01"), (1_795_000_000_007, "2026-11-18"), (u64::MAX, "1970-01-01")]
        {
            assert_eq!(day(ms), expect);
        }
    }
}
