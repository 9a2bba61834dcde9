//! Expected filters.

use std::collections::BTreeSet;

use feed::filters::{
    FilterAction, FilterChange, FilterCommand, FilterContexts, FilterEdit, FilterId, FilterPartId,
    FilterTime, Keyword, KeywordChange,
};
use feed::limits::{FILTER_KEYWORDS_MAX, FILTERED_POSTS_MAX, FILTERS_MAX};
use feed::{Done, Outcome, Refusal};

use super::feed::Feed;
use super::ms_of;

/// Expected filter. Its keywords and posts have ids, and are in the order in which they were added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelFilter {
    pub(crate) title: String,
    pub(crate) contexts: FilterContexts,
    pub(crate) action: FilterAction,
    pub(crate) expires_ms: Option<u64>,
    pub(crate) keywords: Vec<(u64, String, bool)>,
    pub(crate) posts: Vec<(u64, u64)>,
}

impl Feed {
    /// Applies a command about filters. A refused command changes nothing.
    pub(super) fn change_filters(&mut self, stamp: u64, command: &FilterCommand) -> Outcome {
        let before = self.filters.clone();
        let outcome = self.changed_filters(stamp, command);
        if outcome.is_err() {
            self.filters = before;
        }
        outcome
    }

    fn changed_filters(&mut self, stamp: u64, command: &FilterCommand) -> Outcome {
        let user = self.resolve(&command.user)?;
        match &command.change {
            FilterChange::Create(new) => {
                if self.filters.keys().filter(|(one, _)| *one == user).count() >= FILTERS_MAX {
                    return Err(Refusal::TooManyFilters);
                }
                let expires_ms = new.expires.map(|time| ms_of(stamp) + time.ms());
                let (title, contexts) = (new.title.as_str().to_owned(), new.contexts);
                let (keywords, posts) = (Vec::new(), Vec::new());
                let action = new.action;
                let filter = ModelFilter { title, contexts, action, expires_ms, keywords, posts };
                self.filters.insert((user, stamp), filter);
                for keyword in &new.keywords {
                    self.add_keyword(stamp, (user, stamp), keyword)?;
                }
                Ok(Done::FilterSaved(FilterId(stamp)))
            }
            FilterChange::Edit(edit) => self.edit_filter(stamp, user, edit),
            FilterChange::Delete { filter } => {
                let found = self.filters.remove(&(user, filter.0));
                found.map(|_| Done::FilterDeleted).ok_or(Refusal::FilterNotFound)
            }
            FilterChange::AddKeyword { filter, keyword } => {
                let id = self.add_keyword(stamp, (user, filter.0), keyword)?;
                Ok(Done::FilterPartSaved(FilterPartId(id)))
            }
            FilterChange::AddPost { filter, post } => {
                let filter = (user, filter.0);
                let posts = &self.filters.get(&filter).ok_or(Refusal::FilterNotFound)?.posts;
                let seen = |post| self.posts.get(post).filter(|post| self.sees(user, post));
                let found = seen(&post.0).ok_or(Refusal::PostNotFound)?;
                let post = found.boost.as_ref().map_or(post.0, |boost| boost.post);
                seen(&post).ok_or(Refusal::PostNotFound)?;
                let id = match posts.iter().find(|(_, other)| *other == post) {
                    Some((id, _)) => *id,
                    None => self.add_filtered(stamp, filter, post)?,
                };
                Ok(Done::FilterPartSaved(FilterPartId(id)))
            }
            FilterChange::RemovePost { filter, part } => {
                let found = self.filters.get_mut(&(user, filter.0));
                let found = found.ok_or(Refusal::FilterNotFound)?;
                let before = found.posts.len();
                found.posts.retain(|(id, _)| *id != part.0);
                let is_known = found.posts.len() < before;
                is_known.then_some(Done::FilterSaved(*filter)).ok_or(Refusal::FilterNotFound)
            }
        }
    }

    fn edit_filter(&mut self, stamp: u64, user: u32, edit: &FilterEdit) -> Outcome {
        let key = (user, edit.filter.0);
        let filter = self.filters.get_mut(&key).ok_or(Refusal::FilterNotFound)?;
        edit.title.iter().for_each(|title| filter.title = title.as_str().to_owned());
        edit.contexts.iter().for_each(|contexts| filter.contexts = *contexts);
        edit.action.iter().for_each(|action| filter.action = *action);
        let at = |time: FilterTime| ms_of(stamp) + time.ms();
        edit.expires.iter().for_each(|expires| filter.expires_ms = expires.map(at));
        for change in &edit.keywords {
            let not_found = Refusal::FilterNotFound;
            let filter = self.filters.get_mut(&key).ok_or(not_found)?;
            let keywords = &mut filter.keywords;
            match change {
                KeywordChange::Add(keyword) => drop(self.add_keyword(stamp, key, keyword)?),
                KeywordChange::Edit { keyword, text, whole_word } => {
                    let found = keywords.iter_mut().find(|(id, ..)| *id == keyword.0);
                    let found = found.ok_or(not_found)?;
                    text.iter().for_each(|text| found.1 = text.as_str().to_owned());
                    found.2 = whole_word.unwrap_or(found.2);
                }
                KeywordChange::Remove { keyword } => {
                    let before = keywords.len();
                    keywords.retain(|(id, ..)| *id != keyword.0);
                    if keywords.len() == before {
                        return Err(not_found);
                    }
                }
            }
        }
        Ok(Done::FilterSaved(edit.filter))
    }

    /// Returns the next free id of a keyword or post in the filters of a user.
    fn next_part(&self, stamp: u64, user: u32) -> u64 {
        let of_user = self.filters.iter().filter(|((one, _), _)| *one == user);
        let ids = of_user.flat_map(|(_, filter)| {
            let keywords = filter.keywords.iter().map(|(id, ..)| *id);
            keywords.chain(filter.posts.iter().map(|(id, _)| *id)).collect::<Vec<_>>()
        });
        ids.max().map_or(stamp, |last| stamp.max(last + 1))
    }

    fn add_keyword(
        &mut self,
        stamp: u64,
        (user, filter): (u32, u64),
        keyword: &Keyword,
    ) -> Result<u64, Refusal> {
        let id = self.next_part(stamp, user);
        let all = self.filters.iter().filter(|((one, _), _)| *one == user);
        let count: usize = all.map(|(_, filter)| filter.keywords.len()).sum();
        let filter = self.filters.get_mut(&(user, filter)).ok_or(Refusal::FilterNotFound)?;
        if count >= FILTER_KEYWORDS_MAX {
            return Err(Refusal::TooManyKeywords);
        }
        filter.keywords.push((id, keyword.text.as_str().to_owned(), keyword.whole_word));
        Ok(id)
    }

    fn add_filtered(
        &mut self,
        stamp: u64,
        (user, filter): (u32, u64),
        post: u64,
    ) -> Result<u64, Refusal> {
        let of_user = |filters: &Self| {
            let all = filters.filters.iter().filter(|((one, _), _)| *one == user);
            all.map(|(_, filter)| filter.posts.len()).sum::<usize>()
        };
        if of_user(self) >= FILTERED_POSTS_MAX {
            let seen = self.posts.iter().filter(|(_, post)| self.sees(user, post));
            let seen: BTreeSet<u64> = seen.map(|(id, _)| *id).collect();
            for (_, filter) in self.filters.iter_mut().filter(|((one, _), _)| *one == user) {
                filter.posts.retain(|(_, post)| seen.contains(post));
            }
        }
        if of_user(self) >= FILTERED_POSTS_MAX {
            return Err(Refusal::TooManyFilteredPosts);
        }
        let id = self.next_part(stamp, user);
        let found = self.filters.get_mut(&(user, filter)).ok_or(Refusal::FilterNotFound)?;
        found.posts.push((id, post));
        Ok(id)
    }
}
