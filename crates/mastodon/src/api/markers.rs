//! Markers: the last read positions in the home timeline and in the notifications.

use axum::Json;
use axum::extract::State;
use feed::{Command, MarkedTimeline, Marker, MarkerUpdate, Markers, MarkersUpdate, UserRef};
use serde_json::{Map, Value, json};

use crate::access::Needs;
use crate::endpoints::Endpoints;
use crate::entities::time::time;
use crate::error::ApiError;
use crate::fields::{Fields, Params};
use crate::input::{self, Me, Once};
use crate::state::Shared;

/// Adds the routes of markers.
pub(crate) fn routes(table: &mut Endpoints) {
    table.get("/api/v1/markers", Needs::MY_STATUSES, show);
    table.post("/api/v1/markers", Needs::WRITE_STATUSES, set);
}

/// Responds with the requested markers.
pub(crate) async fn show(
    State(state): State<Shared>,
    Me(me): Me,
    Params(fields): Params,
) -> Result<Json<Value>, ApiError> {
    let markers = state.read(move |node| node.facts().markers(me)).await?;
    let asked =
        |timeline: MarkedTimeline| fields.all("timeline").any(|name| name == timeline.name());
    Ok(entities(markers, asked))
}

/// Sets markers and responds with them. If another app has changed one of them since it was read, none is set.
pub(crate) async fn set(
    State(state): State<Shared>,
    Me(me): Me,
    once: Once,
    Params(fields): Params,
) -> Result<Json<Value>, ApiError> {
    let (home, notifications) = (
        last_read(&fields, MarkedTimeline::Home)?,
        last_read(&fields, MarkedTimeline::Notifications)?,
    );
    let asked = move |timeline| match timeline {
        MarkedTimeline::Home => home.is_some(),
        MarkedTimeline::Notifications => notifications.is_some(),
    };
    if home.is_none() && notifications.is_none() {
        return Ok(Json(json!({})));
    }
    let command = |stored: Markers| {
        let update = |last_read: Option<u64>, stored: Option<Marker>| {
            let replaces = stored.map(|marker| marker.version);
            last_read.map(|last_read| MarkerUpdate { last_read, replaces })
        };
        Command::SetMarkers(Box::new(MarkersUpdate {
            user: UserRef::Id(me),
            home: update(home, stored.home),
            notifications: update(notifications, stored.notifications),
        }))
    };
    // A retry is recognized by its content without the versions, because the first request has changed the versions.
    let idempotency = once.of(me, &command(Markers::default()));
    let stored = state.read(move |node| node.facts().markers(me)).await?;
    state.change_once(idempotency, command(stored)).await?;
    let markers = state.entities_done(me, move |entities| entities.facts().markers(me)).await?;
    Ok(entities(markers, asked))
}

fn last_read(fields: &Fields, timeline: MarkedTimeline) -> Result<Option<u64>, ApiError> {
    let name = format!("{}[last_read_id]", timeline.name());
    let id = fields.one(&name)?;
    let wrong = || ApiError::invalid(format!("{name} is not an id"));
    id.map(|id| input::number(id).filter(|id| *id <= i64::MAX as u64).ok_or_else(wrong)).transpose()
}

/// Entities `Marker` by timeline.
fn entities(markers: Markers, asked: impl Fn(MarkedTimeline) -> bool) -> Json<Value> {
    let mut out = Map::new();
    for timeline in MarkedTimeline::ALL.into_iter().filter(|timeline| asked(*timeline)) {
        if let Some(Marker { last_read, version, updated }) = markers.of(timeline) {
            let (id, updated) = (last_read.to_string(), time(updated.unix_ms()));
            let entity = json!({"last_read_id": id, "version": version, "updated_at": updated});
            out.insert(timeline.name().to_owned(), entity);
        }
    }
    Json(Value::Object(out))
}
