//! The settings of the Mastodon API.

use std::net::SocketAddr;

use edge::BlockingReads;
use mastodon::{MastodonOptions, Registrations};

use super::{Settings, SignUp};

impl Settings {
    /// Options of the Mastodon API. `listen` is the address that is bound.
    pub(crate) fn mastodon(&self, listen: SocketAddr, reads: &BlockingReads) -> MastodonOptions {
        let scheme = if self.is_https() { "https" } else { "http" };
        let base = self.public_url.clone().unwrap_or_else(|| format!("{scheme}://{listen}"));
        MastodonOptions {
            registrations: match self.registrations.unwrap_or(SignUp::Closed) {
                SignUp::Closed => Registrations::Closed,
                SignUp::Invite => Registrations::Invite,
                SignUp::Approval => Registrations::Approval,
                SignUp::Open => Registrations::Open,
            },
            password_grant: self.password_grant.unwrap_or(false),
            anonymous_reads: self.anonymous_reads.unwrap_or(false),
            reads: reads.clone(),
            ..MastodonOptions::new(&base)
        }
    }
}
