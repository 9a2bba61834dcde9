//! Entities `Poll` and `ScheduledStatus`.

use feed::polls::{PollOption, PollOptions};
use feed::schedule::ScheduledPost;
use feed::text::Language;
use feed::{Content, PollChoices, Post, PostId, ScheduledId, UserId};
use serde_json::{Value, json};

use super::Entities;
use super::status::visibility_name;
use super::time::time;

impl Entities<'_> {
    /// Poll of a status that is visible to the reader.
    pub(crate) fn poll_in(&self, id: PostId) -> Option<Value> {
        let post = self.visible_post(id)?;
        self.poll(id, &post)
    }

    /// Poll of a post. The votes per option are hidden if the author wants it, until the poll ends.
    pub(super) fn poll(&self, id: PostId, post: &Post) -> Option<Value> {
        let poll = post.poll.as_ref()?;
        let is_over = poll.is_over(self.now_ms);
        let counts = self.facts().poll_counts(poll.id);
        let are_shown = is_over || !poll.hide_totals;
        let option = |(option, votes): (&PollOption, u32)| json!({"title": option.as_str(), "votes_count": are_shown.then_some(votes)});
        let options = poll.options.as_slice().iter().zip(counts.votes).map(option);
        let mut entity = json!({
            "id": id.0.to_string(),
            "expires_at": time(poll.ends_ms),
            "expired": is_over,
            "multiple": poll.multiple,
            "votes_count": counts.votes.iter().map(|votes| u64::from(*votes)).sum::<u64>(),
            "voters_count": counts.voters,
            "options": options.collect::<Vec<_>>(),
            "emojis": [],
        });
        if let Some((fields, reader)) = entity.as_object_mut().zip(self.reader) {
            let own = self.facts().vote(poll.id, reader);
            // Authors count as having voted, as in Mastodon, so that apps do not ask them to vote.
            let voted = own.is_some() || post.author == reader;
            fields.insert("voted".to_owned(), voted.into());
            let own: Vec<usize> = own.into_iter().flat_map(PollChoices::iter).collect();
            fields.insert("own_votes".to_owned(), own.into());
        }
        Some(entity)
    }

    /// Scheduled status of the reader.
    pub(crate) fn scheduled(&self, me: UserId, id: ScheduledId) -> Option<Value> {
        let ScheduledPost { draft, due_ms } = self.facts().scheduled(me, id)?;
        let poll = draft.poll.map(|poll| {
            json!({
                "options": titles(poll.options.as_slice()),
                "expires_in": poll.time.secs(),
                "multiple": poll.multiple,
                "hide_totals": poll.hide_totals,
            })
        });
        let Content { text, warning, sensitive, language, media } = draft.content;
        let ids: Vec<String> = media.iter().map(|media| media.0.to_string()).collect();
        Some(json!({
            "id": id.0.to_string(),
            "scheduled_at": time(due_ms),
            "params": {
                "text": text.as_str(),
                "poll": poll,
                "media_ids": (!ids.is_empty()).then_some(ids),
                "sensitive": sensitive,
                "spoiler_text": warning.as_str(),
                "visibility": visibility_name(draft.visibility),
                "in_reply_to_id": draft.parent.map(|parent| parent.0),
                "language": language.as_ref().map(Language::as_str),
                // These fields are deprecated or meaningless here, but required by the types of apps.
                "application_id": 0,
                "scheduled_at": null,
                "idempotency": null,
                "with_rate_limit": false,
                "quoted_status_id": draft.quote.map(|quoted| quoted.0.to_string()),
                "quote_approval_policy": draft.quote_policy.name(),
            },
            "media_attachments": self.attachments(&media),
        }))
    }
}

/// Poll of the entity `StatusEdit`.
pub(super) fn of_version(options: &PollOptions) -> Value {
    let titles = titles(options.as_slice());
    let options = titles.iter().map(|title| json!({"title": title}));
    json!({"options": options.collect::<Vec<_>>()})
}

fn titles(options: &[PollOption]) -> Vec<&str> {
    options.iter().map(PollOption::as_str).collect()
}
