//! Import of the filters in the line of a user.

use std::collections::HashSet;

use feed::filters::{
    Filter, FilterAction, FilterContext, FilterContexts, FilterId, FilterKeyword, FilterPartId,
    FilterText, FilteredPost, Keyword,
};
use feed::limits::{FILTER_KEYWORDS_MAX, FILTERED_POSTS_MAX, FILTERS_MAX};
use feed::{PostId, Refusal};

use super::Wrong;
use super::ids::Ids;
use crate::export::filter_lines;
use crate::export::lines::Id;

/// Checks the filters of a user. Their ids must differ, and so must those of all their keywords and posts; posts need
/// not exist.
pub(super) fn filters(
    ids: &mut Ids,
    lines: &[filter_lines::Filter<'_>],
) -> Result<Vec<Filter>, Wrong> {
    let keywords = lines.iter().map(|filter| filter.keywords.len()).sum::<usize>();
    let posts = lines.iter().map(|filter| filter.posts.len()).sum::<usize>();
    for (count, most, refusal) in [
        (lines.len(), FILTERS_MAX, Refusal::TooManyFilters),
        (keywords, FILTER_KEYWORDS_MAX, Refusal::TooManyKeywords),
        (posts, FILTERED_POSTS_MAX, Refusal::TooManyFilteredPosts),
    ] {
        if count > most {
            return Err(refusal.into());
        }
    }
    let (mut filters, mut parts) = (Given::default(), Given::default());
    let all = lines.iter().map(|line| filter(ids, (&mut filters, &mut parts), line));
    let mut all = all.collect::<Result<Vec<_>, _>>()?;
    all.sort_by_key(|filter| filter.id);
    Ok(all)
}

/// Ids of one kind that were read.
#[derive(Default)]
struct Given(HashSet<u64>);

impl Given {
    fn next(&mut self, ids: &mut Ids, id: Option<Id>) -> Result<u64, Wrong> {
        let id = match id {
            Some(id) => id,
            None => Id(ids.at_or_now(None)?.after(self.0.len() as u64).0),
        };
        let id = ids.used(id)?.0;
        if !self.0.insert(id) {
            return Err(format!("the filters have the id {id} twice").into());
        }
        Ok(id)
    }
}

fn filter(
    ids: &mut Ids,
    (filters, parts): (&mut Given, &mut Given),
    line: &filter_lines::Filter<'_>,
) -> Result<Filter, Wrong> {
    let contexts = line.contexts.iter().map(|name| FilterContext::named(name));
    let contexts: Vec<_> =
        contexts.collect::<Option<_>>().ok_or("there is no such context of a filter")?;
    let action = FilterAction::named(&line.action).ok_or("there is no such action of a filter")?;
    let mut filter = Filter {
        id: FilterId(filters.next(ids, line.id)?),
        title: FilterText::parse(&line.title)?,
        contexts: FilterContexts::new(contexts)?,
        action,
        expires_ms: line.expires.as_ref().map(|time| time.0),
        keywords: Vec::new(),
        posts: Vec::new(),
    };
    for keyword in &line.keywords {
        let id = FilterPartId(parts.next(ids, keyword.id)?);
        let (text, whole_word) = (FilterText::parse(&keyword.text)?, keyword.whole_word);
        filter.keywords.push(FilterKeyword { id, keyword: Keyword { text, whole_word } });
    }
    for found in &line.posts {
        let id = FilterPartId(parts.next(ids, found.id)?);
        filter.posts.push(FilteredPost { id, post: PostId(ids.used(found.post)?.0) });
    }
    Ok(filter)
}
