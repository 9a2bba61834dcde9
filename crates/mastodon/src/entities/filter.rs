//! Entities of filters, and the marks of posts: filters that they match, and muted threads.

use feed::filters::{Filter, FilterAction, FilterContext, FilterId, FilterKeyword, FilteredPost};
use feed::{Content, Post, PostId};
use node::{Entity, EntityKey, Subject};
use serde_json::{Value, json};

use super::Entities;
use super::time::time;
use crate::filters::{Matched, Matcher};

/// Filters and muted threads of a reader.
pub(crate) struct Marks {
    /// Matcher of the filters; `None` if none can match.
    matcher: Option<Matcher>,
    mutes_threads: bool,
}

impl Entities<'_> {
    /// Filters of the reader.
    pub(crate) fn filters(&self) -> Vec<Filter> {
        self.reader.map_or_else(Vec::new, |reader| self.facts().filters(reader))
    }

    /// Returns a filter of the reader.
    pub(crate) fn filter_of(&self, id: FilterId) -> Option<Filter> {
        self.filters().into_iter().find(|filter| filter.id == id)
    }

    /// Entity `Filter` of a filter of the reader.
    pub(crate) fn filter_entity(&self, id: FilterId) -> Option<Value> {
        self.filter_of(id).map(|filter| self.filter(&filter))
    }

    /// Entity `Filter` with its keywords and statuses.
    pub(crate) fn filter(&self, filter: &Filter) -> Value {
        let mut entity = bare(filter);
        if let Some(fields) = entity.as_object_mut() {
            let keywords: Vec<_> = filter.keywords.iter().map(keyword).collect();
            fields.insert("keywords".to_owned(), keywords.into());
            fields.insert("statuses".to_owned(), self.filtered_statuses(filter).into());
        }
        entity
    }

    /// Entities `FilterStatus` of a filter, without statuses that the reader may not see.
    pub(crate) fn filtered_statuses(&self, filter: &Filter) -> Vec<Value> {
        let shown = filter.posts.iter().filter(|found| self.visible_post(found.post).is_some());
        shown.map(filtered_status).collect()
    }

    /// Whether filters or muted threads may mark posts for the reader.
    pub(crate) fn has_marks(&self) -> bool {
        self.marks().is_some()
    }

    /// Whether the reader has muted the thread of a post.
    pub(crate) fn is_in_muted_thread(&self, (id, post): (PostId, &Post)) -> bool {
        let mutes_threads = self.marks().is_some_and(|marks| marks.mutes_threads);
        mutes_threads && self.viewer().mutes_thread_of((id, post))
    }

    fn marks(&self) -> Option<&Marks> {
        self.marks.get_or_init(|| self.make_marks()).as_ref()
    }

    fn make_marks(&self) -> Option<Marks> {
        let (reader, renderer) = (self.reader?, self.renderer);
        if renderer.is_unmarked(reader) {
            return None;
        }
        let made_of = renderer.node.made_of(self.hidings, [Subject::Marks(reader.0.into())]);
        let matcher = Matcher::new(self.filters(), self.now_ms);
        let mutes_threads = self.viewer().mutes_threads();
        if matcher.is_none() && !mutes_threads {
            renderer.keep(EntityKey::Unmarked(reader), &Entity::new(&made_of, &[]));
            return None;
        }
        Some(Marks { matcher, mutes_threads })
    }

    /// Entities `FilterResult` of a post that is not a boost.
    pub(crate) fn filtered(&self, (id, post): (PostId, &Post)) -> Value {
        let matcher = self.marks().and_then(|marks| marks.matcher.as_ref());
        let Some(matcher) = matcher else { return json!([]) };
        let Content { text, warning, media, .. } = &post.content;
        let pictures: Vec<_> = media.iter().filter_map(|id| self.facts().media(*id)).collect();
        let described = pictures.iter().map(|picture| picture.description.as_str());
        let options = post.poll.iter().flat_map(|poll| poll.options.as_slice());
        let options = options.map(feed::polls::PollOption::as_str);
        let texts = [warning.as_str(), text.as_str()].into_iter();
        let texts: Vec<_> = texts.chain(options).chain(described).collect();
        matcher.matches(id, &texts).iter().map(|matched| result(id, matched)).collect()
    }
}

fn result(id: PostId, matched: &Matched<'_>) -> Value {
    let keyword = matched.keyword.map(|found| [found.keyword.text.as_str()]);
    json!({
        "filter": bare(matched.filter),
        "keyword_matches": keyword,
        "status_matches": matched.is_listed.then(|| [id.0.to_string()]),
    })
}

/// Entity `Filter` without its keywords and statuses.
fn bare(filter: &Filter) -> Value {
    json!({
        "id": filter.id.0.to_string(),
        "title": filter.title.as_str(),
        "context": filter.contexts.iter().map(FilterContext::name).collect::<Vec<_>>(),
        "expires_at": filter.expires_ms.map(time),
        "filter_action": filter.action.name(),
    })
}

/// Entity `FilterKeyword`.
pub(crate) fn keyword(FilterKeyword { id, keyword }: &FilterKeyword) -> Value {
    let (text, whole_word) = (keyword.text.as_str(), keyword.whole_word);
    json!({"id": id.0.to_string(), "keyword": text, "whole_word": whole_word})
}

/// Entity `FilterStatus`.
pub(crate) fn filtered_status(found: &FilteredPost) -> Value {
    json!({"id": found.id.0.to_string(), "status_id": found.post.0.to_string()})
}

/// Entity `V1::Filter` of a keyword.
pub(crate) fn version_1(filter: &Filter, FilterKeyword { id, keyword }: &FilterKeyword) -> Value {
    json!({
        "id": id.0.to_string(),
        "phrase": keyword.text.as_str(),
        "context": filter.contexts.iter().map(FilterContext::name).collect::<Vec<_>>(),
        "whole_word": keyword.whole_word,
        "expires_at": filter.expires_ms.map(time),
        "irreversible": filter.action == FilterAction::Hide,
    })
}
