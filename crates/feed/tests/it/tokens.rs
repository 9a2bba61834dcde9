//! URLs, mentions and hashtags in texts: the cases of `tokens.json`, which also test the pages.

use feed::token::{Token, TokenKind, length, tokens, without_domain};
use proptest::prelude::*;
use serde_json::{Value, json};

fn shown(token: &Token<'_>) -> Value {
    match &token.kind {
        TokenKind::Url => json!(["url", token.text]),
        TokenKind::Mention(handle) => json!(["mention", handle.as_str()]),
        TokenKind::Address(handle, domain) => {
            json!(["address", format!("{}@{domain}", handle.as_str())])
        }
        TokenKind::Tag(tag) => json!(["tag", tag.as_str()]),
    }
}

#[test]
fn tokens_are_found_where_a_reader_would_see_them() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("../tokens.json")).unwrap();
    assert!(cases.len() > 80);
    for case in cases {
        let text = case["text"].as_str().unwrap();
        let found: Vec<_> = tokens(text).map(|token| shown(&token)).collect();
        assert_eq!(Value::from(found), case["tokens"], "{text:?}");
        if let Some(expect) = case.get("length") {
            assert_eq!(json!(length(text)), *expect, "{text:?}");
        }
    }
}

#[test]
fn only_the_domain_of_the_server_is_left_out() {
    for (text, expect) in [
        ("@Bob@Social.Example: hi", "@Bob: hi"),
        ("(@bob@social.example)@ada@social.example.", "(@bob)@ada."),
        ("@bob@social.example\u{3055}\u{3093}", "@bob\u{3055}\u{3093}"),
        ("@bob@social.example.org @bob@social @bob@social.example:80", ""),
        ("@bob@social.example/x https://a.example/@bob@social.example x@bob@social.example", ""),
        ("@bob-x@social.example @bob.x@social.example @@bob@social.example", ""),
    ] {
        let expect = if expect.is_empty() { text } else { expect };
        assert_eq!(without_domain(text, "social.example"), expect, "{text:?}");
    }
    assert_eq!(
        without_domain("@bob@localhost:80 @bob@localhost", "localhost:80"),
        "@bob @bob@localhost"
    );
}

proptest! {
    #[test]
    fn tokens_follow_each_other_and_a_text_without_the_domain_has_none_of_it(
        text in r#"(@[a-z]{1,3}|@s\.example|https?://|[#\u{ff03}][a-z\u{b7}]{0,4}|[(\[\u{300c}\u{201e}\u{201c}]|[)\]\u{300d}\u{201d}]|[ <>\\/:=.,\u{3001}\u{200b}-]|\n|\PC){0,40}"#,
    ) {
        let mut end = 0;
        for token in tokens(&text) {
            prop_assert!(token.start >= end && !token.text.is_empty());
            end = token.start + token.text.len();
            prop_assert_eq!(text.get(token.start..end), Some(token.text));
            let is_hidden = |c: char| c.is_whitespace() || c.is_control() || "\u{200b}\u{202e}".contains(c);
            prop_assert!(!token.text.contains(is_hidden));
        }
        let short = without_domain(&text, "s.example");
        prop_assert!(length(&short) <= length(&text));
        for token in tokens(&short) {
            let is_own = matches!(token.kind, TokenKind::Address(_, domain) if domain == "s.example");
            prop_assert!(!is_own, "{}", short);
        }
    }
}
