//! Why commands about accounts are refused.

use serde::{Deserialize, Serialize};

use crate::limits;

/// Why a command about accounts changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum AccountRefusal {
    /// The e-mail address is malformed.
    #[error("an e-mail address is NAME@HOST with at most {} bytes", limits::EMAIL_BYTES_MAX)]
    BadEmail,
    /// The password hash is malformed. No client sends one.
    #[error("the password hash is malformed")]
    BadPasswordHash,
    /// The name of an app is malformed.
    #[error("the name of an app is 1 to {} characters on one line", limits::APP_NAME_CHARS_MAX)]
    BadAppName,
    /// A redirect URI is malformed, or there are none or too many.
    #[error(
        "an app has 1 to {} redirect URIs without a fragment, of at most {} bytes: an http or https URL, NAME:// with a \
         name of the app, or a scheme with a dot",
        limits::REDIRECT_URIS_MAX,
        limits::URI_BYTES_MAX
    )]
    BadRedirectUri,
    /// The website of an app is malformed.
    #[error("a website is an http or https URL of at most {} bytes", limits::URI_BYTES_MAX)]
    BadWebsite,
    /// A scope does not exist, there is none, or the app did not register it.
    #[error("the scope is unknown, or the app has not registered it")]
    BadScope,
    /// Another account has the e-mail address.
    #[error("this e-mail address is taken")]
    EmailTaken,
    /// The user has no account.
    #[error("the user has no account")]
    NoAccount,
    /// The user has an account already.
    #[error("the user has an account already")]
    HasAccount,
    /// The account is pending or disabled.
    #[error("the account is not active")]
    NotActive,
    /// The password was changed after it was compared.
    #[error("the password has changed")]
    PasswordChanged,
    /// No such invite, or it has expired, or it was used as often as it may be.
    #[error("the invite is not valid, or it was used already")]
    BadInvite,
    /// There are too many invites.
    #[error("there are {} invites, the maximum; wait until one expires", limits::INVITES_MAX)]
    TooManyInvites,
    /// No such app.
    #[error("there is no such app")]
    AppNotFound,
    /// No such authorization code, or it has expired, or it is of another app, redirect URI or challenge.
    #[error("the authorization code is not valid for this request, or it has expired")]
    BadCode,
    /// The secret exists already, which random ones never do.
    #[error("the secret is in use")]
    SecretUsed,
}

impl AccountRefusal {
    /// The stable name of this refusal in replies.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::BadEmail => "bad_email",
            Self::BadPasswordHash => "bad_password_hash",
            Self::BadAppName => "bad_app_name",
            Self::BadRedirectUri => "bad_redirect_uri",
            Self::BadWebsite => "bad_website",
            Self::BadScope => "bad_scope",
            Self::EmailTaken => "email_taken",
            Self::NoAccount => "no_account",
            Self::HasAccount => "has_account",
            Self::NotActive => "account_not_active",
            Self::PasswordChanged => "password_changed",
            Self::BadInvite => "bad_invite",
            Self::TooManyInvites => "too_many_invites",
            Self::AppNotFound => "app_not_found",
            Self::BadCode => "bad_code",
            Self::SecretUsed => "secret_used",
        }
    }
}
