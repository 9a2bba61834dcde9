//! The routes of features that the server does not have, and those of Mastodon that do not exist here.

use feed::accounts::AccessScope as S;

use crate::access::Needs::{self, Nothing, User};
use crate::api::absent::Absent::{List, Object, Record, Refused};
use crate::endpoints::Endpoints;

const WRITE_ACCOUNTS: Needs = User(&[S::WriteAccounts]);
const READ_STATUSES: Needs = User(&[S::ReadStatuses]);
const READ_ACCOUNTS: Needs = User(&[S::ReadAccounts]);
const READ_NOTIFICATIONS: Needs = User(&[S::ReadNotifications]);
const WRITE_NOTIFICATIONS: Needs = User(&[S::WriteNotifications]);

pub(crate) fn add(table: &mut Endpoints) {
    lists(table);
    of_statuses(table);
    of_accounts(table);
    of_notifications(table);
    missing(table);
}

/// Lists that are always empty.
fn lists(table: &mut Endpoints) {
    table.absent(
        "GET",
        Nothing,
        List,
        &[
            "/api/v1/custom_emojis",
            "/api/v1/instance/activity",
            "/api/v1/instance/domain_blocks",
            "/api/v1/instance/peers",
            "/api/v1/trends/links",
            "/api/v1/trends/statuses",
            "/api/v1/trends/tags",
        ],
    );
    table.absent("GET", Nothing, Object, &["/api/v1/instance/translation_languages"]);
    table.absent("GET", User(&[S::Read]), List, &["/api/v1/suggestions", "/api/v2/suggestions"]);
    table.absent("DELETE", User(&[S::Read]), Object, &["/api/v1/suggestions/{account_id}"]);
    table.absent("GET", User(&[S::ReadBlocks]), List, &["/api/v1/domain_blocks"]);
    let blocks = User(&[S::WriteBlocks]);
    table.absent("POST", blocks, Refused("blocks of domains"), &["/api/v1/domain_blocks"]);
    table.absent("DELETE", blocks, Object, &["/api/v1/domain_blocks"]);
    table.absent("GET", User(&[S::Read]), List, &["/api/v1/announcements"]);
    let dismiss = "/api/v1/announcements/{id}/dismiss";
    table.absent("POST", WRITE_ACCOUNTS, Record, &[dismiss]);
    let reaction = ["/api/v1/announcements/{id}/reactions/{name}"];
    let favourites = User(&[S::WriteFavourites]);
    table.absent("PUT", favourites, Record, &reaction);
    table.absent("DELETE", favourites, Record, &reaction);
}

fn of_statuses(table: &mut Endpoints) {
    let translate = ["/api/v1/statuses/{id}/translate"];
    table.absent("POST", READ_STATUSES, Refused("translation"), &translate);
}

fn of_accounts(table: &mut Endpoints) {
    table.absent(
        "GET",
        Needs::Anyone(&[S::ReadAccounts]),
        List,
        &["/api/v1/accounts/{id}/endorsements"],
    );
    table.absent(
        "GET",
        READ_ACCOUNTS,
        List,
        &["/api/v1/accounts/{id}/identity_proofs", "/api/v1/endorsements"],
    );
    table.absent(
        "POST",
        WRITE_ACCOUNTS,
        Refused("endorsements"),
        &[
            "/api/v1/accounts/{id}/endorse",
            "/api/v1/accounts/{id}/unendorse",
            "/api/v1/accounts/{id}/pin",
            "/api/v1/accounts/{id}/unpin",
        ],
    );
    table.absent("POST", User(&[S::WriteReports]), Refused("reports"), &["/api/v1/reports"]);
}

fn of_notifications(table: &mut Endpoints) {
    table.absent(
        "PATCH",
        WRITE_NOTIFICATIONS,
        Refused("filters of notifications"),
        &["/api/v2/notifications/policy"],
    );
    table.absent("GET", READ_NOTIFICATIONS, List, &["/api/v1/notifications/requests"]);
    table.absent("GET", READ_NOTIFICATIONS, Record, &["/api/v1/notifications/requests/{id}"]);
    table.absent(
        "POST",
        WRITE_NOTIFICATIONS,
        Record,
        &[
            "/api/v1/notifications/requests/{id}/accept",
            "/api/v1/notifications/requests/{id}/dismiss",
        ],
    );
    let subscription = ["/api/v1/push/subscription"];
    let (push, what) = (User(&[S::Push]), Refused("push notifications"));
    table.absent("GET", push, Record, &subscription);
    table.absent("PUT", push, Record, &subscription);
    table.absent("POST", push, what, &subscription);
    table.absent("DELETE", push, Object, &subscription);
}

fn missing(table: &mut Endpoints) {
    table.missing(
        "GET",
        &[
            "/api/oembed",
            "/api/v1/accounts/{id}/collections",
            "/api/v1/accounts/{id}/in_collections",
            "/api/v1/annual_reports",
            "/api/v1/annual_reports/{year}",
            "/api/v1/annual_reports/{year}/state",
            "/api/v1/collections/{id}",
            "/api/v1/instance/terms_of_service",
            "/api/v1/instance/terms_of_service/{date}",
            "/api/v1/notifications/requests/merged",
            "/api/v1/profile",
            "/api/v1/statuses/{id}/quotes",
            "/api/v1/timelines/link",
            "/api/v1_alpha/async_refreshes/{id}",
            "/api/v2/notifications",
            "/api/v2/notifications/unread_count",
            "/api/v2/notifications/{group_key}",
            "/api/v2/notifications/{group_key}/accounts",
            "/oauth/userinfo",
        ],
    );
    table.missing(
        "POST",
        &[
            "/api/v1/annual_reports/{year}/generate",
            "/api/v1/annual_reports/{year}/read",
            "/api/v1/collections",
            "/api/v1/collections/{id}/items",
            "/api/v1/collections/{id}/items/{item}/revoke",
            "/api/v1/emails/confirmations",
            "/api/v1/notifications/requests/accept",
            "/api/v1/notifications/requests/dismiss",
            "/api/v1/statuses/{id}/quotes/{quoting}/revoke",
            "/api/v2/notifications/{group_key}/dismiss",
        ],
    );
    table.missing("PUT", &["/api/v1/statuses/{id}/interaction_policy"]);
    table.missing("PATCH", &["/api/v1/collections/{id}", "/api/v1/profile"]);
    let collections = ["/api/v1/collections/{id}", "/api/v1/collections/{id}/items/{item}"];
    table.missing("DELETE", &collections);
}
