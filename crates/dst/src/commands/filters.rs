//! Commands about filters.

use feed::filters::{
    FilterAction, FilterChange, FilterCommand, FilterContext, FilterContexts, FilterEdit, FilterId,
    FilterPartId, FilterText, FilterTime, Keyword, KeywordChange, NewFilter,
};
use feed::limits::{FILTER_KEYWORDS_MAX, FILTER_SECS_MAX, FILTER_TEXT_CHARS_MAX};
use feed::{Command, UserId, UserRef};

use super::Generator;

impl Generator {
    /// Makes a command about filters. Few users have filters, so that commands find the filter that they name.
    pub(super) fn filter_command(&mut self) -> Command {
        let user = UserRef::Id(UserId(self.random.below(self.users.min(2)) as u32));
        let filter = self.filter();
        let change = match self.random.below(16) {
            0..3 => FilterChange::Create(self.new_filter()),
            3 => FilterChange::Delete { filter },
            4..8 => FilterChange::AddKeyword { filter, keyword: self.keyword() },
            8..12 => FilterChange::Edit(self.filter_edit(filter)),
            12..15 => FilterChange::AddPost { filter, post: self.post() },
            _ => FilterChange::RemovePost { filter, part: self.filter_part() },
        };
        Command::Filter(Box::new(FilterCommand { user, change }))
    }

    fn filter(&mut self) -> FilterId {
        match self.filters.len() {
            0 => FilterId(7),
            len => FilterId(self.filters[self.random.index(len)]),
        }
    }

    /// Returns the id of a keyword or a post of a filter: an existing id, or the stamp of a filter, or the number after
    /// the stamp, which is the id of a keyword that was added with the filter.
    fn filter_part(&mut self) -> FilterPartId {
        match self.filter_parts.len() {
            len if len > 0 && !self.random.once_in(3) => {
                FilterPartId(self.filter_parts[self.random.index(len)])
            }
            _ => FilterPartId(self.filter().0 + self.random.below(2)),
        }
    }

    fn new_filter(&mut self) -> NewFilter {
        let count = match self.is_extreme() {
            true => FILTER_KEYWORDS_MAX as u64,
            false => self.random.below(3),
        };
        NewFilter {
            title: self.filter_text(),
            contexts: self.contexts(),
            action: *self.random.pick(&FilterAction::ALL),
            expires: self.filter_time(),
            keywords: (0..count).map(|_| self.keyword()).collect(),
        }
    }

    fn filter_edit(&mut self, filter: FilterId) -> FilterEdit {
        let changes = self.random.below(3);
        FilterEdit {
            filter,
            title: self.random.once_in(3).then(|| self.filter_text()),
            contexts: self.random.once_in(3).then(|| self.contexts()),
            action: self.random.once_in(3).then(|| *self.random.pick(&FilterAction::ALL)),
            expires: self.random.once_in(3).then(|| self.filter_time()),
            keywords: (0..changes).map(|_| self.keyword_change()).collect(),
        }
    }

    fn keyword_change(&mut self) -> KeywordChange {
        let keyword = self.filter_part();
        match self.random.below(3) {
            0 => KeywordChange::Add(self.keyword()),
            1 => {
                let text = self.random.once_in(2).then(|| self.filter_text());
                let whole_word = self.random.once_in(2).then(|| self.random.once_in(2));
                KeywordChange::Edit { keyword, text, whole_word }
            }
            _ => KeywordChange::Remove { keyword },
        }
    }

    fn keyword(&mut self) -> Keyword {
        Keyword { text: self.filter_text(), whole_word: self.random.once_in(2) }
    }

    fn filter_text(&mut self) -> FilterText {
        let text = match self.is_extreme() {
            true => "\u{4e00}".repeat(FILTER_TEXT_CHARS_MAX),
            false => format!("f{}", self.nonce()),
        };
        let Ok(text) = FilterText::parse(&text) else { unreachable!("a valid text") };
        text
    }

    fn contexts(&mut self) -> FilterContexts {
        let picked = [(); 2].map(|()| *self.random.pick(&FilterContext::ALL));
        let Ok(contexts) = FilterContexts::new(picked) else { unreachable!("there are two") };
        contexts
    }

    fn filter_time(&mut self) -> Option<FilterTime> {
        let secs = if self.is_extreme() { FILTER_SECS_MAX } else { 1 + self.random.below(1_000) };
        FilterTime::from_secs(secs).ok().filter(|_| self.random.once_in(2))
    }
}
