//! Socket on which a running server accepts requests of `roost account`, `roost key` and `roost webhook`: one line of
//! JSON each way.
//!
//! The socket is a file in the data directory, which only the server's user can enter. Connections are served one after
//! the other, each for a bounded time.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

use anyhow::Context as _;
use node::{Node, SubmitError};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};

use super::PATIENCE;
use super::action::{Action, Answer};
use crate::key::ServerKeys;
use crate::webhook::ServerWebhooks;

/// Name of the socket in the data directory.
const NAME: &str = "account.sock";
/// Maximum number of bytes of a request.
const REQUEST_BYTES_MAX: u64 = 16 << 10;
/// Maximum number of bytes of a response.
const RESPONSE_BYTES_MAX: u64 = 16 << 20;

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Response {
    Done(Answer),
    Error(String),
    /// Failure of a change that may still be made.
    Unconfirmed(String),
}

/// Error of a request whose change may have been made.
#[derive(Debug)]
pub(super) struct Unconfirmed;

impl fmt::Display for Unconfirmed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the change is not confirmed")
    }
}

/// Whether a change that failed with this error may still have been made.
pub(super) fn may_be_made(error: &anyhow::Error) -> bool {
    let is_unconfirmed =
        |error: &SubmitError| matches!(error, SubmitError::Unconfirmed | SubmitError::Stopped);
    error.is::<Unconfirmed>() || error.downcast_ref().is_some_and(is_unconfirmed)
}

/// Parts of a running server that commands read and change.
pub(crate) struct Parts {
    pub(crate) node: Node,
    /// `None` in open mode.
    pub(crate) keys: Option<Arc<ServerKeys>>,
    pub(crate) webhooks: Arc<ServerWebhooks>,
}

/// Socket of a running server; removed on drop.
pub(crate) struct Socket {
    path: PathBuf,
    listener: UnixListener,
}

impl Socket {
    /// Creates the socket. The caller must hold the lock of the data directory.
    ///
    /// # Errors
    /// If it cannot be created, for example because the path is too long.
    pub(crate) fn bind(data: &Path) -> io::Result<Self> {
        let path = data.join(NAME);
        // A killed process may have left its socket.
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&path)?;
        Ok(Self { path, listener })
    }

    /// Executes requests until the server stops.
    pub(crate) async fn serve(self, parts: Parts) {
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let served = tokio::time::timeout(PATIENCE, answer(stream, &parts)).await;
                    if let Ok(Err(error)) = served {
                        tracing::debug!(%error, "a request for accounts failed");
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot take requests for accounts; trying again");
                    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
                }
            }
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Parts {
    async fn run(&self, action: Action) -> anyhow::Result<Answer> {
        match action {
            Action::ReloadKeys => {
                let keys = self.keys.clone();
                let look = move || keys.iter().try_for_each(|keys| keys.look());
                tokio::task::spawn_blocking(look).await??;
            }
            Action::ReloadWebhooks => self.webhooks.load().await?,
            Action::ListWebhooks => {
                return Ok(Answer { lines: self.webhooks.list(), ..Answer::default() });
            }
            Action::ActOfWebhook { name, action } => self.webhooks.request(&name, action).await?,
            action => return action.run(&self.node).await,
        }
        Ok(Answer::default())
    }
}

async fn answer(mut stream: UnixStream, parts: &Parts) -> anyhow::Result<()> {
    let mut line = String::new();
    BufReader::new(&mut stream).take(REQUEST_BYTES_MAX).read_line(&mut line).await?;
    let done = match serde_json::from_str::<Action>(&line) {
        Ok(action) => parts.run(action).await,
        Err(error) => Err(error.into()),
    };
    let response = match done {
        Ok(answer) => Response::Done(answer),
        Err(error) if may_be_made(&error) => Response::Unconfirmed(crate::exit::message(&error)),
        Err(error) => Response::Error(crate::exit::message(&error)),
    };
    let mut bytes = serde_json::to_vec(&response)?;
    bytes.push(b'\n');
    stream.write_all(&bytes).await?;
    Ok(stream.shutdown().await?)
}

/// Whether a server accepts requests for this directory.
pub(super) async fn is_served(data: &Path) -> bool {
    UnixStream::connect(data.join(NAME)).await.is_ok()
}

/// Sends a request to the server of a directory.
///
/// # Errors
/// If there is no answer. The chain contains [`Unconfirmed`] if the request may still have been executed.
pub(super) async fn ask(data: &Path, action: &Action) -> anyhow::Result<Answer> {
    let connected = UnixStream::connect(data.join(NAME)).await;
    let mut stream = connected.context("the server does not answer")?;
    let asked = async move {
        let mut bytes = serde_json::to_vec(action)?;
        bytes.push(b'\n');
        stream.write_all(&bytes).await?;
        let mut line = Vec::new();
        stream.take(RESPONSE_BYTES_MAX).read_to_end(&mut line).await?;
        anyhow::Ok(serde_json::from_slice(&line)?)
    };
    let answered = tokio::time::timeout(PATIENCE, asked).await;
    // From here on the server may have read the request.
    let answered = answered.map_err(anyhow::Error::from).flatten();
    match answered.context("the server does not answer").context(Unconfirmed)? {
        Response::Done(answer) => Ok(answer),
        Response::Error(error) => Err(anyhow::anyhow!(error)),
        Response::Unconfirmed(error) => Err(anyhow::anyhow!(error).context(Unconfirmed)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_change_whose_answer_is_missing_may_have_been_made() {
        let data = tempfile::tempdir().unwrap();
        let ask = async || {
            let error = ask(data.path(), &Action::List { after: None }).await.unwrap_err();
            may_be_made(&error)
        };
        assert!(!ask().await, "there is no server");
        let listener = UnixListener::bind(data.path().join(NAME)).unwrap();
        let refused = r#"{"error":"the handle is taken"}"#;
        let late = r#"{"unconfirmed":"the log has not confirmed it"}"#;
        for (response, expect) in [("", true), (refused, false), (late, true), ("{\"do", true)] {
            let served = async {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut line = String::new();
                BufReader::new(&mut stream).read_line(&mut line).await.unwrap();
                stream.write_all(response.as_bytes()).await.unwrap();
            };
            assert_eq!(tokio::join!(ask(), served).0, expect, "{response}");
        }
        for (error, expect) in [
            (SubmitError::Stopped, true),
            (SubmitError::Unconfirmed, true),
            (SubmitError::Busy, false),
            (SubmitError::NoLog, false),
        ] {
            assert_eq!(may_be_made(&error.into()), expect, "{error:?}");
        }
    }
}
