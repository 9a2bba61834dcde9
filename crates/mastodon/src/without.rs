//! Routes of missing features, and endpoints of Mastodon that do not exist here.

use feed::accounts::AccessScope as S;

use crate::access::Needs::{self, Anyone, Nothing, User};
use crate::api::absent::Absent::{Json, List, Object, Record, Refused};
use crate::endpoints::Endpoints;

const MY_ACCOUNTS: Needs = User(&[S::ReadAccounts]);
const READ_NOTIFICATIONS: Needs = User(&[S::ReadNotifications]);
const WRITE_NOTIFICATIONS: Needs = User(&[S::WriteNotifications]);

/// Adds the routes of this module.
pub(crate) fn routes(table: &mut Endpoints) {
    lists(table);
    of_statuses(table);
    of_accounts(table);
    of_notifications(table);
    of_annual_reports(table);
    of_collections(table);
    missing(table);
}

/// Adds lists that are always empty.
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
            "/api/v1/peers/search",
            "/api/v1/trends/links",
        ],
    );
    table.absent("GET", Nothing, Object, &["/api/v1/instance/translation_languages"]);
    table.absent("GET", Nothing, Json(NO_TEXT), &["/api/v1/instance/privacy_policy"]);
    let terms = ["/api/v1/instance/terms_of_service", "/api/v1/instance/terms_of_service/{date}"];
    table.absent("GET", Nothing, Record, &terms);
    // E-mail addresses are not verified, so no user waits for a confirmation.
    let confirmed = ["/api/v1/emails/check_confirmation"];
    table.absent("GET", User(&[S::Read]), Json("true"), &confirmed);
    table.absent("DELETE", User(&[S::Read]), Object, &["/api/v1/suggestions/{account_id}"]);
    table.absent("GET", User(&[S::ReadBlocks]), List, &["/api/v1/domain_blocks"]);
    let blocks = User(&[S::WriteBlocks]);
    table.absent("POST", blocks, Refused("blocks of domains"), &["/api/v1/domain_blocks"]);
    table.absent("DELETE", blocks, Object, &["/api/v1/domain_blocks"]);
    table.absent("GET", User(&[S::Read]), List, &["/api/v1/announcements"]);
    let dismiss = "/api/v1/announcements/{id}/dismiss";
    table.absent("POST", Needs::WRITE_ACCOUNTS, Record, &[dismiss]);
    let reaction = ["/api/v1/announcements/{id}/reactions/{name}"];
    let favourites = User(&[S::WriteFavourites]);
    table.absent("PUT", favourites, Record, &reaction);
    table.absent("DELETE", favourites, Record, &reaction);
}

fn of_statuses(table: &mut Endpoints) {
    let translate = ["/api/v1/statuses/{id}/translate"];
    table.absent("POST", Needs::MY_STATUSES, Refused("translation"), &translate);
    table.absent("GET", Anyone(&[S::ReadStatuses]), Record, &["/api/v1/timelines/link"]);
}

fn of_accounts(table: &mut Endpoints) {
    table.absent("GET", Anyone(&[S::ReadAccounts]), List, &["/api/v1/accounts/{id}/endorsements"]);
    table.absent(
        "GET",
        MY_ACCOUNTS,
        List,
        &["/api/v1/accounts/{id}/identity_proofs", "/api/v1/endorsements"],
    );
    table.absent(
        "POST",
        Needs::WRITE_ACCOUNTS,
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
    table.absent("GET", READ_NOTIFICATIONS, Json(NO_POLICY), &["/api/v2/notifications/policy"]);
    table.absent("GET", READ_NOTIFICATIONS, List, &["/api/v1/notifications/requests"]);
    let merged = ["/api/v1/notifications/requests/merged"];
    table.absent("GET", READ_NOTIFICATIONS, Json("{\"merged\":true}"), &merged);
    let all = ["/api/v1/notifications/requests/accept", "/api/v1/notifications/requests/dismiss"];
    table.absent("POST", WRITE_NOTIFICATIONS, Object, &all);
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

/// Adds annual reports: there are none, and none can be generated.
fn of_annual_reports(table: &mut Endpoints) {
    let none = Json("{\"annual_reports\":[],\"accounts\":[],\"statuses\":[]}");
    table.absent("GET", MY_ACCOUNTS, none, &["/api/v1/annual_reports"]);
    table.absent("GET", MY_ACCOUNTS, Record, &["/api/v1/annual_reports/{year}"]);
    let state = ["/api/v1/annual_reports/{year}/state"];
    table.absent("GET", MY_ACCOUNTS, Json("{\"state\":\"ineligible\"}"), &state);
    let generate = ["/api/v1/annual_reports/{year}/generate"];
    table.absent("POST", Needs::WRITE_ACCOUNTS, Refused("annual reports"), &generate);
    table.absent("POST", Needs::WRITE_ACCOUNTS, Record, &["/api/v1/annual_reports/{year}/read"]);
}

/// Adds collections of accounts.
fn of_collections(table: &mut Endpoints) {
    let read = Anyone(&[S::ReadAccounts]);
    let lists = ["/api/v1/accounts/{id}/collections", "/api/v1/accounts/{id}/in_collections"];
    table.absent("GET", read, Json("{\"collections\":[]}"), &lists);
    table.absent("GET", read, Record, &["/api/v1/collections/{id}"]);
    table.absent("POST", Needs::WRITE_ACCOUNTS, Refused("collections"), &["/api/v1/collections"]);
    table.absent("PATCH", Needs::WRITE_ACCOUNTS, Record, &["/api/v1/collections/{id}"]);
    let items = ["/api/v1/collections/{id}/items", "/api/v1/collections/{id}/items/{item}/revoke"];
    table.absent("POST", Needs::WRITE_ACCOUNTS, Record, &items);
    let removed = ["/api/v1/collections/{id}", "/api/v1/collections/{id}/items/{item}"];
    table.absent("DELETE", Needs::WRITE_ACCOUNTS, Record, &removed);
}

/// Privacy policy: the operator has written none.
const NO_TEXT: &str = "{\"content\":\"\",\"updated_at\":\"1970-01-01T00:00:00.000Z\"}";

/// Policy for notifications: all are accepted.
const NO_POLICY: &str = "{\"for_not_following\":\"accept\",\"for_not_followers\":\"accept\",\
    \"for_new_accounts\":\"accept\",\"for_private_mentions\":\"accept\",\"for_limited_accounts\":\"accept\",\
    \"summary\":{\"pending_requests_count\":0,\"pending_notifications_count\":0}}";

fn missing(table: &mut Endpoints) {
    table.missing(
        "GET",
        &[
            "/api/oembed",
            "/api/v1/profile",
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
        &["/api/v1/emails/confirmations", "/api/v2/notifications/{group_key}/dismiss"],
    );
    table.missing("PATCH", &["/api/v1/profile"]);
}
