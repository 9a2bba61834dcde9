//! Costs of accounts, apps and grants.

use rows::Cost;

use crate::accounts::{AccountCommand, AppRequest, RedirectUri, Website};
use crate::index::GRANT_ROWS;
use crate::limits::{
    APP_GRANTS_MAX, APP_NAME_BYTES_MAX, EMAIL_BYTES_MAX, HANDLE_CHARS_MAX, INVITES_MAX,
    PASSWORD_HASH_BYTES_MAX, REDIRECT_URIS_MAX, UNUSED_APPS_REMOVED, URI_BYTES_MAX,
    USER_GRANTS_MAX, USER_TOKENS_MAX,
};

/// Bytes of the rows of a grant.
pub(crate) const GRANT_BYTES: usize = 512 + APP_NAME_BYTES_MAX;
/// Maximum number of grants of a user.
const GRANTS: usize = USER_GRANTS_MAX + USER_TOKENS_MAX;
/// Rows of a new grant and of the grant it replaces, and reads of the owner's grants and their list.
const GRANTING_ROWS: usize = 2 * GRANT_ROWS + 2 * GRANTS;

pub(crate) fn account_cost(command: &AccountCommand) -> Cost {
    const ACCOUNT_BYTES: usize = 2 * EMAIL_BYTES_MAX + PASSWORD_HASH_BYTES_MAX + 64;
    match command {
        AccountCommand::SignUp { .. } => {
            Cost::of_rows(8, ACCOUNT_BYTES + 3 * HANDLE_CHARS_MAX + 128)
        }
        AccountCommand::Open { .. } | AccountCommand::SetRole { .. } => {
            Cost::of_rows(5, ACCOUNT_BYTES)
        }
        AccountCommand::SetPassword { .. } | AccountCommand::SetState { .. } => {
            let rows = GRANTS * GRANT_ROWS + 4;
            Cost::of_rows(rows, GRANTS * GRANT_BYTES + ACCOUNT_BYTES)
        }
        AccountCommand::CreateInvite { .. } => {
            Cost::of_rows(2 * INVITES_MAX + 2, (2 * INVITES_MAX + 2) * 64)
        }
        AccountCommand::RegisterApp(app) => {
            let removed = UNUSED_APPS_REMOVED * (APP_GRANTS_MAX * GRANT_ROWS + 4);
            Cost::of_rows(removed + 3, removed * 64 + app_bytes(app))
        }
        AccountCommand::LogIn { .. }
        | AccountCommand::Authorize { .. }
        | AccountCommand::Exchange { .. }
        | AccountCommand::GrantApp { .. }
        | AccountCommand::GrantUser { .. } => {
            // All grants of the user are read.
            let read = ACCOUNT_BYTES + APP_BYTES_MAX + GRANTS * GRANT_BYTES;
            let cost = Cost::of_rows(GRANTING_ROWS, 2 * GRANT_BYTES);
            Cost { work: cost.work + read, ..cost }
        }
        // Expired tokens are removed, too.
        AccountCommand::Mint { .. } => {
            let rows = GRANTING_ROWS + USER_TOKENS_MAX * GRANT_ROWS;
            let cost = Cost::of_rows(rows, (2 + USER_TOKENS_MAX) * GRANT_BYTES);
            Cost { work: cost.work + ACCOUNT_BYTES + GRANTS * GRANT_BYTES, ..cost }
        }
        AccountCommand::Revoke { .. } => Cost::of_rows(GRANT_ROWS, GRANT_BYTES),
    }
}

/// Maximum size of the row of an app, in bytes.
const APP_BYTES_MAX: usize = APP_NAME_BYTES_MAX + (REDIRECT_URIS_MAX + 1) * URI_BYTES_MAX + 128;

fn app_bytes(app: &AppRequest) -> usize {
    let website = app.website.as_ref().map_or(0, |website: &Website| website.as_str().len());
    let redirects: usize =
        app.redirects.iter().map(|uri: &RedirectUri| uri.as_str().len() + 4).sum();
    app.name.as_str().len() + website + redirects + 128
}
