//! Content of posts from users: a draft, which is published now or later, and a patch, which edits a published post.
//!
//! The type of each part checks the part alone. [`check_together`] checks the combination for drafts, patches and
//! posts.

use crate::ids::{PostId, UserRef};
use crate::media::{MediaChange, MediaId};
use crate::parts::parts;
use crate::polls::NewPoll;
use crate::posts::Visibility;
use crate::quotes::QuotePolicy;
use crate::refusal::Refusal;
use crate::text::{Language, PostText, Warning};

parts! {
    /// A post to publish.
    pub struct Draft {
        /// Author of the post.
        pub author: UserRef,
    }
    parts {
        /// Text of the post; may be empty only with pictures.
        pub text: PostText = 0,
        /// Parent post, for a reply.
        pub parent: Option<PostId> = 1,
        /// Whether a post without a parent replies to the user whose mention begins the text, as in the 2014 report.
        pub opens_reply: bool = 2,
        /// Audience of the post.
        pub visibility: Visibility = 3,
        /// Content warning, shown instead of the text until the reader opens the post; may be empty.
        pub warning: Warning = 4,
        /// Whether pictures are hidden until the reader asks for them.
        pub sensitive: bool = 5,
        /// Language of the text.
        pub language: Option<Language> = 6,
        /// Unattached pictures of the author, in their order.
        pub media: Vec<MediaId> = 7,
        /// Poll, whose time begins at publication.
        pub poll: Option<NewPoll> = 8,
        /// The post that it quotes.
        pub quote: Option<PostId> = 10,
        /// Users who may quote it.
        pub quote_policy: QuotePolicy = 11,
    }
}

parts! {
    /// A change of a post. Missing parts are left unchanged.
    #[derive(Default)]
    pub struct Patch {}
    parts {
        /// The new text.
        pub text: Option<PostText> = 0,
        /// The new content warning; an empty one removes it.
        pub warning: Option<Warning> = 4,
        /// Whether pictures are hidden until the reader asks for them.
        pub sensitive: Option<bool> = 5,
        /// The new language; `Some(None)` removes it.
        pub language: Option<Option<Language>> = 6,
        /// The new pictures: current ones, or unattached ones of the author. Other current pictures are removed.
        pub media: Option<Vec<MediaId>> = 7,
        /// The new poll; `Some(None)` removes it.
        pub poll: Option<Option<NewPoll>> = 8,
        /// Changes of the metadata of pictures.
        pub described: Vec<MediaChange> = 9,
        /// Whether its quote is revoked, by the author of the quoted post.
        pub revoke_quote: bool = 10,
        /// Users who may quote it from now on.
        pub quote_policy: Option<QuotePolicy> = 11,
    }
}

impl Draft {
    /// Creates a public, text-only post.
    #[must_use]
    pub fn new(author: UserRef, text: PostText) -> Self {
        Self { text, ..Self::of(author) }
    }

    /// Creates a public post from the parts of a patch, except changes of pictures and of a quote: a new post has none.
    #[must_use]
    pub fn saying(author: UserRef, patch: Patch) -> Self {
        let Patch { text, warning, sensitive, language, media, poll, quote_policy, .. } = patch;
        Self {
            text: text.unwrap_or_default(),
            warning: warning.unwrap_or_default(),
            sensitive: sensitive.unwrap_or_default(),
            language: language.flatten(),
            media: media.unwrap_or_default(),
            poll: poll.flatten(),
            quote_policy: quote_policy.unwrap_or_default(),
            ..Self::of(author)
        }
    }

    /// Refuses an invalid combination of parts.
    ///
    /// # Errors
    /// The errors of [`check_together`].
    pub fn check(&self) -> Result<(), Refusal> {
        check_together(&self.text, &self.media, self.poll.is_some())
    }
}

impl Patch {
    /// Creates a change of the text only.
    #[must_use]
    pub fn of_text(text: PostText) -> Self {
        Self { text: Some(text), ..Self::default() }
    }
}

/// Refuses an invalid combination of parts.
///
/// # Errors
/// [`Refusal::PollWithMedia`], and [`Refusal::BadText`] if a post has neither text nor pictures.
pub fn check_together(text: &PostText, media: &[MediaId], has_poll: bool) -> Result<(), Refusal> {
    match (has_poll, media.is_empty()) {
        (true, false) => Err(Refusal::PollWithMedia),
        (_, true) if text.as_str().is_empty() => Err(Refusal::BadText),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use rows::Stamp;
    use serde::Serialize;
    use serde::de::DeserializeOwned;

    use super::*;
    use crate::command::Command;
    use crate::ids::UserId;
    use crate::media::Description;
    use crate::polls::{Poll, PollId, PollOptions, PollTime};
    use crate::posts::Post;
    use crate::quotes::Quote;
    use crate::reactions::Boost;

    /// Drafts, each with one part more than the one before.
    fn drafts() -> Vec<Draft> {
        let mut draft = Draft::of(UserRef::Id(UserId(1)));
        let poll = NewPoll {
            options: PollOptions::parse(["a", "b"]).unwrap(),
            multiple: true,
            hide_totals: false,
            time: PollTime::from_secs(300).unwrap(),
        };
        let add: [&dyn Fn(&mut Draft); 11] = [
            &|draft| draft.text = PostText::parse("x").unwrap(),
            &|draft| draft.parent = Some(PostId(7)),
            &|draft| draft.opens_reply = true,
            &|draft| draft.visibility = Visibility::Direct,
            &|draft| draft.warning = Warning::parse("w").unwrap(),
            &|draft| draft.sensitive = true,
            &|draft| draft.language = Language::parse("de").ok(),
            &|draft| draft.media = vec![MediaId(8)],
            &|draft| draft.poll = Some(poll.clone()),
            &|draft| draft.quote = Some(PostId(12)),
            &|draft| draft.quote_policy = QuotePolicy::Nobody,
        ];
        add.iter().map(|add| (add(&mut draft), draft.clone()).1).collect()
    }

    #[test]
    fn a_part_takes_its_tag_and_its_value_and_a_part_that_is_not_there_takes_nothing() {
        let drafts = drafts();
        let bytes = |draft: &Draft| rows::encode(draft).to_vec();
        assert_eq!(bytes(&drafts[0]), [3, 0, 1, 0, 1, b'x'], "the author and a text");
        for (draft, next) in drafts.iter().zip(&drafts[1..]) {
            let (before, after) = (bytes(draft), bytes(next));
            assert_eq!(before[1..], after[1..before.len()], "the others stay as they are");
            assert_eq!(after[0], before[0] + 2);
            assert_eq!(&rows::decode::<Draft>(&after), next);
            assert_eq!(rows::try_decode::<Draft>(&after[..after.len() - 1]), None);
        }
    }

    #[test]
    fn a_record_has_one_form() {
        let unknown: &[u8] = &[3, 0, 1, 99, 1];
        let twice = &[5, 0, 1, 5, 1, 5, 1];
        let out_of_order = &[5, 0, 1, 5, 1, 4, 1, b'w'];
        let longer = &[3, 0, 1, 5, 1, 0];
        for bytes in [unknown, twice, out_of_order, longer] {
            assert_eq!(rows::try_decode::<Draft>(bytes), None, "{bytes:?}");
        }
    }

    /// A failure means that stored bytes and digests of commands have changed.
    #[test]
    fn bytes_with_all_parts_stay() {
        let draft = drafts().pop().unwrap();
        let Draft { text, warning, language, media, poll, .. } = draft.clone();
        let description = Description::parse("d").ok();
        let patch = Patch {
            text: Some(text.clone()),
            warning: Some(warning.clone()),
            sensitive: Some(true),
            language: Some(language.clone()),
            media: Some(media.clone()),
            poll: Some(poll.clone()),
            described: vec![MediaChange { media: MediaId(8), description, focus: None }],
            revoke_quote: true,
            quote_policy: Some(QuotePolicy::Nobody),
        };
        let quote = Quote { post: PostId(12), is_revoked: true };
        let boost =
            Boost { post: PostId(5), author: UserId(6), is_recent: true, earlier: vec![UserId(4)] };
        let post = Post {
            author: UserId(1),
            text,
            in_reply_to: Some(PostId(7)),
            reply_to: Some(UserId(2)),
            visibility: Visibility::Direct,
            warning,
            sensitive: true,
            language,
            media,
            poll: poll.map(|poll| Poll::new(PollId(9), &poll, 0, None)),
            quote: Some(quote),
            quote_policy: QuotePolicy::Nobody,
            mentions: vec![UserId(2)],
            edited: Some(Stamp(10)),
            boost: Some(boost),
            conversation: Some(PostId(7)),
            thread: Some(PostId(11)),
        };
        let publish = "14 17 0001 000178 010107 0201 0303 040177 0501 0601026465 070108 \
                       0801 0201610162 01 00 ac02 0a010c 0b02";
        check(publish, &Command::Publish(Box::new(draft)));
        let edit = "15 07 12 00010178 04010177 050101 060101026465 07010108 08010102016101620100ac02 \
                    0901 08 010164 00 0a01 0b0102";
        check(edit, &Command::edit(PostId(7), patch));
        let stored = "21 01 000178 010107 020102 0303 040177 0501 0601026465 070108 \
                      0801 09 0201610162 01 00 e0a712 0a010c01 0b02 200102 21010a 2201 05 06 01 0104 230107 24010b";
        check(stored, &post);
    }

    #[test]
    fn a_part_that_is_not_there_has_its_default() {
        let draft = Draft {
            author: UserRef::Id(UserId(1)),
            text: PostText::none(),
            parent: None,
            opens_reply: false,
            visibility: Visibility::Public,
            warning: Warning::parse("").unwrap(),
            sensitive: false,
            language: None,
            media: Vec::new(),
            poll: None,
            quote: None,
            quote_policy: QuotePolicy::Public,
        };
        let post = Post {
            author: UserId(1),
            text: PostText::none(),
            in_reply_to: None,
            reply_to: None,
            visibility: Visibility::Public,
            warning: Warning::parse("").unwrap(),
            sensitive: false,
            language: None,
            media: Vec::new(),
            poll: None,
            quote: None,
            quote_policy: QuotePolicy::Public,
            mentions: Vec::new(),
            edited: None,
            boost: None,
            conversation: None,
            thread: None,
        };
        check("01 0001", &draft);
        check("01 01", &post);
    }

    /// Checks the bytes of a record against hexadecimal digits.
    fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(expect: &str, record: &T) {
        let bytes = rows::encode(record);
        let shown: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(shown, expect.replace(' ', ""), "{record:?}");
        assert_eq!(&rows::decode::<T>(&bytes), record);
    }

    #[test]
    fn an_edit_tells_what_stays_from_what_is_removed() {
        let removes = Patch {
            warning: Some(Warning::default()),
            language: Some(None),
            media: Some(Vec::new()),
            poll: Some(None),
            ..Patch::default()
        };
        for patch in [removes, Patch::default()] {
            let command = Command::edit(PostId(7), patch);
            assert_eq!(rows::decode::<Command>(&rows::encode(&command)), command);
        }
    }
}
