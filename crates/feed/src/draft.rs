//! What a user says: a draft, which is published at once or later, and a patch, which edits what was published.
//!
//! Each part is checked when its type is made. What parts must be together, [`check_together`] says for all three.

use crate::ids::{PostId, UserRef};
use crate::media::{MediaChange, MediaId};
use crate::parts::parts;
use crate::poll::NewPoll;
use crate::post::Visibility;
use crate::refusal::Refusal;
use crate::text::{Language, PostText, Warning};

parts! {
    /// A post to be published.
    pub struct Draft {
        /// The author.
        pub author: UserRef,
    }
    parts {
        /// Its text, which only one with pictures lacks.
        pub text: PostText = 0,
        /// The post replied to.
        pub parent: Option<PostId> = 1,
        /// Whether it replies to the user whose mention begins the text, as by the rule of the 2014 report, if it has no
        /// parent.
        pub opens_reply: bool = 2,
        /// Who may see it.
        pub visibility: Visibility = 3,
        /// Shown instead of the text until the reader asks for it; may be empty.
        pub warning: Warning = 4,
        /// Whether its images should be hidden until the reader asks for them.
        pub sensitive: bool = 5,
        /// The language of the text.
        pub language: Option<Language> = 6,
        /// Unattached pictures of its author, in their order.
        pub media: Vec<MediaId> = 7,
        /// Its poll, whose time begins when it is published.
        pub poll: Option<NewPoll> = 8,
    }
}

parts! {
    /// A change of a post. A part that it lacks stays as it is.
    #[derive(Default)]
    pub struct Patch {}
    parts {
        /// The new text.
        pub text: Option<PostText> = 0,
        /// The new warning; an empty one removes it.
        pub warning: Option<Warning> = 4,
        /// Whether it is sensitive from now on.
        pub sensitive: Option<bool> = 5,
        /// The new language, or that there is none.
        pub language: Option<Option<Language>> = 6,
        /// All its pictures from now on: those that it has, or unattached ones of its author. Others are removed.
        pub media: Option<Vec<MediaId>> = 7,
        /// The poll from now on, or that there is none.
        pub poll: Option<Option<NewPoll>> = 8,
        /// Changes of its pictures.
        pub described: Vec<MediaChange> = 9,
    }
}

impl Draft {
    /// A public post of a text alone.
    #[must_use]
    pub fn new(author: UserRef, text: PostText) -> Self {
        Self { text, ..Self::of(author) }
    }

    /// A public post of what an edit would say. There are no pictures yet that it could describe.
    #[must_use]
    pub fn saying(author: UserRef, patch: Patch) -> Self {
        let Patch { text, warning, sensitive, language, media, poll, described: _ } = patch;
        Self {
            text: text.unwrap_or_default(),
            warning: warning.unwrap_or_default(),
            sensitive: sensitive.unwrap_or_default(),
            language: language.flatten(),
            media: media.unwrap_or_default(),
            poll: poll.flatten(),
            ..Self::of(author)
        }
    }

    /// Refuses parts that no post has together.
    ///
    /// # Errors
    /// See [`check_together`].
    pub fn check(&self) -> Result<(), Refusal> {
        check_together(&self.text, &self.media, self.poll.is_some())
    }
}

impl Patch {
    /// A change of the text alone.
    #[must_use]
    pub fn of_text(text: PostText) -> Self {
        Self { text: Some(text), ..Self::default() }
    }
}

/// Refuses parts that no post has together.
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
    use super::*;
    use crate::command::Command;
    use crate::ids::UserId;
    use crate::poll::{PollOptions, PollTime};

    /// Each with one part more than the one before.
    fn drafts() -> Vec<Draft> {
        let mut draft = Draft::of(UserRef::Id(UserId(1)));
        let poll = NewPoll {
            options: PollOptions::parse(["a", "b"]).unwrap(),
            multiple: true,
            hide_totals: false,
            time: PollTime::from_secs(300).unwrap(),
        };
        let add: [&dyn Fn(&mut Draft); 9] = [
            &|draft| draft.text = PostText::parse("x").unwrap(),
            &|draft| draft.parent = Some(PostId(7)),
            &|draft| draft.opens_reply = true,
            &|draft| draft.visibility = Visibility::Direct,
            &|draft| draft.warning = Warning::parse("w").unwrap(),
            &|draft| draft.sensitive = true,
            &|draft| draft.language = Language::parse("de").ok(),
            &|draft| draft.media = vec![MediaId(8)],
            &|draft| draft.poll = Some(poll.clone()),
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
        let unknown = [3, 0, 1, 99, 1];
        assert_eq!(rows::try_decode::<Draft>(&unknown), None);
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
