//! The expected posts, and who sees them.

use feed::{Done, NewPost, Outcome, Page, PageOf, PostEdit, PostId, Refusal, Visibility};

use super::feed::Feed;
use super::page_of;

/// A post.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelPost {
    pub(crate) author: u32,
    pub(crate) text: String,
    pub(crate) reply_to: Option<u32>,
    pub(crate) mentions: Vec<u32>,
    pub(crate) parent: Option<u64>,
    pub(crate) edited: Option<u64>,
    pub(crate) visibility: Visibility,
    pub(crate) warning: String,
    pub(crate) sensitive: bool,
    pub(crate) language: Option<String>,
}

impl Feed {
    pub(super) fn publish(&mut self, stamp: u64, new: &NewPost) -> Outcome {
        let author = self.resolve(&new.author)?;
        let replied = match new.parent {
            Some(parent) => {
                let visible = self.posts.get(&parent.0).filter(|post| self.sees(author, post));
                Some(visible.ok_or(Refusal::ParentNotFound)?.author)
            }
            None => None,
        };
        let text = new.text.as_str().to_owned();
        let (opening, mentions) = self.mentioned(&text, replied, author);
        let post = ModelPost {
            author,
            text,
            reply_to: replied.or(opening),
            mentions,
            parent: new.parent.map(|parent| parent.0),
            edited: None,
            visibility: new.visibility,
            warning: new.warning.as_str().to_owned(),
            sensitive: new.sensitive,
            language: new.language.as_ref().map(|language| language.as_str().to_owned()),
        };
        self.posts.insert(stamp, post);
        Ok(Done::Posted(PostId(stamp)))
    }

    pub(super) fn edit(&mut self, stamp: u64, edit: &PostEdit) -> Outcome {
        let old = self.posts.get(&edit.post.0).ok_or(Refusal::PostNotFound)?.clone();
        let mut new = old.clone();
        if let Some(text) = &edit.text {
            new.text = text.as_str().to_owned();
        }
        if new.text != old.text && old.visibility != Visibility::Direct {
            let replied = old.reply_to.filter(|_| old.parent.is_some());
            new.mentions = self.mentioned(&new.text, replied, old.author).1;
        }
        if let Some(warning) = &edit.warning {
            new.warning = warning.as_str().to_owned();
        }
        if let Some(sensitive) = edit.sensitive {
            new.sensitive = sensitive;
        }
        if let Some(language) = &edit.language {
            new.language = language.as_ref().map(|language| language.as_str().to_owned());
        }
        if new != old {
            new.edited = Some(stamp);
            self.posts.insert(edit.post.0, new);
        }
        Ok(Done::PostEdited)
    }

    pub(super) fn delete_post(&mut self, post: PostId) -> Outcome {
        self.posts.remove(&post.0).ok_or(Refusal::PostNotFound)?;
        self.forget_reactions();
        Ok(Done::Deleted)
    }

    /// The user with whose handle the text begins, and all users mentioned, each once: first the author of
    /// the post replied to, unless that is the author.
    fn mentioned(&self, text: &str, replied: Option<u32>, author: u32) -> (Option<u32>, Vec<u32>) {
        let (mut opening, mut found) = (None, Vec::new());
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut before = None;
        for (at, c) in text.char_indices() {
            let begins = c == '@'
                && before.is_none_or(|c: char| !c.is_alphanumeric() && c != '_' && c != '@');
            before = Some(c);
            if !begins {
                continue;
            }
            let rest = &text[at + 1..];
            let handle = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
            let Some(user) = self.handles.get(&handle.to_ascii_lowercase()) else { continue };
            if self.users[*user as usize].deleted {
                continue;
            }
            if at == 0 {
                opening = Some(*user);
            }
            if !found.contains(user) {
                found.push(*user);
            }
        }
        if let Some(replied) = replied.filter(|user| *user != author && !found.contains(user)) {
            found.insert(0, replied);
        }
        (opening, found)
    }

    /// Whether `user` may see a post.
    pub(crate) fn sees(&self, user: u32, post: &ModelPost) -> bool {
        let is_addressed = match post.visibility {
            Visibility::Public | Visibility::Unlisted => true,
            Visibility::Followers => self.follows.contains(&(user, post.author)),
            Visibility::Direct => false,
        };
        let is_addressed = is_addressed || post.mentions.contains(&user);
        user == post.author || is_addressed && !self.are_hidden(user, post.author)
    }

    /// A page of the home timeline of `reader`: posts by the reader and by those whom the reader follows and does not
    /// mute, without replies by others to users whom the reader does not follow, or mutes, and without what the reader
    /// does not see.
    pub(crate) fn home(&self, reader: u32, page: &Page) -> PageOf<PostId> {
        let follows = |other: u32| {
            let pair = (reader, other);
            other == reader || self.follows.contains(&pair) && !self.mutes.contains_key(&pair)
        };
        let seen = |post: &ModelPost| {
            follows(post.author)
                && (post.author == reader || post.reply_to.is_none_or(follows))
                && self.sees(reader, post)
        };
        let newest_first = self.posts.iter().rev().filter(|(_, post)| seen(post));
        page_of(newest_first.map(|(id, _)| *id), page)
    }

    /// A page of the posts by `author` that `reader` may see.
    pub(crate) fn posts_by(&self, reader: u32, author: u32, page: &Page) -> PageOf<PostId> {
        let visible = |post: &ModelPost| post.author == author && self.sees(reader, post);
        let newest_first = self.posts.iter().rev().filter(|(_, post)| visible(post));
        page_of(newest_first.map(|(id, _)| *id), page)
    }

    /// A page of the posts that mention `user`.
    pub(crate) fn mentions(&self, user: u32, page: &Page) -> PageOf<PostId> {
        let newest_first =
            self.posts.iter().rev().filter(|(_, post)| post.mentions.contains(&user));
        page_of(newest_first.map(|(id, _)| *id), page)
    }
}
