//! Polls: reading, voting, and the poll of a new or edited status.

use axum::extract::State;
use axum::response::Response;
use feed::polls::{NewPoll, PollOptions, PollTime};
use feed::{Command, PollChoices, PostId, Refusal, UserRef};

use crate::access::Needs;
use crate::answers;
use crate::endpoints::Endpoints;
use crate::entities::Entities;
use crate::error::ApiError;
use crate::fields::{Fields, Params};
use crate::input::{InPath, Me, Once, Reader, number};
use crate::state::Shared;

/// Adds the routes of polls.
pub(crate) fn routes(table: &mut Endpoints) {
    table.get("/api/v1/polls/{id}", Needs::ANYONE_STATUSES, show);
    table.post("/api/v1/polls/{id}/votes", Needs::WRITE_STATUSES, vote);
}

/// Responds with a poll. Its id is that of its status.
pub(crate) async fn show(
    State(state): State<Shared>,
    Reader(reader): Reader,
    InPath(post): InPath<PostId>,
) -> Result<Response, ApiError> {
    let read = move |_: &_, entities: &mut Entities<'_>| entities.poll_in(post);
    answers::entity(state.entities(reader, read).await?)
}

pub(crate) async fn vote(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(post): InPath<PostId>,
    once: Once,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let chosen = fields.all("choices").map(|text| {
        let option = number(text).and_then(|option| usize::try_from(option).ok());
        option.ok_or(Refusal::BadChoice)
    });
    let choices = PollChoices::new(chosen.collect::<Result<Vec<_>, _>>()?);
    // A missing poll is refused before the choices are checked.
    let read = move |_: &_, entities: &mut Entities<'_>| entities.poll_in(post).map(|_| ());
    state.entities(Some(me), read).await?.ok_or_else(ApiError::not_found)?;
    let command = Command::Vote { user: UserRef::Id(me), post, choices: choices? };
    state.change(me, once, command).await?;
    let read = move |entities: &mut Entities<'_>| entities.poll_in(post);
    answers::entity(state.entities_done(me, read).await?)
}

/// Poll of a status in a request; `Some(None)` removes the poll.
pub(crate) fn named(fields: &Fields) -> Result<Option<Option<NewPoll>>, ApiError> {
    let mut given = fields.all("poll[options]").peekable();
    if given.peek().is_none() && !fields.has("poll") {
        return Ok(None);
    }
    let options: Vec<&str> = given.filter(|option| !option.trim().is_empty()).collect();
    if options.is_empty() && !fields.has("poll") {
        return Ok(Some(None));
    }
    let secs = fields.one("poll[expires_in]")?.and_then(number);
    let secs = secs.ok_or(Refusal::BadPollTime)?;
    Ok(Some(Some(NewPoll {
        options: PollOptions::parse(options)?,
        multiple: fields.is_true("poll[multiple]")?,
        hide_totals: fields.is_true("poll[hide_totals]")?,
        time: PollTime::from_secs(secs)?,
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_poll_is_named_with_all_it_needs_or_not_at_all() {
        let found = |query: &str| named(&Fields::of_query(query).unwrap()).ok();
        assert!(matches!(found("status=x"), Some(None)));
        assert!(matches!(found("poll[options][]="), Some(Some(None))));
        let two = "poll[options][]=a&poll[options][]=b";
        for (rest, good) in [
            ("&poll[expires_in]=300", true),
            ("&poll[expires_in]=86400&poll[multiple]=true&poll[hide_totals]=1", true),
            ("", false),
            ("&poll[expires_in]=299", false),
            ("&poll[expires_in]=-300", false),
            ("&poll[expires_in]=99999999999999999999", false),
            ("&poll[expires_in]=300&poll[expires_in]=400", false),
            ("&poll[expires_in]=300&poll[options][]=c&poll[options][]=d&poll[options][]=e", false),
        ] {
            let query = format!("{two}{rest}");
            assert_eq!(found(&query).is_some(), good, "{query}");
        }
        for wrong in ["poll[expires_in]=300", "poll[expires_in]=300&poll[options][]=a", "poll=x"] {
            assert!(found(wrong).is_none(), "{wrong}");
        }
        let Some(Some(Some(poll))) = found(&format!("{two}&poll[expires_in]=300&poll[multiple]=1"))
        else {
            panic!("it is a poll")
        };
        assert!(poll.multiple && !poll.hide_totals && poll.options.as_slice().len() == 2);
    }
}
