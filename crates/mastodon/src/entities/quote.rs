//! Entities `Quote`, `ShallowQuote` and `QuoteApproval` of a status.

use feed::quotes::{QuotePolicy, QuoteState};
use feed::{Post, UserId};

use super::Entities;
use super::json::{field, start_field};

impl Entities<'_> {
    /// Appends the quote in a status that the reader sees, and the users who may quote `approves`: the status or its
    /// boosted status. If the status is itself shown as a quote, appends only the id of its quote. Returns `None` if
    /// this needs rows that may not be read.
    pub(super) fn append_quotes(
        &mut self,
        post: &Post,
        approves: &Post,
        is_quoted: bool,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        start_field("quote", out);
        match &post.quote {
            None => out.extend_from_slice(b"null"),
            Some(quote) => self.append_quote(quote, is_quoted, out)?,
        }
        self.append_quote_approval(approves, out)
    }

    fn append_quote(
        &mut self,
        quote: &feed::quotes::Quote,
        is_quoted: bool,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        // The quoted status is taken from memory if the reader certainly sees it.
        let is_certain = !is_quoted && !quote.is_revoked && self.viewer().has_no_blocks_or_mutes();
        let mut quoted = is_certain.then(|| self.shared_part(quote.post)).flatten();
        let mut state = QuoteState::Accepted;
        if quoted.is_none() {
            if !quote.is_revoked && !self.may_read() {
                return None;
            }
            state = self.viewer().quoted(quote);
            if state == QuoteState::Accepted && !is_quoted {
                quoted = self.shared_part(quote.post);
                // The quoted status was deleted meanwhile.
                state = if quoted.is_some() { state } else { QuoteState::Deleted };
            }
        }
        out.extend_from_slice(b"{\"state\":\"");
        out.extend_from_slice(state.name().as_bytes());
        out.push(b'"');
        let id = (state == QuoteState::Accepted).then(|| quote.post.0.to_string());
        match (is_quoted, &quoted) {
            (true, _) => field("quoted_status_id", &id, out),
            (false, None) => field("quoted_status", &(), out),
            (false, Some(quoted)) => {
                start_field("quoted_status", out);
                self.append_parts((quote.post, &quoted.parts()), None, true, out)?;
            }
        }
        out.push(b'}');
        Some(())
    }

    fn append_quote_approval(&self, post: &Post, out: &mut Vec<u8>) -> Option<()> {
        let is_of = |user: UserId| self.reader == Some(user);
        if !is_of(post.author) && post.asks_rows_for_quotes() && !self.may_read() {
            return None;
        }
        out.extend_from_slice(match post.quote_policy {
            _ if !post.visibility.is_open() => b",\"quote_approval\":{\"automatic\":[]".as_slice(),
            QuotePolicy::Public => b",\"quote_approval\":{\"automatic\":[\"public\"]",
            QuotePolicy::Followers => b",\"quote_approval\":{\"automatic\":[\"followers\"]",
            QuotePolicy::Nobody => b",\"quote_approval\":{\"automatic\":[]",
        });
        out.extend_from_slice(match self.viewer().may_quote(post) {
            true => b",\"manual\":[],\"current_user\":\"automatic\"}".as_slice(),
            false => b",\"manual\":[],\"current_user\":\"denied\"}",
        });
        Some(())
    }
}
