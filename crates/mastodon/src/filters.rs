//! Matching of posts against the filters of a reader.
//!
//! A keyword is searched for as bytes, ignoring case. A keyword that must match whole words is searched for in a text
//! with [`BOUNDARY`] at each beginning and end of a word, and contains these bytes itself. So each keyword is one
//! search, which takes time proportional to the length of the text.

use feed::PostId;
use feed::filters::{Filter, FilterKeyword};
use memchr::memmem::Finder;
use regex_syntax::is_word_character;

/// Mark of the beginning or end of a word. The byte does not occur in UTF-8.
const BOUNDARY: u8 = 0xff;

/// Filters of a reader that have not expired.
pub(crate) struct Matcher(Vec<Prepared>);

struct Prepared {
    filter: Filter,
    /// Search for each keyword, in order.
    searches: Vec<Search>,
}

struct Search {
    finder: Finder<'static>,
    is_marked: bool,
}

/// Filter that a post matches.
pub(crate) struct Matched<'a> {
    pub(crate) filter: &'a Filter,
    /// First keyword that occurs in the post.
    pub(crate) keyword: Option<&'a FilterKeyword>,
    /// Whether the filter lists the post itself.
    pub(crate) is_listed: bool,
}

impl Matcher {
    /// Prepares filters; `None` if none of them can match anything.
    pub(crate) fn new(filters: Vec<Filter>, now_ms: u64) -> Option<Self> {
        let is_live = |filter: &Filter| {
            let is_expired = filter.expires_ms.is_some_and(|expires_ms| expires_ms <= now_ms);
            !is_expired && (!filter.keywords.is_empty() || !filter.posts.is_empty())
        };
        let live = filters.into_iter().filter(is_live).map(|filter| {
            let searches = filter.keywords.iter().map(Search::new).collect();
            Prepared { filter, searches }
        });
        let prepared: Vec<_> = live.collect();
        (!prepared.is_empty()).then_some(Self(prepared))
    }

    /// Filters that a post with these texts matches.
    pub(crate) fn matches(&self, post: PostId, texts: &[&str]) -> Vec<Matched<'_>> {
        let has = |is_marked| {
            self.0.iter().flat_map(|known| &known.searches).any(|it| it.is_marked == is_marked)
        };
        // Keywords contain no line break, so they match within one text only.
        let folded = |is_marked| {
            let mut out = Vec::new();
            for text in texts.iter().filter(|_| has(is_marked)) {
                fold(text, is_marked, &mut out);
                out.push(b'\n');
            }
            out
        };
        let (plain, marked) = (folded(false), folded(true));
        let find = |search: &Search| {
            let text = if search.is_marked { &marked } else { &plain };
            search.finder.find(text).is_some()
        };
        self.0.iter().filter_map(|known| known.matched(post, find)).collect()
    }
}

impl Prepared {
    fn matched(&self, post: PostId, find: impl Fn(&Search) -> bool) -> Option<Matched<'_>> {
        let filter = &self.filter;
        let keyword = self.searches.iter().position(find);
        let keyword = keyword.and_then(|index| filter.keywords.get(index));
        let is_listed = filter.posts.iter().any(|other| other.post == post);
        (is_listed || keyword.is_some()).then_some(Matched { filter, keyword, is_listed })
    }
}

impl Search {
    fn new(FilterKeyword { keyword, .. }: &FilterKeyword) -> Self {
        let mut bytes = Vec::new();
        fold(keyword.text.as_str(), keyword.whole_word, &mut bytes);
        Self { finder: Finder::new(&bytes).into_owned(), is_marked: keyword.whole_word }
    }
}

/// Appends a text without case differences, such as those between `ς`, `σ` and `Σ`; with `is_marked`, adds boundaries.
fn fold(text: &str, is_marked: bool, out: &mut Vec<u8>) {
    let mut is_word = false;
    let mut push = |c: char| {
        let was_word = std::mem::replace(&mut is_word, is_word_character(c));
        if is_marked && is_word != was_word {
            out.push(BOUNDARY);
        }
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    };
    for c in text.chars() {
        match c.is_ascii() {
            true => push(c.to_ascii_lowercase()),
            false => c.to_uppercase().flat_map(char::to_lowercase).for_each(&mut push),
        }
    }
    if is_marked && is_word {
        out.push(BOUNDARY);
    }
}

#[cfg(test)]
mod tests {
    use feed::filters::{
        FilterAction, FilterContext, FilterContexts, FilterId, FilterPartId, FilterText,
        FilteredPost, Keyword,
    };
    use proptest::prelude::*;

    use super::*;

    fn filter(keywords: &[(&str, bool)], posts: &[u64], expires_ms: Option<u64>) -> Filter {
        let keyword = |(text, whole_word): &(&str, bool)| FilterKeyword {
            id: FilterPartId(0),
            keyword: Keyword { text: FilterText::parse(text).unwrap(), whole_word: *whole_word },
        };
        let post = |post: &u64| FilteredPost { id: FilterPartId(0), post: PostId(*post) };
        Filter {
            id: FilterId(0),
            title: FilterText::parse("title").unwrap(),
            contexts: FilterContexts::new([FilterContext::Home]).unwrap(),
            action: FilterAction::Warn,
            expires_ms,
            keywords: keywords.iter().map(keyword).collect(),
            posts: posts.iter().map(post).collect(),
        }
    }

    /// First keyword that occurs in a text.
    fn found(keywords: &[(&str, bool)], text: &str) -> Option<String> {
        let matcher = Matcher::new(vec![filter(keywords, &[], None)], 0).unwrap();
        let matched = matcher.matches(PostId(1), &[text]);
        Some(matched.first()?.keyword.unwrap().keyword.text.as_str().to_owned())
    }

    #[test]
    fn keywords_are_found_without_regard_to_case_and_whole_words_where_words_end() {
        for (keyword, whole_word, text, expect) in [
            ("cat", false, "Concatenate", true),
            ("cat", true, "Concatenate", false),
            ("cat", true, "A CAT, and a dog", true),
            ("cat", true, "cat", true),
            ("cat", true, "cats", false),
            ("cat", true, "cat_x", false),
            ("cat", true, "cat9", false),
            ("cat", true, "scat cat", true),
            ("the cat", true, "see The Cat!", true),
            ("the cat", true, "see the  cat", false),
            // A keyword that begins or ends with a character that is no part of words, such as `#`, may touch a word
            // there.
            ("#cat", true, "x#cat", true),
            ("#cat", true, "#cats", false),
            ("c++", true, "c++11", true),
            ("c++", true, "abc++", false),
            ("!", true, "a!b", true),
            // Words may have letters of all languages, with their combining marks.
            ("cafe", true, "cafe\u{301}", false),
            ("caf\u{e9}", true, "un CAF\u{c9}.", true),
            ("\u{3bf}\u{3b4}\u{3bf}\u{3c2}", true, "\u{39f}\u{394}\u{39f}\u{3a3}", true),
            ("strasse", false, "Stra\u{df}e", true),
            ("\u{915}", true, "\u{915}\u{94d}\u{937}", false),
            ("\u{732b}", true, "\u{9ed2}\u{732b}", false),
            ("\u{732b}", false, "\u{9ed2}\u{732b}", true),
            ("a.c", false, "abc", false),
        ] {
            let is_found = found(&[(keyword, whole_word)], text).is_some();
            assert_eq!(is_found, expect, "{keyword:?} ({whole_word}) in {text:?}");
        }
    }

    #[test]
    fn the_first_keyword_is_reported_and_nothing_is_found_across_two_texts() {
        let keywords = [("dog", true), ("cat", false), ("at", false)];
        assert_eq!(found(&keywords, "a cat").as_deref(), Some("cat"));
        assert_eq!(found(&keywords, "a cat, a dog").as_deref(), Some("dog"));
        assert_eq!(found(&keywords, "a cow"), None);
        let matcher = Matcher::new(vec![filter(&[("b c", true)], &[], None)], 0).unwrap();
        assert!(matcher.matches(PostId(1), &["a b", "c d"]).is_empty());
        assert_eq!(matcher.matches(PostId(1), &["a", "b c"]).len(), 1);
    }

    #[test]
    fn posts_match_by_their_ids_and_expired_filters_do_not() {
        let filters = vec![
            filter(&[], &[7, 9], None),
            filter(&[("x", false)], &[7], Some(100)),
            filter(&[], &[], None),
        ];
        let listed = |post, now_ms| {
            let matcher = Matcher::new(filters.clone(), now_ms).unwrap();
            let matched = matcher.matches(PostId(post), &["x"]);
            matched.iter().map(|it| (it.is_listed, it.keyword.is_some())).collect::<Vec<_>>()
        };
        assert_eq!(listed(7, 99), [(true, false), (true, true)]);
        assert_eq!(listed(7, 100), [(true, false)]);
        assert_eq!(listed(9, 99), [(true, false), (false, true)]);
        assert_eq!(listed(8, 100), []);
        assert!(Matcher::new(filters[1..].to_vec(), 100).is_none(), "no filter is active");
    }

    #[test]
    #[ignore = "a measurement"]
    fn searching_a_page() {
        let word = |number: usize| format!("keyword{number}");
        let words = |count: usize| -> Vec<_> { (0..count).map(word).collect() };
        let text = "the quick brown fox, jumps over the lazy dog; ".repeat(11);
        let marks = "\u{301}".repeat(200);
        let long = format!("a{}", "\u{301}".repeat(3_999));
        let described = ["b\u{301}".repeat(1_500), long.clone()];
        let run = |name: &str, words: &[String], texts: &[&str]| {
            let keywords: Vec<_> = words.iter().map(|word| (word.as_str(), true)).collect();
            let mut runs: Vec<_> = (0..21)
                .map(|_| {
                    let filters = vec![filter(&keywords, &[], None)];
                    let begin = std::time::Instant::now();
                    let matcher = Matcher::new(filters, 0);
                    for _ in 0..20 {
                        let found = matcher.as_ref().map(|it| it.matches(PostId(1), texts).len());
                        assert_eq!(found.unwrap_or(0), 0, "{name}");
                    }
                    begin.elapsed()
                })
                .collect();
            runs.sort_unstable();
            println!("20 statuses, {name}: {:?}", runs[10]);
        };
        run("no filter", &[], &[&text]);
        run("5 keywords", &words(5), &[&text]);
        run("100 keywords", &words(100), &[&text]);
        let nearly: Vec<_> =
            (1..=100).map(|count| format!("{}x", &marks[..4 * count - 2])).collect();
        let all = [long.as_str(), &described[0], &described[1], &described[0], &described[1]];
        run("100 keywords that nearly match long texts", &nearly, &all);
    }

    proptest! {
        /// Compares with a model that tries the keyword at each place of the text.
        #[test]
        fn a_whole_word_is_where_no_word_goes_on(
            keyword in "[ab#\u{e9}]{1,3}",
            text in "[abA# _\u{e9}\u{c9}]{0,12}",
        ) {
            let lower = text.to_lowercase();
            let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
            let goes_on = |one: Option<char>, two: Option<char>| is_word(one) && is_word(two);
            let naive = lower.match_indices(|_: char| true).any(|(at, _)| {
                let (before, rest) = lower.split_at(at);
                rest.strip_prefix(keyword.as_str()).is_some_and(|after| {
                    !goes_on(before.chars().last(), keyword.chars().next())
                        && !goes_on(keyword.chars().last(), after.chars().next())
                })
            });
            prop_assert_eq!(found(&[(&keyword, true)], &text).is_some(), naive);
            let plain = found(&[(&keyword, false)], &text).is_some();
            prop_assert_eq!(plain, lower.contains(&keyword));
        }
    }
}
