//! Content of posts, which drafts, posts and earlier versions of posts contain, and patches, which change it.
//!
//! The type of each part checks the part alone; [`Content::check`] checks the combination.

use crate::media::{MediaChange, MediaId};
use crate::parts::parts;
use crate::polls::NewPoll;
use crate::quotes::QuotePolicy;
use crate::refusal::Refusal;
use crate::text::{Language, PostText, Warning};

parts! {
    /// Content of a post.
    #[derive(Default)]
    pub struct Content {}
    parts {
        /// Text of the post; may be empty only with pictures.
        pub text: PostText = 0,
        /// Content warning, shown instead of the text until the reader opens the post; may be empty.
        pub warning: Warning = 4,
        /// Whether pictures are hidden until the reader asks for them.
        pub sensitive: bool = 5,
        /// Language of the text.
        pub language: Option<Language> = 6,
        /// Pictures in their order, at most [`limits::POST_MEDIA_MAX`](crate::limits::POST_MEDIA_MAX). Those of a draft
        /// are unattached and belong to the author.
        pub media: Vec<MediaId> = 7,
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

impl Content {
    /// Creates the content of a text-only post.
    #[must_use]
    pub fn of_text(text: PostText) -> Self {
        Self { text, ..Self::default() }
    }

    /// Refuses an invalid combination of parts.
    ///
    /// # Errors
    /// [`Refusal::PollWithMedia`], and [`Refusal::BadText`] if a post has neither text nor pictures.
    pub fn check(&self, has_poll: bool) -> Result<(), Refusal> {
        match (has_poll, self.media.is_empty()) {
            (true, false) => Err(Refusal::PollWithMedia),
            (_, true) if self.text.as_str().is_empty() => Err(Refusal::BadText),
            _ => Ok(()),
        }
    }
}

impl Patch {
    /// Creates a change of the text only.
    #[must_use]
    pub fn of_text(text: PostText) -> Self {
        Self { text: Some(text), ..Self::default() }
    }

    /// Changes the parts of a content that this names.
    pub fn apply(&self, content: &mut Content) {
        fn set<T: Clone>(part: &mut T, new: Option<&T>) {
            if let Some(new) = new {
                part.clone_from(new);
            }
        }
        let Content { text, warning, sensitive, language, media } = content;
        set(text, self.text.as_ref());
        set(warning, self.warning.as_ref());
        set(sensitive, self.sensitive.as_ref());
        set(language, self.language.as_ref());
        set(media, self.media.as_ref());
    }
}
