//! Tests of the parser of lines.

use feed::quotes::QuotePolicy;
use feed::{Condition, Conditional, PostId, StoryId, UserId, UserRef};

use super::*;

fn parse(line: &[u8]) -> Result<Change, ApiError> {
    let story_life = Lifetime::from_secs(60).unwrap();
    super::parse(line, Defaults { story_life, domain: "social.example", client: [7; 32] })
}

fn check(line: &str, expect: impl Into<Result<Command, &'static str>>) {
    let parsed = parse(line.as_bytes());
    let expect = expect.into();
    assert_eq!(parsed.map(|r| r.command).map_err(|error| error.code), expect, "{line}");
}

fn id(id: u32) -> UserRef {
    UserRef::Id(UserId(id))
}

fn handle(text: &str) -> UserRef {
    UserRef::Handle(Handle::parse(text).unwrap())
}

fn by(author: UserRef, change: Conditional) -> Command {
    Command::If(Box::new(Condition { author: Some(author), revisions: None, change }))
}

#[test]
fn users_and_posts_are_numbers_strings_or_handles() {
    let follow = |user, other| Ok(Command::Follow { user, other });
    check(r#"{"op":"follow","user":1,"other":2}"#, follow(id(1), id(2)));
    check(r#"{"op":"follow","user":"1","other":"@Bob"}"#, follow(id(1), handle("bob")));
    check(r#"{"other":2,"user":"\u0031","op":"follow"}"#, follow(id(1), id(2)));
    let unfollow = Command::Unfollow { user: id(1), other: id(2) };
    check(r#"{"op":"unfollow","user":1,"other":2}"#, Ok(unfollow));
    let delete = |author| Ok(by(author, Conditional::DeletePost { post: PostId(7) }));
    check(r#"{"op":"delete_post","user":1,"id":7}"#, delete(id(1)));
    check(r#"{"op":"delete_post","user":"@bob","id":"7"}"#, delete(handle("bob")));
    let text = PostText::parse("caf\u{e9} \"x\"").unwrap();
    let post = Command::Publish(Box::new(Draft::new(handle("a"), text)));
    check(r#"{"op":"post","user":"@a","text":"caf\u00e9 \"x\""}"#, Ok(post));
    let text = PostText::parse("x").unwrap();
    let (quote, quote_policy) = (Some(PostId(7)), QuotePolicy::Nobody);
    let quoting = Draft { quote, quote_policy, ..Draft::new(id(1), text) };
    check(
        r#"{"op":"post","user":1,"text":"x","quote_id":"7","quote_policy":"nobody"}"#,
        Ok(Command::Publish(Box::new(quoting))),
    );
    check(r#"{"op":"register","handle":"a","quote_id":"7"}"#, Err("bad_json"));
    let register = Command::Register {
        handle: Handle::parse("a").unwrap(),
        name: Name::parse("A").unwrap(),
        bio: Bio::default(),
    };
    check(r#"{"op":"register","handle":"A","name":"A"}"#, Ok(register));
}

#[test]
fn a_line_follows_many_others_or_one() {
    let many = |others| Ok(Command::FollowMany { user: id(1), others });
    check(r#"{"op":"follow","user":1,"others":[2]}"#, many(vec![id(2)]));
    let two = vec![id(2), handle("bob")];
    check(r#"{"op":"follow","user":"1","others":["2","@bob"]}"#, many(two));
    let line = |count| {
        let others = vec!["7"; count].join(",");
        format!(r#"{{"op":"follow","user":1,"others":[{others}]}}"#)
    };
    check(&line(1_000), many(vec![id(7); 1_000]));
    for refused in [
        &line(0),
        &line(1_001),
        r#"{"op":"follow","user":1,"other":2,"others":[3]}"#,
        r#"{"op":"unfollow","user":1,"others":[3]}"#,
        r#"{"op":"follow","user":1,"others":3}"#,
    ] {
        check(refused, Err("bad_json"));
    }
}

#[test]
fn lines_with_friends_and_stories_are_parsed() {
    let (user, other) = (id(1), handle("bob"));
    let line = |op: &str| format!(r#"{{"op":"{op}","user":1,"other":"@bob"}}"#);
    let befriend = Command::Befriend { user: user.clone(), other: other.clone() };
    check(&line("befriend"), Ok(befriend));
    check(&line("unfriend"), Ok(Command::Unfriend { user, other }));
    let post_story = |secs| Command::PostStory {
        author: id(1),
        text: PostText::parse("x").unwrap(),
        life: Lifetime::from_secs(secs).unwrap(),
    };
    check(r#"{"op":"post_story","user":1,"text":"x"}"#, Ok(post_story(60)));
    check(r#"{"op":"post_story","user":1,"text":"x","ttl_s":5}"#, Ok(post_story(5)));
    let story = StoryId(7);
    let delete = by(id(1), Conditional::DeleteStory { story });
    check(r#"{"op":"delete_story","user":1,"id":"7"}"#, Ok(delete));
    let view = Command::ViewStory { story, viewer: id(1) };
    check(r#"{"op":"view_story","id":7,"user":1}"#, Ok(view));
}

#[test]
fn lines_add_samples_in_every_form() {
    let add = |set: &str| Command::AddSample {
        set: feed::SetName::parse(set).unwrap(),
        label: feed::Label::parse("\"7\"").unwrap(),
        bits: Box::new([0; 128].into()),
    };
    let numbers = format!("[{}0]", "0,".repeat(1_023));
    for bits in [format!("\"{}\"", "0".repeat(256)), format!("\"{}\"", "0 ".repeat(1_024)), numbers]
    {
        let line = format!(r#"{{"op":"add_sample","label":"\"7\"","sample":{bits}"#);
        check(&format!("{line}}}"), Ok(add("digits")));
        check(&format!(r#"{line},"set":"a-B_9"}}"#), Ok(add("a-B_9")));
    }
    let sample = feed::SampleId(7);
    check(r#"{"op":"delete_sample","id":7}"#, Ok(Command::DeleteSample { sample }));
    let zeros = "0".repeat(256);
    for (more, code) in [
        (format!(r#","label":"7","sample":"{zeros}","set":"a b""#), "bad_set"),
        (format!(r#","label":"","sample":"{zeros}""#), "bad_label"),
        (format!(r#","label":"7","sample":"{zeros}0""#), "bad_sample"),
        (format!(r#","label":"7","sample":"{zeros}","set":null"#), "bad_json"),
        (format!(r#","sample":"{zeros}""#), "bad_json"),
        (r#","label":"7","sample":{}"#.to_owned(), "bad_json"),
        (r#","label":"7""#.to_owned(), "bad_json"),
    ] {
        check(&format!(r#"{{"op":"add_sample"{more}}}"#), Err(code));
    }
}

#[test]
fn invalid_lines_are_refused() {
    for (line, code) in [
        ("x", "bad_json"),
        ("{", "bad_json"),
        ("[]", "bad_json"),
        (r#"["follow",null,null,null,1,2]"#, "bad_json"),
        ("{}", "bad_json"),
        (r#"{"op":"fly"}"#, "bad_json"),
        (r#"{"op":"follow","user":1}"#, "bad_json"),
        (r#"{"op":"follow","user":1,"other":null}"#, "bad_json"),
        (r#"{"op":"follow","user":1,"other":2.5}"#, "bad_json"),
        (r#"{"op":"follow","user":1,"other":2,"text":"x"}"#, "bad_json"),
        (r#"{"op":"follow","user":1,"user":1,"other":2}"#, "bad_json"),
        (r#"{"op":"follow","user":1,"other":2,"x":1}"#, "bad_json"),
        (r#"{"op":"follow","user":1,"other":2} {}"#, "bad_json"),
        (r#"{"op":"follow","user":-1,"other":2}"#, "bad_json"),
        (r#"{"op":"follow","user":4294967296,"other":2}"#, "bad_request"),
        (r#"{"op":"follow","user":"one","other":2}"#, "bad_request"),
        (r#"{"op":"follow","user":"@b-b","other":2}"#, "bad_handle"),
        (r#"{"op":"delete_post","user":1,"id":"9223372036854775808"}"#, "bad_request"),
        (r#"{"op":"delete_post","user":1,"id":"@ada"}"#, "bad_request"),
        (r#"{"op":"delete_post","id":7}"#, "bad_json"),
        (r#"{"op":"post","user":1,"text":" "}"#, "bad_text"),
        (r#"{"op":"post","user":1,"text":"x","language":""}"#, "bad_language"),
        (r#"{"op":"post","user":1,"text":"x","idempotency_key":""}"#, "bad_idempotency_key"),
        (r#"{"op":"register","handle":"a","name":null}"#, "bad_json"),
        (r#"{"op":"post_story","user":1,"text":"x","ttl_s":0}"#, "bad_ttl"),
        (r#"{"op":"post_story","user":1,"text":"x","ttl_s":604801}"#, "bad_ttl"),
        (r#"{"op":"post_story","user":1,"text":"x","ttl_s":null}"#, "bad_json"),
        (r#"{"op":"post_story","user":1,"text":"x","ttl_s":"5"}"#, "bad_json"),
        (r#"{"op":"post_story","user":1,"text":"x","ttl_s":-1}"#, "bad_json"),
        (r#"{"op":"post_story","user":1,"text":""}"#, "bad_text"),
        (r#"{"op":"post_story","user":1,"text":"x","idempotency_key":""}"#, "bad_idempotency_key"),
        (r#"{"op":"post","user":1,"text":"x","ttl_s":5}"#, "bad_json"),
        (r#"{"op":"delete_story","user":1,"id":"9223372036854775808"}"#, "bad_request"),
        (r#"{"op":"delete_story","id":7}"#, "bad_json"),
        (r#"{"op":"view_story","id":7}"#, "bad_json"),
    ] {
        check(line, Err(code));
    }
    assert!(parse(b"{\"op\":\"post\",\"user\":1,\"text\":\"\xff\"}").is_err());
}

#[test]
fn every_line_may_have_a_key() {
    for line in [
        r#"{"op":"register","handle":"ada","idempotency_key":"k"}"#,
        r#"{"idempotency_key":"k","op":"follow","user":1,"other":2}"#,
        r#"{"op":"post","user":1,"text":"x","idempotency_key":"k"}"#,
        r#"{"op":"delete_story","user":1,"id":7,"idempotency_key":"k"}"#,
    ] {
        let change = parse(line.as_bytes()).unwrap();
        assert_eq!(change.key, Some(Key::parse(b"k").unwrap().of_client([7; 32])), "{line}");
    }
}

#[test]
fn errors_name_the_field() {
    for (line, field) in [
        (r#"{"op":"follow","user":1}"#, "other"),
        (r#"{"op":"follow","user":1,"other":"x"}"#, "other"),
        (r#"{"op":"follow","user":"@-","other":1}"#, "user"),
        (r#"{"op":"fly"}"#, "op"),
        (r#"{"op":"post","user":1,"text":"x","idempotency_key":""}"#, "idempotency_key"),
        (r#"{"op":"delete_post","id":7}"#, "user"),
        (r#"{"op":"delete_post","user":1,"id":"x"}"#, "id"),
    ] {
        let error = parse(line.as_bytes()).unwrap_err();
        assert_eq!(error.field.as_deref(), Some(field), "{line}");
    }
}
