//! Actions as requests, and what their answers say.

use std::sync::Arc;

use rand::SeedableRng;
use rand::rngs::StdRng;

use super::Kind;
use crate::client::{Requests, Response};
use crate::load::{LoadError, parse_result};
use crate::workload::{Action, PostKind, What, distorted};
use crate::{lines, texts};

/// How many posts, mentions or stories of one person are read at once.
const PAGE: u32 = 20;
/// How many stories are read at once from a stories home.
const STORIES_HOME: u32 = 10;

/// How to turn actions into requests.
pub(crate) struct Script {
    pub(crate) requests: Requests,
    /// Seed of the handles.
    pub(crate) seed: u64,
    /// What drawings are made of, if there are any.
    pub(crate) references: Option<Arc<[[u8; 128]]>>,
    /// The kinds of requests the actions make, to be told apart.
    pub(crate) kinds: Vec<Kind>,
}

impl Script {
    /// Replaces `request` with the action's request.
    pub(super) fn write(&self, action: &Action, request: &mut Vec<u8>) {
        let person = action.person;
        let mut get = |rest: String| self.requests.get(&format!("/v1/users/{rest}"), request);
        match action.what {
            What::ReadHome => get(format!("{person}/timeline?limit={PAGE}")),
            What::ReadMentions => get(format!("{person}/mentions?limit={PAGE}")),
            What::ReadStoriesHome => get(format!("{person}/stories/home?limit={STORIES_HOME}")),
            What::ReadStories(friend) => get(format!("{friend}/stories?as={person}&limit={PAGE}")),
            What::Recognise { seed } => {
                let drawing = distorted(self.references.as_deref().unwrap_or_default(), seed);
                let body = format!("{{\"sample\":\"{drawing}\"}}");
                self.requests.post("/v1/recognise", body.as_bytes(), request);
            }
            What::Post { kind, text_seed } => {
                let kind = kind.map(|mentioned| texts::handle(self.seed, mentioned));
                let text = texts::seeded_post_text(text_seed, kind.as_deref());
                let body = format!("{{\"text\":\"{text}\"}}");
                self.requests.post(&format!("/v1/users/{person}/posts"), body.as_bytes(), request);
            }
            What::TellStories { stories: 1, life_s, text_seed } => {
                let text = texts::seeded_post_text(text_seed, PostKind::Plain);
                let body = format!("{{\"text\":\"{text}\",\"ttl_s\":{life_s}}}");
                let path = format!("/v1/users/{person}/stories");
                self.requests.post(&path, body.as_bytes(), request);
            }
            What::TellStories { stories, life_s, text_seed } => {
                let mut rng = StdRng::seed_from_u64(text_seed);
                let mut lines = Vec::new();
                for person in person..person + stories {
                    let text = texts::post_text(&mut rng, PostKind::Plain);
                    lines::tell(person, &text, life_s.into(), &mut lines);
                }
                self.requests.post_lines("/v1/batch", &lines, request);
            }
        }
    }
}

pub(super) fn kind_of(what: What) -> Kind {
    match what {
        What::Post { .. } => Kind::Post,
        What::ReadHome => Kind::Home,
        What::ReadMentions => Kind::Mentions,
        What::TellStories { .. } => Kind::TellStory,
        What::ReadStoriesHome => Kind::StoriesHome,
        What::ReadStories(_) => Kind::Stories,
        What::Recognise { .. } => Kind::Recognise,
    }
}

/// How many things an action's request is to do.
pub(super) fn count_of(what: What) -> u64 {
    match what {
        What::TellStories { stories, .. } => stories.into(),
        _ => 1,
    }
}

/// How many of an action's `count` things are done by its answer. The answer to a batch has a line
/// for each.
pub(super) fn done_in(response: &Response<'_>, count: u64) -> u64 {
    match count {
        _ if !response.is_success() => 0,
        1 => 1,
        _ => results(response.body).filter(Result::is_ok).count() as u64,
    }
}

/// What the answer to a batch says of the first command that is not done.
pub(super) fn first_refusal(body: &[u8]) -> String {
    let refusal = results(body).find_map(Result::err);
    refusal.map_or_else(|| "the answer ended too early".to_owned(), |error| error.to_string())
}

fn results(body: &[u8]) -> impl Iterator<Item = Result<Option<u64>, LoadError>> {
    let lines = body.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    (0..).zip(lines).map(|(number, line)| parse_result(line, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_to_a_batch_tells_what_is_done_and_what_is_not() {
        let check = |status: u16, body: &str, count: u64, done: u64, refusal: &str| {
            let response = Response { status, body: body.as_bytes() };
            assert_eq!(done_in(&response, count), done, "{status} {body}");
            assert_eq!(first_refusal(response.body), refusal, "{body}");
        };
        let (done, early) = ("{\"ok\":true,\"id\":\"1\"}\n", "the answer ended too early");
        let refused = "{\"ok\":false,\"error\":\"x\",\"message\":\"y\"}";
        check(200, &done.repeat(2), 2, 2, early);
        check(200, "{\"id\": \"1\", \"ok\": true}\n{\"ok\":true}", 2, 2, early);
        check(200, &format!("{done}{refused}\n{done}"), 3, 2, "command 1 was refused: x: y");
        check(200, done, 2, 1, early);
        check(200, "x", 2, 0, "malformed answer: a result that is not one");
        check(503, done, 2, 0, early);
        // A single thing has an answer of its own kind.
        check(201, "", 1, 1, early);
        check(404, "", 1, 0, early);
    }
}
