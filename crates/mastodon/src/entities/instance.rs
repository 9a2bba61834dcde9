//! Self-description of the server: the instance in two versions, and its configuration.

use feed::limits::{
    BIO_CHARS_MAX, DESCRIPTION_CHARS_MAX, FEATURED_TAGS_MAX, NAME_CHARS_MAX, PINS_MAX,
    POLL_OPTION_CHARS_MAX, POLL_OPTIONS_MAX, POLL_SECS_MAX, POLL_SECS_MIN, POST_CHARS_MAX,
    POST_MEDIA_MAX, PROFILE_FIELDS_MAX, URL_CHARS,
};
use feed::{Facts, Language};
use media::{FILE_BYTES_MAX, PIXELS_MAX};
use node::{Node, Store};
use serde_json::{Value, json};

use crate::{About, MastodonOptions, Registrations, domain};

/// Version of Mastodon whose API this one resembles. Clients choose endpoints by this version.
const LIKE: &str = "4.2.0";
/// Path of the server's picture, if the operator provides one.
pub(crate) const PICTURE: &str = "/instance/picture";

/// Version of the server, in the form that clients parse.
fn version() -> String {
    format!("{LIKE} (compatible; roost {})", env!("CARGO_PKG_VERSION"))
}

/// Base URL of streams.
fn streaming(base: &str) -> String {
    match base.strip_prefix("https://") {
        Some(host) => format!("wss://{host}"),
        None => format!("ws://{}", domain(base)),
    }
}

/// Limits of posts and accounts, which clients enforce.
fn configuration(node: &Node) -> Value {
    let media_max = if node.accepts_pictures() { POST_MEDIA_MAX } else { 0 };
    json!({
        "accounts": {
            "max_featured_tags": FEATURED_TAGS_MAX,
            "max_pinned_statuses": PINS_MAX,
            "max_profile_fields": PROFILE_FIELDS_MAX,
            "max_display_name_length": NAME_CHARS_MAX,
            "max_note_length": BIO_CHARS_MAX,
        },
        "statuses": {
            "max_characters": POST_CHARS_MAX,
            "max_media_attachments": media_max,
            "characters_reserved_per_url": URL_CHARS,
        },
        "media_attachments": {
            "supported_mime_types": ["image/jpeg", "image/png", "image/gif", "image/webp"],
            "description_limit": DESCRIPTION_CHARS_MAX,
            "image_size_limit": FILE_BYTES_MAX,
            "image_matrix_limit": PIXELS_MAX,
            "video_size_limit": 0,
            "video_frame_rate_limit": 0,
            "video_matrix_limit": 0,
        },
        "polls": {
            "max_options": POLL_OPTIONS_MAX,
            "max_characters_per_option": POLL_OPTION_CHARS_MAX,
            "min_expiration": POLL_SECS_MIN,
            "max_expiration": POLL_SECS_MAX,
        },
    })
}

/// Numbers of users and of public posts; zero if only users may read.
fn counts(facts: Facts<'_, Store>, options: &MastodonOptions) -> (u32, u64) {
    let totals = facts.totals();
    let counts =
        (totals.users - totals.users_deleted, totals.posts.saturating_sub(totals.posts_closed));
    if options.anonymous_reads { counts } else { (0, 0) }
}

/// URL of the server's picture.
fn picture(options: &MastodonOptions) -> String {
    let path = if options.about.picture.is_some() { PICTURE } else { "/assets/icon.png" };
    format!("{}{path}", options.base)
}

/// Entities `Rule`.
pub(crate) fn rules(about: &About) -> Vec<Value> {
    let rule = |(number, text): (usize, &String)| json!({"id": (number + 1).to_string(), "text": text, "hint": "", "translations": {}});
    about.rules.iter().enumerate().map(rule).collect()
}

/// Entity `V1Instance`. `contact` is the account of the operator.
pub(crate) fn version_1(node: &Node, options: &MastodonOptions, contact: Option<&Value>) -> Value {
    let (users, posts) = counts(node.facts(), options);
    let about = &options.about;
    let base = &options.base;
    json!({
        "uri": domain(base),
        "title": about.title,
        "short_description": about.description,
        "description": about.description,
        "email": about.contact_email,
        "version": version(),
        "urls": {"streaming_api": streaming(base)},
        "stats": {"user_count": users, "status_count": posts, "domain_count": 0},
        "thumbnail": picture(options),
        "languages": languages(about),
        "registrations": is_open(options),
        "approval_required": options.registrations == Registrations::Approval,
        "invites_enabled": options.registrations == Registrations::Invite,
        "configuration": configuration(node),
        "contact_account": contact,
        "rules": rules(about),
    })
}

/// Entity `Instance`. `contact` is the account of the operator.
pub(crate) fn version_2(node: &Node, options: &MastodonOptions, contact: Option<&Value>) -> Value {
    let (base, about) = (&options.base, &options.about);
    let mut configuration = configuration(node);
    if let Some(fields) = configuration.as_object_mut() {
        let urls = json!({
            "streaming": streaming(base),
            "status": null,
            "about": null,
            "privacy_policy": null,
            "terms_of_service": null,
        });
        fields.insert("urls".to_owned(), urls);
        fields.insert("vapid".to_owned(), json!({"public_key": ""}));
        fields.insert("translation".to_owned(), json!({"enabled": false}));
    }
    json!({
        "domain": domain(base),
        "title": about.title,
        "version": version(),
        "source_url": format!("{base}/"),
        "description": about.description,
        "usage": {"users": {"active_month": counts(node.facts(), options).0}},
        "thumbnail": {"url": picture(options), "blurhash": null, "versions": {}},
        "icon": [],
        "languages": languages(about),
        "configuration": configuration,
        "registrations": {
            "enabled": is_open(options),
            "approval_required": options.registrations == Registrations::Approval,
            "reason_required": false,
            "message": null,
            "min_age": null,
            "url": format!("{base}/auth/sign-up"),
        },
        "api_versions": {"mastodon": 1},
        "contact": {"email": about.contact_email, "account": contact},
        "rules": rules(about),
    })
}

fn languages(about: &About) -> Vec<&str> {
    about.languages.iter().map(Language::as_str).collect()
}

/// Whether an app can offer sign-up. False for invites, because apps have no field for them.
fn is_open(options: &MastodonOptions) -> bool {
    matches!(options.registrations, Registrations::Open | Registrations::Approval)
}

/// Document of nodeinfo 2.0. It lists no protocols, because there is no federation.
pub(crate) fn nodeinfo(facts: Facts<'_, Store>, options: &MastodonOptions) -> Value {
    let (users, posts) = counts(facts, options);
    let about = &options.about;
    json!({
        "version": "2.0",
        "software": {"name": "roost", "version": env!("CARGO_PKG_VERSION")},
        "protocols": [],
        "services": {"inbound": [], "outbound": []},
        "openRegistrations": options.registrations == Registrations::Open,
        "usage": {"users": {"total": users}, "localPosts": posts},
        "metadata": {
            "nodeName": about.title,
            "nodeDescription": about.description,
            // Clients recognize by this name how to use the API.
            "upstream": {"name": "mastodon"},
        },
    })
}
