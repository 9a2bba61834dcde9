//! The entities of the API, with every field that its documentation lists: defaults where the facts have no such thing.
//!
//! **Invariant:** an entity shows a reader only what [`feed::Viewer`] says is visible to them.

mod account;
pub(crate) mod filter;
pub(crate) mod html;
pub(crate) mod instance;
mod media;
mod notification;
mod poll;
mod relationship;
pub(crate) mod status;
mod tag;
pub(crate) mod time;

use std::cell::OnceCell;
use std::collections::HashMap;

use feed::accounts::AccountState;
use feed::{Facts, UserId, Viewer};
use node::{Node, Store};
use serde_json::Value;

use crate::filters::Matcher;

/// Makes entities for one reader. May block.
pub(crate) struct Entities<'a> {
    base: &'a str,
    /// None without a token of a user: such a reader sees what is public.
    reader: Option<UserId>,
    viewer: Viewer<'a, Store>,
    now_ms: u64,
    /// The filters of the reader, read with the first status that is made; none if nothing can match.
    matcher: OnceCell<Option<Matcher>>,
    /// Accounts that were made already. A page has at most a few thousand: those whom its texts mention.
    accounts: HashMap<UserId, Option<Value>>,
    /// Handles that were looked up already.
    handles: HashMap<UserId, Option<String>>,
}

impl<'a> Entities<'a> {
    /// `base` is the URL of the server, without a slash at the end.
    pub(crate) fn new(node: &'a Node, base: &'a str, reader: Option<UserId>) -> Self {
        let viewer = node.viewer(reader);
        Self {
            base,
            reader,
            viewer,
            now_ms: node.now_ms(),
            matcher: OnceCell::new(),
            accounts: HashMap::new(),
            handles: HashMap::new(),
        }
    }

    pub(crate) fn facts(&self) -> Facts<'a, Store> {
        self.viewer.facts()
    }

    pub(crate) fn viewer(&self) -> &Viewer<'a, Store> {
        &self.viewer
    }

    /// Whether the reader may see a user, or blocks them: whom one blocks is in one's list of blocks.
    pub(crate) fn knows(&self, user: UserId) -> bool {
        let blocks = |reader| self.facts().blocks(reader, user);
        self.is_approved(user)
            && (self.viewer.visible_user(user) || self.reader.is_some_and(blocks))
    }

    /// Whether the reader may see a user.
    pub(crate) fn is_visible(&self, user: UserId) -> bool {
        self.viewer.visible_user(user) && self.is_approved(user)
    }

    /// Whether a user exists whose account does not wait for approval. Users need no account.
    fn is_approved(&self, user: UserId) -> bool {
        let account = || self.facts().account(user);
        self.facts().exists(user)
            && account().is_none_or(|account| account.state != AccountState::Pending)
    }

    fn handle(&mut self, user: UserId) -> Option<String> {
        let facts = self.facts();
        let find = || facts.user(user).map(|found| found.handle.as_str().to_owned());
        self.handles.entry(user).or_insert_with(find).clone()
    }
}
