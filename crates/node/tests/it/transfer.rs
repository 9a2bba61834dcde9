//! Tests of imports: what they refuse, the defaults of short lines, and that keys and samples survive an export.

use crate::support::{exported, facts, imported, moved};
use feed::feeds::FeedName;
use feed::follow_options::FollowOptions;
use feed::quotes::QuotePolicy;
use feed::{
    DueWork, Handle, Language, Marker, Mute, Page, PostId, Reaction, Span, Stamp, StoryId, User,
    UserId, UserRef, Visibility,
};
use kv::{BucketId, BucketName, Bytes, Expiry, KeyOp, KeyOps, Only};
use node::{Clock, ImportError, Node, NodeOptions, OpenError};
use proptest::prelude::*;

const NOW_MS: u64 = 1_800_000_000_000;
const POST: &str = r#"{"post":{"author":0,"text":"x","id":"4194304"}}"#;
const HIDDEN: &str = r#"{"post":{"author":0,"text":"x","id":"4194304","visibility":"followers"}}"#;
const BOOST: &str = r#"{"reaction":{"user":0,"kind":"boost","id":"8388608"}}"#;
const HEADER: &str = r#"{"export":{"format":1}}"#;
const END: &str = r#"{"end":{}}"#;

fn options() -> NodeOptions {
    let mut options = NodeOptions::new("/nowhere");
    options.clock = Clock::from_fn(|| NOW_MS);
    options
}

/// Returns a file of these lines between the first and the last.
fn file(lines: &[&str]) -> String {
    [&[HEADER], lines, &[END, ""]].concat().join("\n")
}

/// Returns a node with the data of these lines.
fn node(lines: &[&str]) -> (Node, tempfile::TempDir) {
    let (options, folder, _) = imported(&options(), &file(lines)).unwrap();
    (Node::open(&options).unwrap(), folder)
}

fn handle(text: &str) -> UserRef {
    UserRef::Handle(Handle::parse(text).unwrap())
}

const ANN: &str = r#"{"user":{"handle":"ann"}}"#;
const BOB: &str = r#"{"user":{"handle":"bob"}}"#;
const NOTE: &str = r#"{"note":{"user":"ann","about":"ann","text":"x"}}"#;
const REQUEST: &str = r#"{"relation":{"kind":"request","user":1,"users":[0]}}"#;
const FOLLOW_BACK: &str = r#"{"relation":{"kind":"follow","user":1,"users":[0]}}"#;
const BLOCK: &str = r#"{"relation":{"kind":"block","user":"ann","users":["bob"]}}"#;
const STORY: &str = r#"{"story":{"author":"ann","text":"s","time":"2027-01-15T07:59:00Z"}}"#;

/// Checks that the last line is refused with a message that contains `what`, and that no usable directory is left.
fn refused(lines: &[&str], what: &str) {
    let folder = tempfile::tempdir().unwrap();
    let options = NodeOptions { data: folder.path().to_owned(), ..options() };
    let error = node::import(&options, file(lines).as_bytes()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains(what), "{lines:?}: {text}, not {what}");
    let number = lines.len() + 1;
    let numbered = text.starts_with(&format!("line {number}"));
    assert!(numbered || matches!(error, ImportError::Limit(_)), "{lines:?}: {text}");
    let opened = Node::open(&options).err().unwrap();
    assert!(matches!(opened, OpenError::RestoreUnfinished(_)), "{opened}");
    let again = node::import(&options, file(&[]).as_bytes()).unwrap_err();
    assert!(matches!(again, ImportError::Open(OpenError::RestoreUnfinished(_))), "{again}");
}

/// Returns the line of a user with these filters.
fn with_filters(filters: &str) -> String {
    format!(r#"{{"user":{{"handle":"ann","filters":{filters}}}}}"#)
}

fn many_filters(count: usize) -> String {
    let one = r#"{"title":"x","contexts":["home"],"action":"warn"}"#;
    format!("[{}]", vec![one; count].join(","))
}

#[test]
fn filters_are_those_of_the_line_and_survive_an_export() {
    let filters = r#"[{"id":"8388609","title":"b","contexts":["thread","home"],"action":"hide",
        "expires":"2027-03-01T00:00:00Z","keywords":[{"text":"x y","whole_word":true},{"text":"z"}],
        "posts":[{"post":"4194304"}]},{"id":"8388608","title":"a","contexts":["public"],"action":"blur"}]"#;
    let (first, folder) = node(&[&with_filters(&filters.replace('\n', ""))]);
    let found = first.facts().filters(UserId(0));
    let titles: Vec<_> = found.iter().map(|filter| (filter.id.0, filter.title.as_str())).collect();
    assert_eq!(titles, [(8_388_608, "a"), (8_388_609, "b")], "the oldest first");
    let words = found[1].keywords.iter().map(|found| &found.keyword);
    let words: Vec<_> = words.map(|keyword| (keyword.text.as_str(), keyword.whole_word)).collect();
    assert_eq!(words, [("x y", true), ("z", false)]);
    assert_ne!(found[1].keywords[0].id, found[1].keywords[1].id);
    assert_ne!(found[1].keywords[1].id, found[1].posts[0].id);
    assert_eq!(found[1].expires_ms, Some(1_803_859_200_000));
    first.close();
    drop(first);
    let before = NodeOptions { data: folder.path().join("data"), ..options() };
    let (moved_to, _folder) = moved(&before);
    assert_eq!(Node::open(&moved_to).unwrap().facts().filters(UserId(0)), found);
}

#[test]
fn wrong_filters_are_refused_with_their_line() {
    for (lines, what) in [
        (
            &[with_filters(r#"[{"title":" ","contexts":["home"],"action":"warn"}]"#).as_str()][..],
            "the title of a",
        ),
        (&[&with_filters(r#"[{"title":"x","contexts":[],"action":"warn"}]"#)], "at least one of"),
        (
            &[&with_filters(r#"[{"title":"x","contexts":["all"],"action":"warn"}]"#)],
            "no such context",
        ),
        (
            &[&with_filters(r#"[{"title":"x","contexts":["home"],"action":"drop"}]"#)],
            "no such action",
        ),
        (
            &[&with_filters(
                r#"[{"title":"x","contexts":["home"],"action":"warn","keywords":[{"text":"\n"}]}]"#,
            )],
            "the title of a",
        ),
        (
            &[&with_filters(
                r#"[{"title":"x","contexts":["home"],"action":"warn","keywords":[{"id":"4194305","text":"a"}],"posts":[{"id":"4194305","post":"4194304"}]}]"#,
            )],
            "the id 4194305 twice",
        ),
        (&[&with_filters(&many_filters(51))], "at most 50 filters"),
        (
            &[
                r#"{"user":{"handle":"ann","deleted":true,"filters":[{"title":"x","contexts":["home"],"action":"warn"}]}}"#,
            ],
            "can only have a handle",
        ),
    ] {
        refused(lines, what);
    }
}

const POLL: &str = r#"{"post":{"author":0,"text":"x","id":"4194304","poll":{"options":["a","b"],"ends":1704067500000}}}"#;
const VOTE: &str = r#"{"vote":{"user":1,"choices":[1]}}"#;

/// Returns the line of a post that was edited in 2024, with these versions.
fn with_versions(versions: &str) -> String {
    format!(
        r#"{{"post":{{"author":0,"text":"now","id":"4194304","edited":"2024-02-01T00:00:00Z","versions":{versions}}}}}"#
    )
}

#[test]
fn versions_of_posts_are_those_of_the_line_and_survive_an_export() {
    let versions = r#"[{"since":"4194304","text":"","media":["4194304"],"language":"en"},
        {"since":"8388608","text":"two","warning":"w","sensitive":true,"poll":["a","b"]}]"#;
    let (first, folder) = node(&[ANN, &with_versions(&versions.replace('\n', ""))]);
    let found = first.facts().post_versions(PostId(4_194_304));
    let texts: Vec<_> = found.iter().map(|one| (one.since.0, one.content.text.as_str())).collect();
    assert_eq!(texts, [(4_194_304, ""), (8_388_608, "two")]);
    assert_eq!((found[0].content.media.len(), found[1].content.sensitive), (1, true));
    assert_eq!(found[1].poll.as_ref().unwrap().as_slice().len(), 2);
    first.close();
    drop(first);
    let before = NodeOptions { data: folder.path().join("data"), ..options() };
    let (moved_to, _folder) = moved(&before);
    let second = Node::open(&moved_to).unwrap();
    assert_eq!(second.facts().post_versions(PostId(4_194_304)), found);
}

/// An export has the last edit in milliseconds; several edits may share one.
#[test]
fn a_post_that_was_edited_twice_in_a_millisecond_is_later_than_its_versions() {
    let id = Stamp::first_of(1_704_067_300_000).0 + 5;
    let [first, second] = [id, id + 3];
    let versions =
        format!(r#"[{{"since":"{first}","text":"a"}},{{"since":"{second}","text":"b"}}]"#);
    let line = format!(
        r#"{{"post":{{"author":0,"text":"now","id":"{id}","edited":1704067300000,"versions":{versions}}}}}"#
    );
    // Without a time, the user would be registered now, after all other times in the file.
    let ann = r#"{"user":{"handle":"ann","registered":1704067250000}}"#;
    let (node, _folder) = node(&[ann, &line]);
    let edited = node.facts().post(PostId(id)).unwrap().edited.unwrap();
    assert!(edited.0 > second && edited.unix_ms() == 1_704_067_300_000);
    assert!(node.facts().totals().last_stamp >= Some(edited), "later commands come after it");
}

#[test]
fn wrong_versions_are_refused_with_their_line() {
    let order = "in the order of time";
    for (versions, what) in [
        (r#"[{"since":"4194300","text":"x"}]"#, "is not a valid id"),
        (r#"[{"since":"8388608","text":"x"},{"since":"8388608","text":"y"}]"#, order),
        (r#"[{"since":"402371326771200000","text":"x"}]"#, order),
        (r#"[{"since":"4194304","text":" "}]"#, "a text is"),
        (r#"[{"since":"4194304","text":"x","poll":["a"]}]"#, "2 to 4 different"),
        (r#"[{"since":"4194304","text":"x","more":1}]"#, "unknown field"),
    ] {
        refused(&[ANN, &with_versions(versions)], what);
    }
    let unedited = with_versions("[]").replace(r#""edited":"2024-02-01T00:00:00Z","#, "");
    let unedited = unedited.replace("[]", r#"[{"since":"4194304","text":"x"}]"#);
    refused(&[ANN, &unedited], order);
}

#[test]
fn conversations_and_what_was_read_of_them_survive_an_export() {
    let ann = r#"{"user":{"handle":"ann","conversations":[{"first":"4194304","read":"8388608","removed":true},{"first":"4194305","read":"8388609"}]}}"#;
    let direct = |id: u64, more: &str| {
        format!(
            r#"{{"post":{{"author":"ann","text":"x","id":"{id}","visibility":"direct"{more}}}}}"#
        )
    };
    let answer = r#","in_reply_to":"4194304","reply_to":"ann","conversation":"4194304""#;
    let (one, two) = (direct(4_194_304, ""), direct(8_388_608, answer));
    let (first, folder) = node(&[ann, &one, &two]);
    let marks = first.facts().conversation_marks(UserId(0));
    assert_eq!(marks.iter().map(|mark| mark.is_removed).collect::<Vec<_>>(), [false, true]);
    let conversation = |node: &Node| node.facts().post(PostId(8_388_608)).unwrap().conversation;
    assert_eq!(conversation(&first), Some(PostId(4_194_304)));
    first.close();
    drop(first);
    let before = NodeOptions { data: folder.path().join("data"), ..options() };
    let (moved_to, _folder) = moved(&before);
    let second = Node::open(&moved_to).unwrap();
    assert_eq!(second.facts().conversation_marks(UserId(0)), marks);
    assert_eq!(conversation(&second), Some(PostId(4_194_304)));
    let what = "the first post above a direct reply";
    let plain = answer.replace("4194304\"", "4194305\"");
    for wrong in [
        r#","conversation":"4194304""#,
        &plain.replace("in_reply_to\":\"4194305", "in_reply_to\":\"4194304"),
    ] {
        refused(&[ANN, &one, &direct(8_388_608, wrong)], what);
    }
}

#[test]
fn feedback_and_stored_feeds_survive_an_export() {
    let post = r#"{"post":{"author":"ann","text":"x","id":"4194304"}}"#;
    let less = r#"{"reaction":{"user":"bob","kind":"less","id":"8388608"}}"#;
    let not = r#"{"relation":{"kind":"not_interested","user":"bob","users":["ann"]}}"#;
    let feed = |name: &str, definition: &str| {
        format!(r#"{{"feed":{{"name":"{name}","definition":{definition}}}}}"#)
    };
    let right = r#"{ "score": "likes", "sources": {"popular": 5} }"#;
    let lines = [ANN, BOB, not, post, less, &feed("mine", right)];
    let (first, folder) = node(&lines);
    let check = |node: &Node| {
        let facts = node.facts();
        assert_eq!(facts.not_interested(UserId(1)), [UserId(0)]);
        assert_eq!(facts.counts(UserId(1)).not_interested, 1);
        assert!(facts.reaction(UserId(1), PostId(4_194_304), Reaction::Less).is_some());
        let name = FeedName::parse("mine").unwrap();
        assert_eq!(facts.stored_feeds(), std::slice::from_ref(&name));
        assert_eq!(node.stored_feed(&name).unwrap().score().text(), "likes");
    };
    holds_after_a_move(first, &folder, check);
    for (line, what) in [
        (feed("Mine", right), "a feed is 1 to 32"),
        (feed("mine", "7"), "a JSON object"),
        (feed("mine", &format!(r#"{{"x":"{}"}}"#, "x".repeat(2_048))), "at most 2048 bytes"),
        (not.replace("ann", "bob"), "never show"),
    ] {
        refused(&[ANN, BOB, &line], what);
    }
    refused(&[&feed("mine", right), &feed("mine", right)], "exists already");
    let many: Vec<_> = (0..33).map(|number| feed(&format!("f{number}"), right)).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    refused(&many, "at most 32 stored feeds");
}

/// Checks a node, and the node that imports its export.
fn holds_after_a_move(first: Node, folder: &tempfile::TempDir, check: impl Fn(&Node)) {
    check(&first);
    first.close();
    drop(first);
    let before = NodeOptions { data: folder.path().join("data"), ..options() };
    let (moved_to, _folder) = moved(&before);
    let second = Node::open(&moved_to).unwrap();
    check(&second);
    second.close();
}

/// A later release may have features that this one lacks, and an earlier one had others.
#[test]
fn a_feed_of_another_release_is_kept_and_ignored() {
    let other = r#"{"score":"likes * mood","sources":{"moon":5},"tempo":[1,2]}"#;
    let line =
        |name, definition| format!(r#"{{"feed":{{"name":"{name}","definition":{definition}}}}}"#);
    let right = r#"{"score":"likes","sources":{"popular":5}}"#;
    let (first, folder) = node(&[&line("other", other), &line("right", right)]);
    let check = |node: &Node| {
        let name = |text| FeedName::parse(text).unwrap();
        let kept = node.facts().stored_feed(&name("other")).unwrap();
        assert_eq!(kept.as_str(), other);
        assert!(node.stored_feed(&name("other")).is_none(), "it cannot be read");
        assert!(node.stored_feed(&name("right")).is_some());
    };
    holds_after_a_move(first, &folder, check);
}

#[test]
fn options_of_follows_and_muted_threads_survive_an_export() {
    let ann = r#"{"user":{"handle":"ann","muted_threads":["4194304","4194305"]}}"#;
    let line =
        |more: &str| format!(r#"{{"follow_options":{{"user":"bob","follows":"ann"{more}}}}}"#);
    let both = line(r#","without_boosts":true,"notified_since":"4194304""#);
    let follow = r#"{"relation":{"kind":"follow","user":"bob","users":["ann"]}}"#;
    let reply = r#"{"post":{"author":"ann","text":"x","id":"8388608","in_reply_to":"4194304","reply_to":"bob","thread":"4194304"}}"#;
    let (first, folder) = node(&[ann, BOB, &both, follow, reply]);
    let options_of = |node: &Node| node.facts().follow_options(UserId(1), UserId(0));
    let expected = FollowOptions { hides_boosts: true, notified_since: Some(Stamp(4_194_304)) };
    let threads = |node: &Node| node.facts().muted_threads(UserId(0));
    let thread = |node: &Node| node.facts().post(PostId(8_388_608)).unwrap().thread;
    assert_eq!(options_of(&first), expected);
    assert_eq!(threads(&first), [PostId(4_194_304), PostId(4_194_305)]);
    assert_eq!(thread(&first), Some(PostId(4_194_304)));
    first.close();
    drop(first);
    let before = NodeOptions { data: folder.path().join("data"), ..options() };
    let (moved_to, _folder) = moved(&before);
    let second = Node::open(&moved_to).unwrap();
    assert_eq!((options_of(&second), thread(&second)), (expected, Some(PostId(4_194_304))));
    assert_eq!(threads(&second), [PostId(4_194_304), PostId(4_194_305)]);
    second.close();
    let request = r#"{"relation":{"kind":"request","user":"bob","users":["ann"]}}"#;
    let (asked, _folder) = node(&[ann, BOB, &both, request]);
    assert_eq!(options_of(&asked), expected);
    asked.close();
    let one = "a follow must have at most one line of options";
    for (lines, what) in [
        (vec![ann, BOB, both.as_str()], "no later line has this follow"),
        (vec![ann, BOB, follow, both.as_str()], "must come before follows"),
        (vec![ann, BOB, both.as_str(), both.as_str()], one),
        (vec![ann, BOB, line("").as_str()], one),
    ] {
        refused(&lines, what);
    }
    let twice = r#"{"user":{"handle":"ann","muted_threads":["4194304","4194304"]}}"#;
    refused(&[twice], "different posts");
    refused(
        &[ann, BOB, &reply.replace("thread\":\"4194304", "thread\":\"4194305")],
        "above a reply",
    );
}

/// Returns the line of a post with this id and poll.
fn with_poll(id: u64, poll: &str) -> String {
    format!(r#"{{"post":{{"author":0,"text":"x","id":"{id}","poll":{poll}}}}}"#)
}

/// Returns the line of a scheduled post with these fields in addition to author and id.
fn scheduled(more: &str) -> String {
    format!(r#"{{"scheduled":{{"author":"ann","id":"4194304",{more}}}}}"#)
}

#[test]
fn polls_and_scheduled_posts_are_those_of_their_lines_and_survive_an_export() {
    let edited = with_poll(
        4_194_305,
        r#"{"id":"8388608","options":["a","b","c"],"multiple":true,"hide_totals":true,"ends":1704067500000}"#,
    );
    let later = scheduled(
        r#""due":"2027-01-15T09:00:00Z","text":"later","visibility":"direct","poll":{"options":["a","b"],"lasts":300}"#,
    );
    let both = r#"{"vote":{"user":"bob","choices":[2,0]}}"#;
    let id = 402371326771200000;
    let running = with_poll(id, r#"{"options":["a","b"],"ends":"2027-01-15T08:10:00Z"}"#);
    let (first, folder) = node(&[ANN, BOB, &edited, both, &running, VOTE, &later]);
    let facts = first.facts();
    let polls = [id, 4_194_305].map(|id| facts.post(PostId(id)).unwrap().poll.unwrap());
    assert_eq!(polls.each_ref().map(|poll| poll.id.0), [id, 8_388_608]);
    let counts = polls.each_ref().map(|poll| facts.poll_counts(poll.id));
    assert_eq!(
        counts.map(|counts| (counts.voters, counts.votes)),
        [(1, [0, 1, 0, 0]), (1, [1, 0, 1, 0])]
    );
    // The other poll is over, so its voters may be notified already.
    let due = facts.first_due(NOW_MS, None, 9);
    assert!(due.contains(&DueWork::EndPoll { post: PostId(id) }.at(NOW_MS + 600_000)));
    let due = due.into_iter().find_map(|due| match due.work {
        DueWork::Publish { user, id } => Some((due.at_ms, user, id)),
        _ => None,
    });
    let (due_ms, user, at) = due.unwrap();
    let post = facts.scheduled(user, at).unwrap();
    assert_eq!((due_ms, post.draft.visibility), (NOW_MS + 3_600_000, Visibility::Direct));
    assert_eq!(post.draft.poll.as_ref().unwrap().time.secs(), 300);
    first.close();
    drop(first);
    let before = NodeOptions { data: folder.path().join("data"), ..options() };
    let (moved_to, _folder) = moved(&before);
    let second = Node::open(&moved_to).unwrap();
    let again = [id, 4_194_305].map(|id| second.facts().post(PostId(id)).unwrap().poll);
    assert_eq!(again, polls.map(Some));
    assert_eq!(second.facts().scheduled(user, at), Some(post));
}

#[test]
fn wrong_polls_votes_and_scheduled_posts_are_refused_with_their_line() {
    let poll = |poll: &str| with_poll(4_194_304, poll);
    let later = |more: &str| scheduled(&format!(r#""due":"2027-01-15T09:00:00Z",{more}"#));
    for (lines, what) in [
        (
            vec![ANN.to_owned(), poll(r#"{"options":["a"],"ends":1704067500000}"#)],
            "2 to 4 different",
        ),
        (
            vec![ANN.to_owned(), poll(r#"{"options":["a","a"],"ends":1704067500000}"#)],
            "2 to 4 different",
        ),
        (
            vec![ANN.to_owned(), poll(r#"{"options":["a"," "],"ends":1704067500000}"#)],
            "an option of a poll",
        ),
        (vec![ANN.to_owned(), poll(r#"{"options":["a","b"]}"#)], "a time at which it ends"),
        (
            vec![ANN.to_owned(), poll(r#"{"options":["a","b"],"ends":1800000000000}"#)],
            "a poll ends after",
        ),
        (vec![ANN.to_owned(), poll(r#"{"options":["a","b"],"ends":0}"#)], "a poll ends after"),
        (
            vec![ANN.to_owned(), poll(r#"{"options":["a","b"],"ends":1704067500000,"lasts":300}"#)],
            "only the poll of a scheduled post",
        ),
        (
            vec![
                ANN.to_owned(),
                poll(r#"{"id":"8388608","options":["a","b"],"ends":1704067500000}"#),
                with_poll(8_388_608, r#"{"options":["a","b"],"ends":1704067500000}"#),
            ],
            "another post has the poll",
        ),
        (vec![ANN.to_owned(), POST.to_owned(), VOTE.to_owned()], "no earlier post with a poll"),
        (vec![ANN.to_owned(), BOB.to_owned(), VOTE.to_owned()], "no earlier post with a poll"),
        (vec![ANN.to_owned(), POLL.to_owned(), VOTE.replace("1,", "0,")], "their own polls"),
        (
            vec![ANN.to_owned(), BOB.to_owned(), POLL.to_owned(), VOTE.replace("[1]", "[2]")],
            "one of the options",
        ),
        (
            vec![ANN.to_owned(), BOB.to_owned(), POLL.to_owned(), VOTE.replace("[1]", "[0,1]")],
            "only one option",
        ),
        (
            vec![ANN.to_owned(), BOB.to_owned(), POLL.to_owned(), VOTE.to_owned(), VOTE.to_owned()],
            "already voted",
        ),
        (vec![ANN.to_owned(), later(r#""text":"""#)], "a text is"),
        (
            vec![ANN.to_owned(), later(r#""text":"x","poll":{"options":["a","b"],"lasts":299}"#)],
            "a poll ends after",
        ),
        (
            vec![ANN.to_owned(), later(r#""text":"x","poll":{"options":["a","b"]}"#)],
            "a duration in lasts",
        ),
        (vec![ANN.to_owned(), scheduled(r#""text":"x""#)], "missing field `due`"),
    ] {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        refused(&lines, what);
    }
}

#[test]
fn wrong_followed_hashtags_are_refused_with_their_line() {
    for (line, what) in [
        (
            r#"{"user":{"handle":"ann","followed_tags":[{"tag":"a"},{"tag":"A"}]}}"#,
            "the hashtag a or its id occurs twice",
        ),
        (
            r#"{"user":{"handle":"ann","followed_tags":[{"tag":"a"}],"deleted":true}}"#,
            "can only have a handle",
        ),
    ] {
        refused(&[line], what);
    }
}

#[test]
fn a_wrong_user_is_refused_with_its_line() {
    let long = "x".repeat(31);
    for (lines, what) in [
        (&["no json"][..], "expected value (at byte 1)"),
        (&[""], "EOF while parsing"),
        (&[r#"{"person":{}}"#], "unknown variant `person`"),
        (&[r#"{"user":{"handle":"ann","age":1}}"#], "unknown field `age`"),
        (&[r#"{"user":{}}"#], "missing field `handle`"),
        (&[r#"{"user":{"handle":"a b"}}"#], "a handle is 1 to 30"),
        (&[&format!(r#"{{"user":{{"handle":"{long}"}}}}"#)], "a handle is 1 to 30"),
        (&[r#"{"user":{"handle":"ann","name":"a\nb"}}"#], "a name is at most"),
        (&[r#"{"user":{"handle":"ann","bio":"\u0000"}}"#], "a bio is at most"),
        (&[r#"{"user":{"handle":"ann","registered":"2023-12-31T23:59:59Z"}}"#], "too early"),
        (&[r#"{"user":{"handle":"ann","registered":"2027-01-23T00:00:00Z"}}"#], "in the future"),
        (&[r#"{"user":{"handle":"ann","registered":18446744073709551615}}"#], "in the future"),
        (&[r#"{"user":{"handle":"ann","id":1}}"#], "must be 0, not 1"),
        (&[r#"{"user":{"handle":"ann","name":"Ann","deleted":true}}"#], "can only have a handle"),
        (&[ANN, r#"{"user":{"handle":"ANN"}}"#], "taken"),
        (&[r#"{"user":{"handle":"ann","bot":true,"deleted":true}}"#], "can only have a handle"),
        (
            &[r#"{"user":{"handle":"ann","fields":[{"name":"","value":"x"}]}}"#],
            "a field has a name",
        ),
        (
            &[r#"{"user":{"handle":"ann","defaults":{"visibility":"all"}}}"#],
            "unknown variant `all`",
        ),
        (&[r##"{"user":{"handle":"ann","featured_tags":[{"tag":"#a"}]}}"##], "hashtag"),
        (
            &[r#"{"user":{"handle":"ann","featured_tags":[{"tag":"a"},{"tag":"A"}]}}"#],
            "the hashtag a or its id occurs twice",
        ),
        (
            &[r#"{"user":{"handle":"ann","featured_tags":[{"tag":"a","id":"4194305"},
                {"tag":"b","id":"4194305"}]}}"#
                .replace('\n', "")
                .as_str()],
            "the hashtag b or its id occurs twice",
        ),
    ] {
        refused(lines, what);
    }
}

#[test]
fn a_wrong_relation_is_refused_with_its_line() {
    for (lines, what) in [
        (
            &[ANN, r#"{"relation":{"kind":"follow","user":"ann","users":["bob"]}}"#][..],
            "has the user bob",
        ),
        (&[ANN, r#"{"relation":{"kind":"person","user":0,"users":[]}}"#], "no such relation"),
        (&[ANN, r#"{"relation":{"kind":"follow","user":1,"users":[]}}"#], "with the id 1"),
        (&[ANN, r#"{"relation":{"kind":"follow","user":0,"users":[0]}}"#], "follow themselves"),
        (
            &[ANN, r#"{"relation":{"kind":"follow","user":0,"users":[4294967295]}}"#],
            "with the id 4294967295",
        ),
        (&[ANN, r#"{"relation":{"kind":"follow","user":0,"users":[4294967296]}}"#], "no such user"),
        (
            &[ANN, r#"{"relation":{"kind":"friends","user":0,"users":["ann"]}}"#],
            "befriend themselves",
        ),
        (
            &[
                ANN,
                r#"{"user":{"handle":"bob","deleted":true}}"#,
                r#"{"relation":{"kind":"follow","user":0,"users":[1]}}"#,
            ],
            "the user 1 is deleted",
        ),
        (&[ANN, r#"{"relation":{"kind":"block","user":0,"users":[0]}}"#], "block themselves"),
        (&[ANN, BOB, r#"{"relation":{"kind":"block","user":0,"users":[1,1]}}"#], "blocks 1 twice"),
        (&[ANN, BOB, BLOCK, FOLLOW_BACK], "blocks the other"),
        (
            &[ANN, BOB, BLOCK, r#"{"relation":{"kind":"friends","user":1,"users":[0]}}"#],
            "blocks the other",
        ),
        (&[ANN, BOB, FOLLOW_BACK, BLOCK], "must come before follows"),
        (&[ANN, r#"{"mute":{"user":0,"mutes":0}}"#], "mute themselves"),
        (&[ANN, BOB, r#"{"mute":{"user":0,"mutes":1,"ends":0}}"#], "after 2024"),
        (&[ANN, BOB, r#"{"mute":{"user":0,"mutes":1,"ends":18446744073709551615}}"#], "after 2024"),
        (&[ANN, r#"{"note":{"user":0,"about":1,"text":"x"}}"#], "with the id 1"),
        (&[ANN, r#"{"note":{"user":0,"about":0,"text":" "}}"#], "a note must have a text"),
        (&[ANN, NOTE, NOTE], "duplicates line 3"),
        (&[r#"{"user":{"handle":"ann","locked":true,"deleted":true}}"#], "can only have a handle"),
        (&[ANN, r#"{"relation":{"kind":"request","user":0,"users":[0]}}"#], "follow themselves"),
        (&[ANN, BOB, BLOCK, REQUEST], "blocks the other"),
        (&[ANN, BOB, REQUEST, FOLLOW_BACK], "both asks to follow 0 and follows"),
        (&[ANN, BOB, FOLLOW_BACK, REQUEST], "requests must come before follows"),
        (&[ANN, HEADER], "only valid at the start"),
    ] {
        refused(lines, what);
    }
}

#[test]
fn a_wrong_post_or_story_is_refused_with_its_line() {
    let long = format!(r#"{{"post":{{"author":0,"text":"{}"}}}}"#, "x".repeat(501));
    let post = r#"{"post":{"author":0,"text":"x","time":"2026-01-01T00:00:01Z"}}"#;
    for (lines, what) in [
        (&[ANN, &long][..], "a text is 1 to 500"),
        (&[ANN, r#"{"post":{"author":0,"text":" "}}"#], "a text is 1 to 500"),
        (&[ANN, r#"{"post":{"author":"bob","text":"x"}}"#], "has the user bob"),
        (
            &[ANN, post, r#"{"post":{"author":0,"text":"x","time":"2026-01-01T00:00:00Z"}}"#],
            "in the order of time",
        ),
        (&[ANN, post, r#"{"post":{"author":0,"text":"x","id":"4194304"}}"#], "ids must rise"),
        (&[ANN, r#"{"post":{"author":0,"text":"x","id":"1"}}"#], "is not a valid id"),
        (&[ANN, r#"{"post":{"author":0,"text":"x","id":"9223372036854775807"}}"#], "in the future"),
        (
            &[ANN, r#"{"post":{"author":0,"text":"x","id":"9223372036854775808"}}"#],
            "is not a valid id",
        ),
        (&[ANN, r#"{"post":{"author":0,"text":"x","id":7}}"#], "invalid type"),
        (
            &[ANN, r#"{"post":{"author":0,"text":"x","id":"4194304","time":1800000000000}}"#],
            "not the one given",
        ),
        (
            &[ANN, r#"{"post":{"author":0,"text":"x","in_reply_to":"4194304"}}"#],
            "reply_to must be the author",
        ),
        (
            &[
                ANN,
                r#"{"post":{"author":0,"text":"x","id":"4194304","reply_to":0,"in_reply_to":"4194304"}}"#,
            ],
            "an earlier post",
        ),
        (&[ANN, r#"{"post":{"author":0,"text":"x","visibility":"all"}}"#], "unknown variant `all`"),
        (&[ANN, r#"{"post":{"author":0,"text":"x","language":"english"}}"#], "2 or 3 letters"),
        (&[ANN, r#"{"reaction":{"user":0,"kind":"pin","id":"4194304"}}"#], "no earlier post"),
        (&[ANN, POST, r#"{"reaction":{"user":0,"kind":"like","id":"8388608"}}"#], "no such kind"),
        (&[ANN, POST, r#"{"reaction":{"user":0,"kind":"pin","id":"4194304"}}"#], "not greater"),
        (
            &[ANN, BOB, POST, r#"{"reaction":{"user":1,"kind":"pin","id":"8388608"}}"#],
            "of their own",
        ),
        (&[ANN, r#"{"post":{"author":0,"text":"x","mentions":[0,0]}}"#], "each once"),
        (
            &[
                ANN,
                r#"{"post":{"author":0,"text":"x","time":"2026-01-01T00:00:01Z","edited":"2026-01-01T00:00:00Z"}}"#,
            ],
            "before it was written",
        ),
        (
            &[ANN, r#"{"story":{"author":0,"text":"x","expires":"2027-06-01T00:00:00Z"}}"#],
            "a TTL is",
        ),
        (&[ANN, r#"{"story":{"author":0,"text":"x","expires":1}}"#], "a TTL is"),
        (&[ANN, r#"{"view":{"user":0}}"#], "no earlier story"),
        (&[ANN, STORY, r#"{"view":{"user":0}}"#], "their own"),
        (
            &[ANN, BOB, STORY, r#"{"view":{"user":1,"time":"2027-01-15T07:58:00Z"}}"#],
            "was not live",
        ),
        (
            &[ANN, BOB, STORY, r#"{"view":{"user":1}}"#, r#"{"view":{"user":1}}"#],
            "duplicates line 5",
        ),
    ] {
        refused(lines, what);
    }
}

#[test]
fn a_wrong_list_is_refused_with_its_line() {
    const LIST: &str = r#"{"list":{"user":0,"title":"a","members":[1]}}"#;
    const FOLLOW: &str = r#"{"relation":{"kind":"follow","user":0,"users":[1]}}"#;
    let many: String = (0..=1_000).map(|at| format!(",{}", at % 2)).collect();
    let many = format!(r#"{{"list":{{"user":0,"title":"a","members":[1{many}]}}}}"#);
    let of_ann = |rest: &str| format!(r#"{{"list":{{"user":0,{rest}}}}}"#);
    let same = of_ann(r#""title":"a","id":"4194304","members":[]"#);
    let lists = vec![LIST; 51];
    for (lines, what) in [
        (&[ANN, BOB, FOLLOW, LIST][..], "lists must come before follows"),
        (&[ANN, LIST], "with the id 1"),
        (&[ANN, r#"{"list":{"user":7,"title":"a","members":[]}}"#], "with the id 7"),
        (&[ANN, &of_ann(r#""members":[]"#)], "missing field `title`"),
        (&[ANN, &of_ann(r#""title":"","members":[]"#)], "the title of a list"),
        (&[ANN, &of_ann(r#""title":"a\nb","members":[]"#)], "the title of a list"),
        (&[ANN, &of_ann(r#""title":"a","replies":"all","members":[]"#)], "no such choice"),
        (&[ANN, &of_ann(r#""title":"a","id":"1","members":[]"#)], "is not a valid id"),
        (&[ANN, &same, &same], "has the list 4194304 twice"),
        (&[ANN, BOB, &of_ann(r#""title":"a","members":[1,1]"#)], "has the user 1 twice"),
        (&[ANN, BOB, &many], "a list has at most"),
        (&[&[ANN, BOB][..], &lists].concat(), "a user has at most 50 lists"),
        (&[ANN, BOB, LIST], "no later line has a follow"),
        (&[ANN, r#"{"list":{"user":0,"title":"a","members":[0]}}"#], "no later line has a follow"),
        (
            &[ANN, BOB, LIST, r#"{"relation":{"kind":"follow","user":1,"users":[0]}}"#],
            "no later line has a follow",
        ),
    ] {
        refused(lines, what);
    }
}

#[test]
fn a_wrong_boost_is_refused_with_its_line() {
    for (lines, what) in [
        (
            &[ANN, BOB, HIDDEN, r#"{"reaction":{"user":1,"kind":"boost","id":"8388608"}}"#][..],
            "everybody may see",
        ),
        (&[ANN, POST, BOOST, BOOST][..], "duplicates line 4"),
        (
            &[ANN, POST, BOOST, r#"{"post":{"author":0,"text":"y","id":"8388608"}}"#],
            "duplicates line 4",
        ),
        (
            &[ANN, POST, r#"{"reaction":{"user":0,"kind":"pin","id":"8388608","earlier":[0]}}"#],
            "only a boost",
        ),
        (
            &[
                ANN,
                POST,
                r#"{"reaction":{"user":0,"kind":"boost","id":"8388608","earlier":[0,0]}}"#,
            ],
            "each once",
        ),
    ] {
        refused(lines, what);
    }
}

#[test]
fn a_wrong_sample_or_key_is_refused_with_its_line() {
    let sample = |set: &str, bits: &str| {
        format!(r#"{{"sample":{{"set":"{set}","label":"a","sample":"{bits}"}}}}"#)
    };
    let (zero, short) = ("0".repeat(256), "0".repeat(255));
    let sets: Vec<String> = (0..17).map(|at| sample(&format!("s{at}"), &zero)).collect();
    let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
    let long = format!(r#"{{"key":{{"bucket":"0","key":"{}","value":""}}}}"#, "k".repeat(65_473));
    let key = r#"{"key":{"bucket":"0","key":"k","value":"v"}}"#;
    for (lines, what) in [
        (&[&*sample("s", &short)][..], "256 hexadecimal digits"),
        (&[&*sample("s s", &zero)], "a set is 1 to 64"),
        (&sets, "sets"),
        (&[r#"{"bucket":{"name":"0"}}"#], "exists already"),
        (&[r#"{"bucket":{"name":"b"}}"#, r#"{"bucket":{"name":"b"}}"#], "exists already"),
        (&[r#"{"bucket":{"name":"a b"}}"#], "a bucket must have a name"),
        (&[r#"{"key":{"bucket":"b","key":"k","value":"v"}}"#], "has this bucket"),
        (&[r#"{"key":{"bucket":"0","value":"v"}}"#], "exactly one of key"),
        (&[r#"{"key":{"bucket":"0","key":"k"}}"#], "exactly one of value"),
        (
            &[r#"{"key":{"bucket":"0","key":"k","value":"v","value_base64":"dg=="}}"#],
            "exactly one of value",
        ),
        (&[r#"{"key":{"bucket":"0","key":"k","value_base64":"?"}}"#], "exactly one of value"),
        (&[r#"{"key":{"bucket":"0","key":"","value":"v"}}"#], "a key has 1 to"),
        (&[&long], "a key has 1 to"),
        (
            &[r#"{"key":{"bucket":"0","key":"k","value":"v","version":"9223372036854775807"}}"#],
            "in the future",
        ),
        (&[key, key], "duplicates line 2"),
    ] {
        refused(lines, what);
    }
}

#[test]
fn limits_of_several_lines_are_checked_when_all_are_known() {
    let users: Vec<String> =
        (0..7_502).map(|at| format!(r#"{{"user":{{"handle":"u{at}"}}}}"#)).collect();
    let mut lines: Vec<&str> = users.iter().map(String::as_str).collect();
    let ids =
        |range: std::ops::Range<u32>| range.map(|id| id.to_string()).collect::<Vec<_>>().join(",");
    let follow = |of| format!(r#"{{"relation":{{"kind":"follow","user":0,"users":[{of}]}}}}"#);
    let friends =
        format!(r#"{{"relation":{{"kind":"friends","user":7,"users":[{}]}}}}"#, ids(100..5_100));
    let (most, again) = (follow(ids(1..7_501)), follow(ids(7_000..7_501)));
    lines.extend([
        &*most,
        &*again,
        &*friends,
        r#"{"relation":{"kind":"friends","user":100,"users":[7]}}"#,
    ]);
    let (_, _folder, counts) = imported(&options(), &file(&lines)).unwrap();
    assert_eq!((counts.users, counts.follows, counts.friendships), (7_502, 8_001, 5_001));
    let one_more = follow("7501".to_owned());
    refused(
        &[&lines[..], &[&one_more]].concat(),
        "the user 0 has 7501 users of `follow` and `request`; the maximum is 7500",
    );
    let one_more = r#"{"relation":{"kind":"friends","user":5100,"users":["u7"]}}"#;
    refused(&[&lines[..], &[one_more]].concat(), "the user 7 has 5001 users of `friends`");
}

#[test]
fn a_file_that_is_cut_or_changed_is_refused() {
    let (node, folder) = node(&[ANN, BOB, r#"{"post":{"author":0,"text":"hello @bob"}}"#, STORY]);
    node.close();
    drop(node);
    let options = NodeOptions { data: folder.path().join("data"), ..options() };
    let whole = exported(&options);
    let import = |text: &str| imported(&options, text).map(drop);
    import(&whole).unwrap();
    for (at, _) in whole.match_indices('\n').filter(|(at, _)| at + 1 < whole.len()) {
        assert!(matches!(import(&whole[..=at]), Err(ImportError::Incomplete(_))), "{at}");
    }
    assert!(matches!(import(""), Err(ImportError::Incomplete(0))));
    for (from, to, what) in [
        ("hello", "hullo", "do not match their digest"),
        ("\"posts\":1", "\"posts\":2", "it counts"),
        ("\"format\":1,", "\"format\":2,", "format 2, but this program reads formats up to 1"),
        ("\"format\":1,", "\"format\":0,", "the first line is"),
        ("\"roost\":", "\"rooster\":", "the first line is"),
    ] {
        assert!(whole.contains(from), "{from}");
        let text = import(&whole.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(text.contains(what), "{text}");
    }
    let text = import(&format!("{whole}{ANN}\n")).unwrap_err().to_string();
    assert!(text.contains("after the last line"), "{text}");
    let text = import(&file(&[ANN])[HEADER.len() + 1..]).unwrap_err().to_string();
    assert!(text.contains("line 1: the first line is"), "{text}");
}

#[test]
fn settings_markers_and_notes_are_those_of_their_lines_and_survive_an_export() {
    let ann = r#"{"user":{"handle":"ann","fields":[{"name":"Web","value":"a.example"}],"bot":true,
        "discoverable":false,"indexable":true,"locked":true,
        "defaults":{"visibility":"followers","sensitive":true,"language":"de","quote_policy":"nobody"},
        "home_marker":{"last_read":"7","version":3,"updated":"4194304"},
        "notifications_marker":{"last_read":"8"},
        "featured_tags":[{"tag":"rust","id":"4194305"},{"tag":"Go"},{"tag":"nats"}],
        "followed_tags":[{"tag":"rust","id":"4194306"},{"tag":"Nats"}]}}"#;
    let note = r#"{"note":{"user":"ann","about":"bob","text":"met in Rome"}}"#;
    let request = r#"{"relation":{"kind":"request","user":"bob","users":["ann"]}}"#;
    let (first, folder) = node(&[&ann.replace('\n', ""), BOB, note, request]);
    let users = |node: &Node| [0, 1].map(|id| node.facts().user(UserId(id)).unwrap());
    let of_ann = |node: &Node| {
        let (facts, ann) = (node.facts(), UserId(0));
        assert!(facts.is_locked(ann) && facts.requests(UserId(1), ann));
        let counts = [ann, UserId(1)].map(|user| facts.counts(user));
        assert_eq!(counts.map(|counts| (counts.requests, counts.requested)), [(1, 0), (0, 1)]);
        let featured = facts.featured_tags(ann);
        assert_eq!((featured[0].tag.as_str(), featured[2].since.0), ("go", 4_194_305));
        assert_ne!(featured[0].since, featured[1].since, "apps name a hashtag by it");
        let followed = facts.followed_tags(ann);
        assert_eq!((followed[0].tag.as_str(), followed[1].since.0), ("nats", 4_194_306));
        let tags = [featured, followed];
        (facts.markers(ann), facts.note(ann, UserId(1)), facts.counts(ann).notes, tags)
    };
    let [ann, bob] = users(&first);
    let (markers, note, notes, tags) = of_ann(&first);
    let home = Marker { last_read: 7, version: 3, updated: Stamp(4_194_304) };
    assert_eq!((markers.home, markers.notifications.unwrap().last_read), (Some(home), 8));
    assert_eq!((note.as_ref().unwrap().as_str(), notes), ("met in Rome", 1));
    let [field] = ann.fields.as_slice() else { panic!("{ann:?}") };
    assert_eq!((field.name(), field.value()), ("Web", "a.example"));
    assert_eq!((ann.bot, ann.undiscoverable, ann.indexable), (true, true, true));
    assert_eq!(ann.defaults.visibility, Visibility::Followers);
    assert_eq!(ann.defaults.language, Language::parse("de").ok());
    assert_eq!(ann.defaults.quote_policy, QuotePolicy::Nobody);
    assert_eq!(bob, User::of(bob.handle.clone(), bob.registered));
    first.close();
    drop(first);
    let before = NodeOptions { data: folder.path().join("data"), ..options() };
    let (moved_to, _folder) = moved(&before);
    let second = Node::open(&moved_to).unwrap();
    assert_eq!((users(&second), of_ann(&second)), ([ann, bob], (markers, note, notes, tags)));
}

#[test]
fn blocks_and_mutes_are_those_of_their_lines_and_survive_an_export() {
    let lines = [
        ANN,
        BOB,
        BLOCK,
        r#"{"mute":{"user":"bob","mutes":"ann","mentions":true}}"#,
        r#"{"mute":{"user":0,"mutes":1,"ends":"2027-01-15T08:00:01Z"}}"#,
    ];
    let (first, folder) = node(&lines);
    let check = |node: &Node, both: bool| {
        let (facts, ann, bob) = (node.facts(), UserId(0), UserId(1));
        assert!(facts.blocks(ann, bob) && !facts.blocks(bob, ann));
        let forever = Mute { mentions: true, ends_ms: None };
        assert_eq!(facts.mute(bob, ann), Some(forever));
        let mute = Mute { mentions: false, ends_ms: Some(NOW_MS + 1_000) };
        assert_eq!(facts.mute(ann, bob), Some(mute).filter(|_| both));
        let due = facts.first_due(0, None, 9).into_iter();
        let ends = due.filter(|due| matches!(due.work, DueWork::EndMute { .. }));
        assert_eq!(ends.count(), usize::from(both));
        let counts = [ann, bob].map(|user| facts.counts(user)).map(|of| (of.blocks, of.mutes));
        assert_eq!(counts, [(1, u32::from(both)), (0, 1)]);
        let totals = facts.totals();
        assert_eq!((totals.blocks, totals.mutes), (1, 1 + u64::from(both)));
    };
    check(&first, true);
    first.close();
    drop(first);
    let before = NodeOptions { data: folder.path().join("data"), ..options() };
    let (moved_to, _folder) = moved(&before);
    let second = Node::open(&moved_to).unwrap();
    check(&second, true);
    second.close();
    drop(second);
    // Data that has expired by then is not exported.
    let later = NodeOptions { clock: Clock::from_fn(|| NOW_MS + 1_000), ..before };
    let (moved_to, _folder) = moved(&later);
    check(&Node::open(&moved_to).unwrap(), false);
}

#[test]
fn boosts_are_those_of_their_lines_and_survive_an_export() {
    let (first, folder) = node(&[
        ANN,
        BOB,
        r#"{"user":{"handle":"cyd"}}"#,
        r#"{"relation":{"kind":"follow","user":"cyd","users":["ann","bob"]}}"#,
        POST,
        r#"{"reaction":{"user":"ann","kind":"boost","id":"8388608"}}"#,
        r#"{"reaction":{"user":"bob","kind":"boost","id":"12582912","earlier":["ann"]}}"#,
        r#"{"post":{"author":1,"text":"y","id":"16777216"}}"#,
        r#"{"reaction":{"user":"bob","kind":"boost","id":"20971520"}}"#,
    ]);
    let check = |node: &Node| {
        let (facts, ann, bob) = (node.facts(), UserId(0), UserId(1));
        let [first, second] = [8_388_608, 12_582_912].map(PostId);
        let boosts = [first, second].map(|id| facts.post(id).unwrap().boost.unwrap());
        let [by_ann, by_bob] = boosts;
        let post = PostId(4_194_304);
        assert_eq!((by_ann.post, by_ann.author, by_ann.is_recent), (post, ann, true));
        assert_eq!((by_ann.earlier, by_bob.earlier), (vec![], vec![ann]));
        let counts = facts.post_counts(post);
        assert_eq!((counts.favourites, counts.boosts, counts.boosters), (0, 2, vec![bob, ann]));
        assert_eq!((facts.counts(ann).posts, facts.counts(bob).posts), (2, 3));
        assert_eq!(facts.totals().posts, 5);
        // All boosted posts are by users whom cyd follows.
        let page = Page::newest(9);
        assert_eq!(node.home_ids(UserId(2), &page).items, [PostId(16_777_216), post]);
    };
    check(&first);
    first.close();
    drop(first);
    let (moved_to, _folder) = moved(&NodeOptions { data: folder.path().join("data"), ..options() });
    check(&Node::open(&moved_to).unwrap());
}

/// Endless reader of a single line.
struct Endless;

impl std::io::Read for Endless {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        into.fill(b' ');
        Ok(into.len())
    }
}

#[test]
fn a_line_without_an_end_takes_bounded_memory() {
    let folder = tempfile::tempdir().unwrap();
    let options = NodeOptions { data: folder.path().to_owned(), ..options() };
    let text = node::import(&options, Endless).unwrap_err().to_string();
    assert!(text.contains("line 1: it has more than"), "{text}");
}

#[test]
fn ids_and_times_that_are_missing_are_given_in_the_order_of_lines() {
    let (node, _folder) = node(&[
        ANN,
        BOB,
        r#"{"post":{"author":"ann","text":"one","time":"2026-01-01T00:00:00Z"}}"#,
        r#"{"post":{"author":"ann","text":"two","time":"2026-01-01T00:00:00Z"}}"#,
        r#"{"post":{"author":"ann","text":"@bob three"}}"#,
        r#"{"post":{"author":"bob","text":"four"}}"#,
        STORY,
        r#"{"relation":{"kind":"friends","user":"bob","users":["ann"]}}"#,
        r#"{"view":{"user":"bob"}}"#,
    ]);
    let facts = node.facts();
    let ann = node.resolve(&handle("ann")).unwrap();
    assert_eq!(ann, UserId(0));
    assert_eq!(facts.user(ann).unwrap().registered.unix_ms(), NOW_MS);
    let posts = facts.posts_by(ann, Span::ALL);
    let times: Vec<u64> = posts.iter().map(|(post, _)| post.unix_ms()).collect();
    let new_year = 1_767_225_600_000;
    assert_eq!(times, [new_year, new_year, NOW_MS]);
    let three = facts.post(posts[2].0).unwrap();
    assert_eq!((three.reply_to, three.mentions), (None, vec![UserId(1)]), "it replies to no post");
    assert!(facts.posts_by(UserId(1), Span::ALL)[0].0 > posts[2].0);
    assert_eq!(facts.mentions_of(UserId(1), Span::ALL), [posts[2].0]);
    let (story, expires_ms) = facts.stories_by(ann, Span::ALL)[0];
    assert_eq!(expires_ms, story.unix_ms() + 86_400_000);
    let views = node.story_views(StoryId(story.0), ann, Span::ALL).unwrap();
    assert_eq!(views, [(UserId(1), story.unix_ms())]);
    let counts = facts.counts(ann);
    assert_eq!((counts.posts, counts.friends), (3, 1));
    let next = node.now_ms();
    assert!((NOW_MS..NOW_MS + 1_000).contains(&next), "{next}");
}

#[test]
fn a_deleted_user_keeps_the_handle_and_is_shown_nowhere() {
    let (node, folder) = node(&[
        ANN,
        r#"{"user":{"handle":"bob","deleted":true}}"#,
        r#"{"post":{"author":0,"text":"@bob hi","mentions":[1],"reply_to":1}}"#,
    ]);
    assert_eq!(node.resolve(&handle("bob")), None);
    let facts = node.facts();
    assert_eq!(facts.first_by_handle(&Handle::parse("bob").unwrap()), Some(UserId(1)));
    assert_eq!(facts.mentions_of(UserId(1), Span::ALL), []);
    let (post, listed) = facts.posts_by(UserId(0), Span::ALL)[0];
    assert_eq!(
        (listed.reply_to(), facts.post(post).unwrap().mentions),
        (Some(UserId(1)), vec![UserId(1)])
    );
    assert_eq!(node.sizes().users, 1);
    node.close();
    drop(node);
    moved(&NodeOptions { data: folder.path().join("data"), ..options() });
}

#[derive(Clone, Debug)]
enum Step {
    Put(u64, Vec<u8>, Vec<u8>, Option<u64>),
    Remove(u64, Vec<u8>),
    Flush(u64),
    Swap(u64, u64),
    Create(u8),
    Drop(u8),
    Sample(u8, u8),
    DeleteSample(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = || proptest::collection::vec(prop_oneof![3 => b'a'..b'd', 1 => any::<u8>()], 1..4);
    let bucket = || prop_oneof![0u64..3, 16u64..19];
    let expiry = proptest::option::of(prop_oneof![Just(1), Just(600_000), Just(u64::MAX - 9)]);
    prop_oneof![
        8 => (bucket(), bytes(), bytes(), expiry).prop_map(|(b, k, v, e)| Step::Put(b, k, v, e)),
        2 => (bucket(), bytes()).prop_map(|(bucket, key)| Step::Remove(bucket, key)),
        1 => bucket().prop_map(Step::Flush),
        1 => (bucket(), bucket()).prop_map(|(a, b)| Step::Swap(a, b)),
        2 => (0u8..4).prop_map(Step::Create),
        1 => (0u8..4).prop_map(Step::Drop),
        3 => (0u8..3, any::<u8>()).prop_map(|(set, bits)| Step::Sample(set, bits)),
        1 => any::<usize>().prop_map(Step::DeleteSample),
    ]
}

/// Key, value, expiry and version.
type Key = (Vec<u8>, Vec<u8>, Option<u64>, u64);

/// Returns all live keys of a bucket, with their values, expiry and versions.
fn keys(node: &Node, bucket: BucketId) -> Vec<Key> {
    let now_ms = node.now_ms();
    let (rows, next) = node.keys().walk(bucket, 0, usize::MAX);
    assert_eq!(next, None);
    let rows = rows.iter().filter(|row| row.is_live(now_ms));
    let mut keys: Vec<_> = rows
        .map(|row| (row.key().to_vec(), row.value().to_vec(), row.expires_ms(), row.version().0))
        .collect();
    keys.sort();
    keys
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn keys_and_samples_are_the_same_after_an_import(steps in prop::collection::vec(step(), 1..60)) {
        let folder = tempfile::tempdir().unwrap();
        let mut options = options();
        options.data = folder.path().to_owned();
        options.durability = node::Durability::Never;
        options.overlay_memory = 5_000;
        let node = Node::open(&options).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let name = |at: &u8| BucketName::parse(&format!("b{at}")).unwrap();
        let mut samples = Vec::new();
        for step in &steps {
            let key = |key| Bytes::new(key);
            let op = match step {
                Step::Put(bucket, k, v, expiry) => {
                    let expiry = expiry.map_or(Expiry::Never, Expiry::In);
                    let (bucket, only) = (BucketId(*bucket), Only::Always);
                    KeyOp::Put { bucket, key: key(k), value: key(v), expiry, only, old: false }
                }
                Step::Remove(bucket, k) => {
                    KeyOp::Remove { bucket: BucketId(*bucket), keys: vec![key(k)] }
                }
                Step::Flush(bucket) => KeyOp::Flush { bucket: BucketId(*bucket) },
                Step::Swap(a, b) => KeyOp::Swap { a: BucketId(*a), b: BucketId(*b) },
                Step::Create(at) => KeyOp::Create { name: name(at) },
                Step::Drop(at) => KeyOp::Drop { name: name(at) },
                Step::Sample(set, bits) => {
                    let set = feed::SetName::parse(&format!("s{set}")).unwrap();
                    let label = feed::Label::parse(&bits.to_string()).unwrap();
                    let bits = Box::new([*bits; 128].into());
                    let add = feed::Command::AddSample { set, label, bits };
                    let reply = runtime.block_on(node.submit(node::Request::from(add))).unwrap();
                    let Ok(feed::Done::SampleAdded { sample }) = reply.outcome else { panic!("{reply:?}") };
                    samples.push(sample);
                    continue;
                }
                Step::DeleteSample(at) => {
                    if !samples.is_empty() {
                        let sample = samples.swap_remove(at % samples.len());
                        let delete = feed::Command::DeleteSample { sample };
                        runtime.block_on(node.submit(node::Request::from(delete))).unwrap().outcome.unwrap();
                    }
                    continue;
                }
            };
            let ops: KeyOps = [op].into_iter().collect();
            runtime.block_on(node.submit_keys(ops, Vec::new())).unwrap();
        }
        let buckets = |node: &Node| -> Vec<_> {
            let named = (0..4).filter_map(|at| node.bucket_named(&name(&at)));
            (0..3).map(BucketId).chain(named).map(|bucket| keys(node, bucket)).collect()
        };
        let sets = |node: &Node| {
            let mut sets = Vec::new();
            node.facts().each_sample(|id, sample| sets.push((id, sample)));
            let counts: Vec<_> =
                node.facts().sample_sets().map(|set| (set.samples, set.labels)).collect();
            (sets, counts)
        };
        let before = (buckets(&node), sets(&node));
        node.close();
        drop(node);
        let (options, _moved) = moved(&options);
        let node = Node::open(&options).unwrap();
        prop_assert_eq!((buckets(&node), sets(&node)), before);
    }
}

#[test]
fn an_export_of_format_1_is_read_and_its_facts_are_written_again() {
    let fixture = include_str!("../fixtures/export-1.ndjson");
    let (options, _folder, _) = imported(&options(), fixture).unwrap();
    assert_eq!(facts(&exported(&options)), facts(fixture));
    for line in [
        "user",
        "relation",
        "mute",
        "note",
        "list",
        "follow_options",
        "post",
        "reaction",
        "vote",
        "scheduled",
        "story",
        "view",
        "sample",
        "feed",
        "bucket",
        "key",
    ] {
        assert!(fixture.contains(&format!("\n{{\"{line}\":")), "{line}");
    }
}

#[test]
fn an_export_says_what_is_in_it_and_the_first_line_alone_has_the_time() {
    let (node, folder) =
        node(&[ANN, BOB, r#"{"relation":{"kind":"follow","user":0,"users":[1]}}"#]);
    node.close();
    drop(node);
    let data = folder.path().join("data");
    let at = |ms| {
        exported(&NodeOptions {
            data: data.clone(),
            clock: Clock::from_fn(move || ms),
            ..options()
        })
    };
    let (one, other) = (at(NOW_MS), at(NOW_MS + 5_000));
    assert_ne!(one, other);
    assert_eq!(facts(&one), facts(&other));
    assert!(one.starts_with(
        r#"{"export":{"format":1,"roost":"test","time":"2027-01-15T08:00:00.000Z","last_id":""#
    ));
    let end = one.lines().last().unwrap();
    assert!(
        end.starts_with(
            r#"{"end":{"counts":{"users":2,"blocks":0,"mutes":0,"not_interested":0,"notes":0,"#
        ) && end.contains(r#""follows":1,"requests":0,"friendships":0,"#),
        "{end}"
    );
}

#[test]
fn accounts_are_imported_and_exported_as_they_were_and_wrong_ones_are_refused() {
    let account = |handle: &str, email: &str, more: &str| {
        let password = r#""password":"$argon2id$v=19$m=8,t=1,p=1$c2FsdA$aGFzaA""#;
        format!(
            r#"{{"user":{{"handle":"{handle}","account":{{"email":"{email}",{password},{more}}}}}}}"#
        )
    };
    let right = r#""role":"admin","state":"disabled","created":"2026-05-02T08:00:00.000Z""#;
    let ann = account("ann", "ann@example.org", right);
    let (node, folder) = node(&[&ann, BOB]);
    let email = feed::accounts::Email::parse("ann@example.org").unwrap();
    assert_eq!(node.facts().by_email(&email), Some(UserId(0)));
    assert_eq!(node.facts().totals().accounts, 1);
    assert!(node.facts().active_account(UserId(0)).is_none(), "it is disabled");
    node.close();
    drop(node);
    let options_of = |data| NodeOptions { data, ..options() };
    let whole = exported(&options_of(folder.path().join("data")));
    let (_, stored) = ann.split_once("\"account\"").unwrap();
    assert!(whole.contains(stored), "{whole}");
    for (lines, what) in [
        (&[ann.as_str(), &account("bob", "ANN@example.org", right)][..], "address is taken"),
        (&[&account("bob", "no address", right)], "e-mail address"),
        (&[&account("bob", "b@x", r#""role":"king","state":"active""#)], "a role must be"),
        (&[&account("bob", "b@x", r#""role":"user","state":"gone""#)], "the state of an account"),
        (&[&ann.replace("$argon2id", "$md5")], "password hash"),
        (&[&ann.replace("}}}", "},\"deleted\":true}}")], "a deleted user cannot have an account"),
    ] {
        refused(lines, what);
    }
}
