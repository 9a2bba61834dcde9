//! Definitions of feeds in TOML: the built-in ones, and those of a file, which replace built-in ones of the same name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

use crate::expression::{Expression, ExpressionError};

/// Maximum number of feeds, including the built-in ones.
pub const FEEDS_MAX: usize = 64;
/// Maximum length of the name of a feed, in characters.
pub const FEED_NAME_MAX: usize = 32;
/// Maximum quota of the source `following`: a page of the home timeline, which the server has in memory for active
/// users.
const AT_HOME_MAX: usize = 100;
/// Maximum quota of a source.
pub const QUOTA_MAX: usize = 400;
/// Maximum sum of the quotas of a feed: the maximum number of candidates of a request.
pub const CANDIDATES_MAX: usize = 1_000;
/// Maximum share of exploration.
const EXPLORE_MAX: f64 = 0.5;

/// Source of candidates. Earlier sources take a post first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Source {
    /// Home timeline of the viewer.
    Following,
    /// Public posts that followed users favourited or boosted.
    LikedByFollowed,
    /// Popular public posts with hashtags that the viewer follows or uses.
    FollowedHashtags,
    /// Public posts that are popular in the interest groups of the viewer.
    Groups,
    /// Popular public posts in languages that the viewer uses.
    PopularInLanguage,
    /// Popular public posts.
    Popular,
    /// Newest public posts of users who have few posts.
    NewAuthors,
}

/// Number of sources.
pub const SOURCES: usize = 7;

impl Source {
    /// All sources, in the order of the enum.
    pub const ALL: [Self; SOURCES] = [
        Self::Following,
        Self::LikedByFollowed,
        Self::FollowedHashtags,
        Self::Groups,
        Self::PopularInLanguage,
        Self::Popular,
        Self::NewAuthors,
    ];
}

/// Definition of a ranked feed; docs/feeds.md describes the fields.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = FeedDefinition))]
#[serde(deny_unknown_fields)]
pub struct Feed {
    /// Maximum number of candidates of each source, by the name of the source.
    #[serde(deserialize_with = "quotas")]
    #[cfg_attr(feature = "schema", schema(value_type = BTreeMap<String, usize>))]
    #[cfg_attr(feature = "schema", schema(example = json!({"following": 100, "popular": 50})))]
    sources: BTreeMap<Source, usize>,
    /// Expression; posts with a higher value come first.
    #[serde(deserialize_with = "score", serialize_with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    #[cfg_attr(
        feature = "schema",
        schema(example = "(1 + followed) * log(2 + likes) * decay(age, 12h)")
    )]
    pub(crate) score: Expression,
    /// Maximum number of posts by one author; 0 for no limit.
    #[serde(default)]
    pub(crate) per_author_max: usize,
    /// Share of the places that go to posts of new authors, whatever their score: 0 to 0.5.
    #[serde(default, deserialize_with = "share")]
    pub(crate) explore: f64,
    /// Whether reasons name the followed users who favourited or boosted a post.
    #[serde(default = "yes")]
    #[cfg_attr(feature = "schema", schema(default = true))]
    names_users: bool,
}

/// The built-in feeds and those of a file, by their names.
#[derive(Clone, Debug)]
pub struct Feeds {
    built_in: BTreeMap<String, Arc<Feed>>,
    of_file: BTreeMap<String, Arc<Feed>>,
}

/// An error in the definitions.
#[derive(Debug, Error)]
pub enum FeedsError {
    /// The text is not a valid definition. The message has line and column.
    #[error("{0}")]
    Toml(String),
    /// The JSON is not a valid definition.
    #[error("{0}")]
    Json(String),
    /// A feed has an invalid name.
    #[error("the name `{0}` of a feed is not 1 to {FEED_NAME_MAX} characters of a-z, 0-9 and -")]
    Name(String),
    /// There are too many feeds.
    #[error("there are more than {FEEDS_MAX} feeds")]
    TooMany,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    feeds: BTreeMap<String, Feed>,
}

impl Feed {
    /// Parses a definition in JSON, with the same fields as in TOML.
    ///
    /// # Errors
    /// [`FeedsError::Json`]
    pub fn parse_json(text: &str) -> Result<Self, FeedsError> {
        let value = serde_json::from_str(text);
        Self::parse_value(value.map_err(|error| FeedsError::Json(error.to_string()))?)
    }

    /// Parses a definition in JSON. Its errors name no line and column: a request has only one line.
    ///
    /// # Errors
    /// [`FeedsError::Json`]
    pub fn parse_value(value: serde_json::Value) -> Result<Self, FeedsError> {
        serde_json::from_value(value).map_err(|error| FeedsError::Json(error.to_string()))
    }

    /// Definition in JSON, with all fields, as [`Feed::parse_json`] reads it.
    #[must_use]
    pub fn to_json(&self) -> String {
        let Ok(text) = serde_json::to_string(self) else {
            unreachable!("numbers and texts can be serialized");
        };
        text
    }

    /// Maximum number of candidates of a source.
    #[must_use]
    pub fn quota(&self, source: Source) -> usize {
        self.sources.get(&source).copied().unwrap_or_default()
    }

    /// Maximum number of posts by one author; 0 for no limit.
    #[must_use]
    pub fn per_author_max(&self) -> usize {
        self.per_author_max
    }

    /// Whether reasons name users.
    #[must_use]
    pub fn names_users(&self) -> bool {
        self.names_users
    }

    /// Score of a candidate.
    #[must_use]
    pub fn score(&self) -> &Expression {
        &self.score
    }
}

impl Default for Feeds {
    fn default() -> Self {
        let Ok(built_in) = parse(include_str!("feeds.toml")) else {
            unreachable!("a test parses the built-in feeds");
        };
        Self { built_in, of_file: BTreeMap::new() }
    }
}

impl Feeds {
    /// Parses definitions and adds the built-in feeds that they do not replace.
    ///
    /// # Errors
    /// [`FeedsError`]
    pub fn parse(text: &str) -> Result<Self, FeedsError> {
        let feeds = Self { of_file: parse(text)?, ..Self::default() };
        if feeds.names().count() > FEEDS_MAX { Err(FeedsError::TooMany) } else { Ok(feeds) }
    }

    /// Names of all feeds, in ascending order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let names: BTreeSet<_> = self.built_in.keys().chain(self.of_file.keys()).collect();
        names.into_iter().map(String::as_str)
    }

    /// Feed with this name: of the file, or else a built-in one.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Arc<Feed>> {
        self.of_file(name).or_else(|| self.built_in.get(name))
    }

    /// Feed of the file with this name.
    #[must_use]
    pub fn of_file(&self, name: &str) -> Option<&Arc<Feed>> {
        self.of_file.get(name)
    }
}

fn parse(text: &str) -> Result<BTreeMap<String, Arc<Feed>>, FeedsError> {
    let file: File = toml::from_str(text).map_err(|error| FeedsError::Toml(error.to_string()))?;
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_name =
        |name: &str| (1..=FEED_NAME_MAX).contains(&name.len()) && name.chars().all(is_plain);
    match file.feeds.keys().find(|name| !is_name(name)) {
        Some(name) => Err(FeedsError::Name(name.clone())),
        None => Ok(file.feeds.into_iter().map(|(name, feed)| (name, feed.into())).collect()),
    }
}

fn yes() -> bool {
    true
}

fn quotas<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<Source, usize>, D::Error> {
    let quotas = BTreeMap::<Source, usize>::deserialize(from)?;
    if let Some(quota) = quotas.values().find(|quota| !(1..=QUOTA_MAX).contains(*quota)) {
        return Err(de::Error::custom(format!("a quota is 1 to {QUOTA_MAX}, not {quota}")));
    }
    if let Some(quota) = quotas.get(&Source::Following).filter(|quota| **quota > AT_HOME_MAX) {
        let text = format!("the quota of following is 1 to {AT_HOME_MAX}, not {quota}");
        return Err(de::Error::custom(text));
    }
    match quotas.values().sum::<usize>() {
        0 => Err(de::Error::custom("a feed needs a source")),
        1..=CANDIDATES_MAX => Ok(quotas),
        sum => {
            let text =
                format!("the quotas of a feed add up to at most {CANDIDATES_MAX}, not {sum}");
            Err(de::Error::custom(text))
        }
    }
}

fn score<'de, D: Deserializer<'de>>(from: D) -> Result<Expression, D::Error> {
    let text = String::deserialize(from)?;
    Expression::parse(&text).map_err(|error: ExpressionError| de::Error::custom(error))
}

fn text<S: Serializer>(expression: &Expression, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(expression.text())
}

fn share<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let share = f64::deserialize(from)?;
    if (0.0..=EXPLORE_MAX).contains(&share) {
        return Ok(share);
    }
    Err(de::Error::custom(format!("explore is a share from 0 to {EXPLORE_MAX}, not {share}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_feeds_are_valid_and_can_be_replaced() {
        let built_in = Feeds::default();
        for name in ["following", "for-you", "popular", "explore"] {
            assert!(built_in.named(name).is_some(), "{name}");
        }
        assert!(built_in.named("other").is_none());
        let file = "[feeds.popular]\nsources = { popular = 7 }\nscore = \"likes\"\n\
                    [feeds.x]\nsources = { new-authors = 1 }\nscore = \"1\"";
        let feeds = Feeds::parse(file).unwrap();
        assert_eq!(feeds.named("popular").unwrap().quota(Source::Popular), 7);
        assert_eq!(feeds.named("popular").unwrap().quota(Source::Following), 0);
        assert!(feeds.names().eq(["explore", "following", "for-you", "popular", "x"]));
    }

    #[test]
    fn a_definition_in_json_is_that_in_toml() {
        let feeds = Feeds::default();
        for name in feeds.names() {
            let feed = feeds.named(name).unwrap();
            assert_eq!(Feed::parse_json(&feed.to_json()).unwrap(), **feed, "{name}");
        }
        for (text, part) in [
            (r#"{"sources":{"popular":401},"score":"1"}"#, "1 to 400, not 401"),
            (r#"{"sources":{"popular":1},"score":"1 + lieks"}"#, "unknown name `lieks`"),
            (r#"{"sources":{"friends":1},"score":"1"}"#, "friends"),
            (r#"{"sources":{"popular":1},"score":"1","sort":1}"#, "sort"),
            (r#"{"sources":{"popular":1},"score":"1","per_author_max":-1}"#, "-1"),
            ("[]", "invalid length"),
            ("{", "EOF"),
        ] {
            let error = Feed::parse_json(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn the_documents_list_all_features() {
        let page = include_str!("../../../docs/feeds.md");
        for name in crate::Feature::ALL.map(crate::Feature::name) {
            assert!(page.contains(&format!("`{name}`")), "{name}");
        }
    }

    #[test]
    fn a_wrong_definition_is_refused_with_its_place() {
        let feed = |rest: &str| format!("[feeds.mine]\nsources = {{ popular = 5 }}\n{rest}\n");
        let from = |sources: &str| format!("[feeds.a]\nsources = {{ {sources} }}\nscore = \"1\"");
        let many = |n| format!("[feeds.n{n}]\nsources = {{ popular = 5 }}\nscore = \"1\"\n");
        let many: String = (0..FEEDS_MAX).map(many).collect();
        let all = "popular = 400, groups = 400, new-authors = 400";
        for (text, parts) in [
            (feed("score = \"1 + lieks\""), vec!["line 3", "character 5", "unknown name `lieks`"]),
            (feed("score = \"1\"\nexplore = 0.9"), vec!["line 4", "from 0 to 0.5, not 0.9"]),
            (feed("score = \"1\"\nper_author_max = -1"), vec!["line 4"]),
            (feed("score = \"1\"\nsort = 1"), vec!["line 4", "sort"]),
            (feed(""), vec!["score"]),
            (from("popular = 401"), vec!["line 2", "1 to 400, not 401"]),
            (from(all), vec!["line 2", "1000, not 1200"]),
            (from("following = 101"), vec!["line 2", "1 to 100, not 101"]),
            (from(""), vec!["needs a source"]),
            (from("friends = 1"), vec!["line 2", "friends"]),
            (from("popular = 1").replace(".a", ".A"), vec!["the name `A`"]),
            ("[fields]".to_owned(), vec!["fields"]),
            (many, vec!["more than 64 feeds"]),
        ] {
            let error = Feeds::parse(&text).unwrap_err().to_string();
            for part in parts {
                assert!(error.contains(part), "{text}\n{error}");
            }
        }
    }
}
