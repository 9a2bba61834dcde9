//! Filters of a user: each command reads all of them and writes them as one row.

use rows::{Cost, Stamp, WORK_PER_ROW};

use crate::done::{Done, Outcome};
use crate::effect::{Effect, Input};
use crate::facts::Txn;
use crate::filters::{
    Filter, FilterChange, FilterCommand, FilterEdit, FilterId, FilterKeyword, FilterPartId,
    FilteredPost, Keyword, KeywordChange, NewFilter,
};
use crate::ids::{PostId, UserId};
use crate::limits::{
    FILTER_KEYWORDS_MAX, FILTERED_POSTS_MAX, FILTERS_BYTES_MAX, FILTERS_MAX, KEYWORD_CHANGES_MAX,
    POST_BYTES_MAX,
};
use crate::posts::rules::boosted;
use crate::refusal::Refusal;
use crate::users::rules::resolve;
use crate::visible::Viewer;
use crate::whole::FILTERS;

pub(crate) fn change(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    command: &FilterCommand,
    effects: &mut Vec<Effect>,
) -> Outcome {
    let user = resolve(txn, &command.user)?;
    let before = txn.facts().filters(user);
    let mut filters = Filters { stamp, all: before.clone() };
    let done = match &command.change {
        FilterChange::Create(new) => filters.create(new)?,
        FilterChange::Edit(edit) => filters.edit(edit)?,
        FilterChange::Delete { filter } => {
            filters.find(*filter)?;
            filters.all.retain(|other| other.id != *filter);
            Done::FilterDeleted
        }
        FilterChange::AddKeyword { filter, keyword } => {
            Done::FilterPartSaved(filters.add_keyword(*filter, keyword)?)
        }
        FilterChange::AddPost { filter, post } => {
            let part = filters.add_post(txn, (user, *filter), *post)?;
            Done::FilterPartSaved(part)
        }
        FilterChange::RemovePost { filter, part } => {
            let posts = &mut filters.find(*filter)?.posts;
            let index = posts.iter().position(|other| other.id == *part);
            posts.remove(index.ok_or(Refusal::FilterNotFound)?);
            Done::FilterSaved(*filter)
        }
    };
    if filters.all != before {
        txn.put_whole(&FILTERS, user, &filters.all);
        effects.push(Effect::Input { user, input: Input::Filters });
    }
    Ok(done)
}

/// Filters of a user during a change.
struct Filters {
    stamp: Stamp,
    all: Vec<Filter>,
}

impl Filters {
    fn find(&mut self, filter: FilterId) -> Result<&mut Filter, Refusal> {
        let found = self.all.iter_mut().find(|other| other.id == filter);
        found.ok_or(Refusal::FilterNotFound)
    }

    /// Id of a new keyword or post: the stamp, or the first id after the existing ones if that is greater.
    fn next_part(&self) -> FilterPartId {
        let keywords = self.all.iter().flat_map(|filter| &filter.keywords);
        let posts = self.all.iter().flat_map(|filter| &filter.posts);
        let ids = keywords.map(|keyword| keyword.id.0).chain(posts.map(|post| post.id.0));
        let next = ids.max().map_or(0, |last| last.saturating_add(1));
        FilterPartId(self.stamp.0.max(next))
    }

    fn create(&mut self, new: &NewFilter) -> Result<Done, Refusal> {
        if self.all.len() >= FILTERS_MAX {
            return Err(Refusal::TooManyFilters);
        }
        let id = FilterId(self.stamp.0);
        self.all.push(Filter {
            id,
            title: new.title.clone(),
            contexts: new.contexts,
            action: new.action,
            expires_ms: new.expires.map(|time| self.stamp.unix_ms() + time.ms()),
            keywords: Vec::new(),
            posts: Vec::new(),
        });
        for keyword in &new.keywords {
            self.add_keyword(id, keyword)?;
        }
        Ok(Done::FilterSaved(id))
    }

    fn edit(&mut self, edit: &FilterEdit) -> Result<Done, Refusal> {
        let now_ms = self.stamp.unix_ms();
        let filter = self.find(edit.filter)?;
        edit.title.iter().for_each(|title| filter.title.clone_from(title));
        filter.contexts = edit.contexts.unwrap_or(filter.contexts);
        filter.action = edit.action.unwrap_or(filter.action);
        if let Some(expires) = edit.expires {
            filter.expires_ms = expires.map(|time| now_ms + time.ms());
        }
        if edit.keywords.len() > KEYWORD_CHANGES_MAX {
            return Err(Refusal::TooManyKeywords);
        }
        for change in &edit.keywords {
            self.change_keyword(edit.filter, change)?;
        }
        Ok(Done::FilterSaved(edit.filter))
    }

    fn change_keyword(&mut self, filter: FilterId, change: &KeywordChange) -> Result<(), Refusal> {
        let keyword = match change {
            KeywordChange::Add(keyword) => return self.add_keyword(filter, keyword).map(drop),
            KeywordChange::Edit { keyword, .. } | KeywordChange::Remove { keyword } => *keyword,
        };
        let keywords = &mut self.find(filter)?.keywords;
        let index = keywords.iter().position(|other| other.id == keyword);
        let index = index.ok_or(Refusal::FilterNotFound)?;
        match change {
            KeywordChange::Edit { text, whole_word, .. } => {
                if let Some(FilterKeyword { keyword, .. }) = keywords.get_mut(index) {
                    text.iter().for_each(|text| keyword.text.clone_from(text));
                    keyword.whole_word = whole_word.unwrap_or(keyword.whole_word);
                }
            }
            KeywordChange::Add(_) | KeywordChange::Remove { .. } => drop(keywords.remove(index)),
        }
        Ok(())
    }

    fn add_keyword(
        &mut self,
        filter: FilterId,
        keyword: &Keyword,
    ) -> Result<FilterPartId, Refusal> {
        self.find(filter)?;
        if self.all.iter().map(|filter| filter.keywords.len()).sum::<usize>() >= FILTER_KEYWORDS_MAX
        {
            return Err(Refusal::TooManyKeywords);
        }
        let id = self.next_part();
        self.find(filter)?.keywords.push(FilterKeyword { id, keyword: keyword.clone() });
        Ok(id)
    }

    fn add_post(
        &mut self,
        txn: &Txn<'_>,
        (user, filter): (UserId, FilterId),
        post: PostId,
    ) -> Result<FilterPartId, Refusal> {
        let known = self.find(filter)?;
        let viewer = Viewer::new(txn.facts(), Some(user));
        let is_visible = |post| txn.facts().post(post).is_some_and(|post| viewer.visible(&post));
        let boost = post;
        let (post, found) = boosted(txn, boost)?;
        if !is_visible(boost) || !viewer.visible(&found) {
            return Err(Refusal::PostNotFound);
        }
        if let Some(known) = known.posts.iter().find(|other| other.post == post) {
            return Ok(known.id);
        }
        if self.posts() >= FILTERED_POSTS_MAX {
            // Posts that the user can no longer see are removed, because no list shows them to the user.
            for filter in &mut self.all {
                filter.posts.retain(|other| is_visible(other.post));
            }
            if self.posts() >= FILTERED_POSTS_MAX {
                return Err(Refusal::TooManyFilteredPosts);
            }
        }
        let id = self.next_part();
        self.find(filter)?.posts.push(FilteredPost { id, post });
        Ok(id)
    }

    fn posts(&self) -> usize {
        self.all.iter().map(|filter| filter.posts.len()).sum()
    }
}

/// Cost of changing filters: all filters of the user are read and written.
pub(crate) fn filter_cost(change: &FilterChange) -> Cost {
    let cost = Cost::of_rows(2, FILTERS_BYTES_MAX);
    let looked_up = match change {
        // Lookups of the new post, its visibility, and the existence of the other posts.
        FilterChange::AddPost { .. } => FILTERED_POSTS_MAX + 6,
        _ => 0,
    };
    let read = looked_up * (2 * POST_BYTES_MAX + WORK_PER_ROW);
    Cost { work: cost.work + 3 * FILTERS_BYTES_MAX + read, ..cost }
}
