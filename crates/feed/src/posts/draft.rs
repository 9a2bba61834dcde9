//! A draft: a post to publish, now or later.

use crate::ids::{PostId, UserRef};
use crate::parts::parts;
use crate::polls::NewPoll;
use crate::posts::Visibility;
use crate::posts::content::{Content, Patch};
use crate::quotes::QuotePolicy;
use crate::refusal::Refusal;
use crate::text::PostText;

parts! {
    /// A post to publish.
    pub struct Draft {
        /// Author of the post.
        pub author: UserRef,
        /// Content of the post.
        pub content: Content,
    }
    parts {
        /// Parent post, for a reply.
        pub parent: Option<PostId> = 1,
        /// Whether a post without a parent replies to the user whose mention begins the text, as in the 2014 report.
        pub opens_reply: bool = 2,
        /// Audience of the post.
        pub visibility: Visibility = 3,
        /// Poll, whose time begins at publication.
        pub poll: Option<NewPoll> = 8,
        /// The post that it quotes.
        pub quote: Option<PostId> = 10,
        /// Users who may quote it.
        pub quote_policy: QuotePolicy = 11,
    }
}

impl Draft {
    /// Creates a public, text-only post.
    #[must_use]
    pub fn new(author: UserRef, text: PostText) -> Self {
        Self::of(author, Content::of_text(text))
    }

    /// Creates a public post from the parts of a patch, except changes of pictures and of a quote: a new post has none.
    #[must_use]
    pub fn saying(author: UserRef, patch: Patch) -> Self {
        let mut content = Content::default();
        patch.apply(&mut content);
        let Patch { poll, quote_policy, .. } = patch;
        Self {
            poll: poll.flatten(),
            quote_policy: quote_policy.unwrap_or_default(),
            ..Self::of(author, content)
        }
    }

    /// Refuses an invalid combination of parts.
    ///
    /// # Errors
    /// The errors of [`Content::check`].
    pub fn check(&self) -> Result<(), Refusal> {
        self.content.check(self.poll.is_some())
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
    use crate::media::{Description, MediaChange, MediaId};
    use crate::polls::{Poll, PollId, PollOptions, PollTime};
    use crate::posts::Post;
    use crate::quotes::Quote;
    use crate::reactions::Boost;
    use crate::text::{Language, Warning};

    /// Contents, each with one part more than the one before.
    fn contents() -> Vec<Content> {
        let mut content = Content::default();
        let add: [&dyn Fn(&mut Content); 5] = [
            &|content| content.text = PostText::parse("x").unwrap(),
            &|content| content.warning = Warning::parse("w").unwrap(),
            &|content| content.sensitive = true,
            &|content| content.language = Language::parse("de").ok(),
            &|content| content.media = vec![MediaId(8)],
        ];
        add.iter().map(|add| (add(&mut content), content.clone()).1).collect()
    }

    /// Drafts, each with one part more than the one before.
    fn drafts() -> Vec<Draft> {
        let mut draft = Draft::of(UserRef::Id(UserId(1)), contents().pop().unwrap());
        let poll = NewPoll {
            options: PollOptions::parse(["a", "b"]).unwrap(),
            multiple: true,
            hide_totals: false,
            time: PollTime::from_secs(300).unwrap(),
        };
        let add: [&dyn Fn(&mut Draft); 6] = [
            &|draft| draft.parent = Some(PostId(7)),
            &|draft| draft.opens_reply = true,
            &|draft| draft.visibility = Visibility::Direct,
            &|draft| draft.poll = Some(poll.clone()),
            &|draft| draft.quote = Some(PostId(12)),
            &|draft| draft.quote_policy = QuotePolicy::Nobody,
        ];
        add.iter().map(|add| (add(&mut draft), draft.clone()).1).collect()
    }

    /// Checks records of which each has one part more than the one before.
    fn grow<T: Serialize + DeserializeOwned + PartialEq + Debug>(records: &[T]) {
        for (record, next) in records.iter().zip(&records[1..]) {
            let [before, after] = [record, next].map(|record| rows::encode(record).to_vec());
            assert_eq!(before[1..], after[1..before.len()], "the others stay as they are");
            assert_eq!(after[0], before[0] + 2);
            assert_eq!(&rows::decode::<T>(&after), next);
            assert_eq!(rows::try_decode::<T>(&after[..after.len() - 1]), None);
        }
    }

    #[test]
    fn a_part_takes_its_tag_and_its_value_and_a_part_that_is_not_there_takes_nothing() {
        let text = Draft::new(UserRef::Id(UserId(1)), PostText::parse("x").unwrap());
        check("02 0001 02 000178", &text);
        grow(&contents());
        grow(&drafts());
    }

    #[test]
    fn a_record_has_one_form() {
        let unknown: &[u8] = &[2, 99, 1];
        let twice = &[4, 5, 1, 5, 1];
        let out_of_order = &[4, 5, 1, 4, 1, b'w'];
        let longer = &[3, 5, 1, 0];
        for bytes in [unknown, twice, out_of_order, longer] {
            assert_eq!(rows::try_decode::<Content>(bytes), None, "{bytes:?}");
        }
    }

    /// A failure means that stored bytes and digests of commands have changed.
    #[test]
    fn bytes_with_all_parts_stay() {
        let draft = drafts().pop().unwrap();
        let Draft { content, poll, .. } = draft.clone();
        let Content { text, warning, sensitive, language, media } = content.clone();
        let description = Description::parse("d").ok();
        let patch = Patch {
            text: Some(text),
            warning: Some(warning),
            sensitive: Some(sensitive),
            language: Some(language),
            media: Some(media),
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
            content,
            in_reply_to: Some(PostId(7)),
            reply_to: Some(UserId(2)),
            visibility: Visibility::Direct,
            poll: poll.map(|poll| Poll::new(PollId(9), &poll, 0, None)),
            quote: Some(quote),
            quote_policy: QuotePolicy::Nobody,
            mentions: vec![UserId(2)],
            edited: Some(Stamp(10)),
            boost: Some(boost),
            conversation: Some(PostId(7)),
            thread: Some(PostId(11)),
        };
        let publish = "14 0e 0001 0a 000178 040177 0501 0601026465 070108 010107 0201 0303 \
                       0801 0201610162 01 00 ac02 0a010c 0b02";
        check(publish, &Command::Publish(Box::new(draft)));
        let edit = "15 07 12 00010178 04010177 050101 060101026465 07010108 08010102016101620100ac02 \
                    0901 08 010164 00 0a01 0b0102";
        check(edit, &Command::edit(PostId(7), patch));
        let stored = "18 01 0a 000178 040177 0501 0601026465 070108 010107 020102 0303 \
                      0801 09 0201610162 01 00 e0a712 0a010c01 0b02 200102 21010a 2201 05 06 01 0104 230107 24010b";
        check(stored, &post);
    }

    #[test]
    fn a_part_that_is_not_there_has_its_default() {
        let content = Content {
            text: PostText::none(),
            warning: Warning::parse("").unwrap(),
            sensitive: false,
            language: None,
            media: Vec::new(),
        };
        let draft = Draft {
            author: UserRef::Id(UserId(1)),
            content: content.clone(),
            parent: None,
            opens_reply: false,
            visibility: Visibility::Public,
            poll: None,
            quote: None,
            quote_policy: QuotePolicy::Public,
        };
        let post = Post {
            author: UserId(1),
            content,
            in_reply_to: None,
            reply_to: None,
            visibility: Visibility::Public,
            poll: None,
            quote: None,
            quote_policy: QuotePolicy::Public,
            mentions: Vec::new(),
            edited: None,
            boost: None,
            conversation: None,
            thread: None,
        };
        check("02 0001 00", &draft);
        check("02 01 00", &post);
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
