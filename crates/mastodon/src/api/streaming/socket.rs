//! Streams over a WebSocket: one connection for several channels.

use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use edge::{STREAM_PACE, Watched};
use feed::UserId;
use serde_json::json;
use tokio::time::Instant;

use super::channel::{Channel, Of};
use super::events::{Batch, Events};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::state::Shared;
use crate::tokens::Access;

/// Maximum length of a client's message, in bytes.
const MESSAGE_BYTES_MAX: usize = 4 << 10;
/// Maximum number of channels of a connection: those with events, and some hashtags of at most 200 bytes each.
const CHANNELS_MAX: usize = 12;
/// Size of a read from a connection, in bytes.
const BUFFER_BYTES: usize = 1 << 10;
/// Time within which a client must receive the frame that ends a stream.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Opens a WebSocket, with a first channel if the client names one. The client receives all events after the response.
///
/// # Errors
/// If there are too many streams.
pub(super) async fn open(
    state: &Shared,
    access: Access,
    user: UserId,
    upgrade: WebSocketUpgrade,
    first: Fields,
) -> Result<Response, ApiError> {
    let (state, open) = (Shared::clone(state), state.streams.begin(user)?);
    let upgrade = upgrade.max_message_size(MESSAGE_BYTES_MAX).max_frame_size(MESSAGE_BYTES_MAX);
    let mut upgrade = upgrade.read_buffer_size(BUFFER_BYTES).write_buffer_size(0);
    // A token that was sent as the protocol is repeated in the response, as browsers expect.
    let asked = upgrade.requested_protocols().next().cloned();
    if let Some(asked) = asked {
        upgrade.set_selected_protocol(asked);
    }
    let events = Events::new(&state, access, user, open);
    let mut listening = Listening { state, user, access, events, channels: Vec::new() };
    let error = match (first.one("stream")?, Of::parse(&first)?) {
        (Some(stream), of) => {
            let changed = listening.change("subscribe", (stream, of)).await;
            changed.ok_or_else(ApiError::internal)?
        }
        (None, _) => None,
    };
    Ok(upgrade.on_upgrade(move |socket| async move {
        let token = Watched::new(access.permission(&listening.state));
        let mut connection = Connection { socket, token, listening, receive_from: Instant::now() };
        // `None` means that the client is gone or the stream has ended.
        let _ = connection.run(error).await;
        connection.close().await;
    }))
}

struct Connection {
    socket: WebSocket,
    /// Token of the client. The connection ends when the token does.
    token: Watched,
    listening: Listening,
    /// Earliest time to receive the next message, because a message may need a read.
    receive_from: Instant,
}

/// Channels of a connection, and their events.
struct Listening {
    state: Shared,
    user: UserId,
    access: Access,
    events: Events,
    /// Channels without duplicates.
    channels: Vec<Channel>,
}

impl Connection {
    /// Serves the connection. `error` is the error of the first channel, if any.
    async fn run(&mut self, error: Option<String>) -> Option<()> {
        if let Some(error) = error {
            self.write(error).await?;
        }
        loop {
            let message = async {
                tokio::time::sleep_until(self.receive_from).await;
                self.socket.recv().await
            };
            // The branches that are cancelled lose nothing: they have only waited, or begun to check the token, which
            // each branch checks again.
            tokio::select! {
                () = self.token.ended() => return None,
                message = message => {
                    self.receive_from = Instant::now() + STREAM_PACE;
                    if !self.token.is_valid().await {
                        return None;
                    }
                    match message?.ok()? {
                        Message::Text(text) => self.receive(text.as_str()).await?,
                        Message::Close(_) => return None,
                        Message::Binary(_) | Message::Ping(_) | Message::Pong(_) => {}
                    }
                }
                due = self.listening.events.ready() => {
                    let batch = self.listening.events.read(due?).await?;
                    // The token is checked after the read, which may have waited.
                    if !self.token.is_valid().await {
                        return None;
                    }
                    self.send(&batch).await?;
                }
            }
        }
    }

    /// Handles a request to subscribe or to unsubscribe.
    async fn receive(&mut self, text: &str) -> Option<()> {
        let request = Fields::of_json(text.as_bytes()).unwrap_or_default();
        let part = |name: &str| request.one(name).ok().flatten().unwrap_or_default();
        let of = Of::parse(&request).unwrap_or_default();
        match self.listening.change(part("type"), (part("stream"), of)).await? {
            Some(error) => self.write(error).await,
            None => Some(()),
        }
    }

    async fn send(&mut self, batch: &Batch) -> Option<()> {
        let (events, is_wanted): (_, fn(&Channel) -> bool) = match batch {
            Batch::Own(events) => (events, Channel::is_of_user),
            Batch::Public(events) => (events, Channel::is_public),
            Batch::KeepAlive => {
                return self.socket.send(Message::Ping(Vec::new().into())).await.ok();
            }
        };
        for channel in self.listening.channels.clone().into_iter().filter(is_wanted) {
            for event in events.iter().filter(|event| event.is_for(&channel)) {
                let name = channel.name().to_owned();
                let stream: Vec<_> = [name].into_iter().chain(channel.of()).collect();
                let mut frame = json!({"stream": stream, "event": event.name});
                if let Some(fields) = frame.as_object_mut().filter(|_| !event.payload.is_empty()) {
                    fields.insert("payload".to_owned(), (*event.payload).into());
                }
                self.write(frame.to_string()).await?;
            }
        }
        Some(())
    }

    /// Ends the stream with a close frame, so that the client reconnects immediately.
    async fn close(&mut self) {
        let (code, reason) = match self.listening.state.options.is_closing() {
            true => (close_code::AWAY, "the server stops"),
            false => (close_code::POLICY, "the stream has ended"),
        };
        let frame = CloseFrame { code, reason: Utf8Bytes::from_static(reason) };
        let sent = self.socket.send(Message::Close(Some(frame)));
        // A client that does not read, or is gone, gets no close frame.
        drop(tokio::time::timeout(CLOSE_TIMEOUT, sent).await);
    }

    async fn write(&mut self, text: String) -> Option<()> {
        // For a client that does not read, the stream ends here when there is no memory for its data.
        let held = self.listening.events.hold(text)?;
        self.socket.send(Message::Text(held.try_into().ok()?)).await.ok()
    }
}

impl Listening {
    /// Adds or removes a channel. Returns the error to send, if any; `None` if a read failed.
    async fn change(&mut self, kind: &str, (name, of): (&str, Of<'_>)) -> Option<Option<String>> {
        let error = |text: &str, status: u16| json!({"error": text, "status": status}).to_string();
        let Some(channel) = Channel::parse(name, of) else {
            return Some(Some(error("Unknown stream type", 400)));
        };
        if !self.access.allows(channel.scope()) {
            return Some(Some(error(ApiError::out_of_scope().message(), 403)));
        }
        match kind {
            "subscribe" if self.channels.len() >= CHANNELS_MAX => {
                return Some(Some(error("Too many channels", 422)));
            }
            "subscribe" if !super::exists(&self.state, self.user, &channel).await? => {
                return Some(Some(error(ApiError::not_found().message(), 404)));
            }
            "subscribe" if !self.channels.iter().any(|other| other.is_same(&channel)) => {
                self.channels.push(channel);
            }
            "unsubscribe" => self.channels.retain(|other| !other.is_same(&channel)),
            _ => {}
        }
        self.events.listen(&self.channels).await.map(|()| None)
    }
}
