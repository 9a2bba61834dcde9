//! Scheduled statuses.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use feed::limits::SCHEDULED_MAX;
use feed::schedule::ScheduleCommand;
use feed::{Command, ScheduledId, Shown, UserId, UserRef, of_all, scan};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use crate::access::Needs;
use crate::answers;
use crate::endpoints::Endpoints;
use crate::entities::Entities;
use crate::error::ApiError;
use crate::fields::{Fields, Params};
use crate::input::{InPath, Me, Once};
use crate::paging;
use crate::state::{Server, Shared};

/// Adds the routes of scheduled statuses.
pub(crate) fn routes(table: &mut Endpoints) {
    table.get("/api/v1/scheduled_statuses", Needs::MY_STATUSES, list);
    table.get("/api/v1/scheduled_statuses/{id}", Needs::MY_STATUSES, show);
    table.put("/api/v1/scheduled_statuses/{id}", Needs::WRITE_STATUSES, change);
    table.delete("/api/v1/scheduled_statuses/{id}", Needs::WRITE_STATUSES, cancel);
}

impl Server {
    /// Responds to a change of a scheduled status.
    pub(crate) async fn changed_scheduled(
        &self,
        me: UserId,
        id: ScheduledId,
    ) -> Result<Response, ApiError> {
        let read = move |entities: &mut Entities<'_>| entities.scheduled(me, id);
        answers::entity(self.entities_done(me, read).await?)
    }
}

/// Time of publication in milliseconds since 1970, if the request has it.
pub(crate) fn due_ms(fields: &Fields) -> Result<Option<u64>, ApiError> {
    let Some(text) = fields.one("scheduled_at")? else { return Ok(None) };
    let time = text.parse::<Timestamp>().ok().or_else(|| {
        // Some apps send no time zone.
        let civil = text.parse::<DateTime>().ok()?;
        Some(civil.to_zoned(TimeZone::UTC).ok()?.timestamp())
    });
    let ms = time.and_then(|time| u64::try_from(time.as_millisecond()).ok());
    // The message is that of Mastodon.
    let wrong = || ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "Record invalid");
    ms.map(Some).ok_or_else(wrong)
}

pub(crate) async fn list(
    State(state): State<Shared>,
    Me(me): Me,
    uri: Uri,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let asked = paging::asked(&fields, paging::STATUSES)?;
    let read = move |_: &_, entities: &mut Entities<'_>| {
        let all = of_all(entities.facts().scheduled_of(me, ScheduledId(0), SCHEDULED_MAX));
        paging::list(&asked, scan(&asked, all, Shown::Yes), |id| entities.scheduled(me, id))
    };
    let listed = state.entities(Some(me), read).await?;
    state.listed(uri.path(), &fields, &asked, listed)
}

pub(crate) async fn show(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(id): InPath<ScheduledId>,
) -> Result<Response, ApiError> {
    let read = move |_: &_, entities: &mut Entities<'_>| entities.scheduled(me, id);
    answers::entity(state.entities(Some(me), read).await?)
}

pub(crate) async fn change(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(id): InPath<ScheduledId>,
    once: Once,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let user = UserRef::Id(me);
    if let Some(due_ms) = due_ms(&fields)? {
        let command = ScheduleCommand::Move { user, id, due_ms };
        state.change(me, once, Command::Schedule(command)).await?;
    }
    state.changed_scheduled(me, id).await
}

pub(crate) async fn cancel(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(id): InPath<ScheduledId>,
    once: Once,
) -> Result<Json<Value>, ApiError> {
    let command = ScheduleCommand::Cancel { user: UserRef::Id(me), id };
    state.change(me, once, Command::Schedule(command)).await?;
    Ok(Json(json!({})))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_zone_or_is_one_of_utc() {
        let ms = |text: &str| {
            let query = form_urlencoded::Serializer::new(String::new())
                .append_pair("scheduled_at", text)
                .finish();
            due_ms(&Fields::of_query(&query).unwrap()).ok().flatten()
        };
        for (text, expect) in [
            ("2026-11-25T19:00:00+00:00", Some(1_795_633_200_000)),
            ("2026-11-25T20:00:00.5+01:00", Some(1_795_633_200_500)),
            ("2026-11-25T19:00:00Z", Some(1_795_633_200_000)),
            ("2026-11-25T19:00:00", Some(1_795_633_200_000)),
            ("2026-11-25 19:00", Some(1_795_633_200_000)),
            ("banana", None),
            ("1969-11-25T19:00:00Z", None),
            ("2026-13-25T19:00:00Z", None),
            ("1795633200", None),
        ] {
            assert_eq!(ms(text), expect, "{text}");
        }
    }
}
