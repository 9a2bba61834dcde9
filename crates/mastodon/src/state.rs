//! Shared state of all handlers, and access to the node.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Instant;

use axum::http::Extensions;
use edge::{Abandoned, ClientAddress};
use feed::accounts::{AccountCommand, AccountDone};
use feed::{Command, Done, Idempotency, Reply, UserId};
use node::{Node, Request};

use crate::MastodonOptions;
use crate::answers::Answers;
use crate::api::trends::Trends;
use crate::bodies::Bodies;
use crate::entities::{Entities, Renderer};
use crate::error::ApiError;
use crate::input::Once;
use crate::limiter::{Limiter, Subject, What};
use crate::password::Passwords;
use crate::rate_headers;
use crate::streams::Streams;
use crate::tokens::Tokens;
use crate::uploads::Uploads;

/// Shared state of all handlers.
pub(crate) struct Server {
    pub(crate) node: Node,
    /// Renderer of the node's entities.
    pub(crate) renderer: Renderer,
    pub(crate) options: MastodonOptions,
    pub(crate) passwords: Passwords,
    pub(crate) limiter: Limiter,
    pub(crate) tokens: Tokens,
    /// Bodies being read.
    pub(crate) bodies: Bodies,
    /// Forms with files being read.
    pub(crate) uploads: Arc<Uploads>,
    /// Live streams.
    pub(crate) streams: Streams,
    /// Unsent responses.
    pub(crate) answers: Answers,
    pub(crate) trends: Trends,
}

/// State as handlers get it.
pub(crate) type Shared = Arc<Server>;

impl Server {
    pub(crate) fn new(node: Node, options: MastodonOptions) -> Shared {
        options.metrics.of_node(&node);
        Arc::new(Self {
            renderer: Renderer::new(node.clone(), &options.base, options.keeps_entities),
            node,
            passwords: Passwords::new(),
            limiter: Limiter::new(options.rates),
            tokens: Tokens::new(),
            bodies: Bodies::new(),
            uploads: Uploads::new(),
            answers: Answers::new(),
            trends: Trends::default(),
            streams: Streams::new(options.connections_max),
            options,
        })
    }

    /// Runs a read that may block.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Node) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let node = self.node.clone();
        Ok(self.options.reads.run(move || read(&node)).await?)
    }

    /// Submits a command about accounts.
    pub(crate) async fn submit(&self, command: AccountCommand) -> Result<AccountDone, ApiError> {
        let request = Request::from(Command::Account(command));
        let Reply { outcome, .. } = self.node.submit(request).await?;
        match outcome? {
            Done::Account(done) => Ok(done),
            other => {
                tracing::error!(?other, "a command about accounts had another result");
                Err(ApiError::internal())
            }
        }
    }

    /// Submits a command of a user, with the idempotency key of the request, if any.
    pub(crate) async fn change(
        &self,
        me: UserId,
        once: Once,
        command: Command,
    ) -> Result<Done, ApiError> {
        self.change_once(once.of(me, &command), command).await
    }

    /// Submits a command of a user, with a digested idempotency key.
    pub(crate) async fn change_once(
        &self,
        idempotency: Option<Idempotency>,
        command: Command,
    ) -> Result<Done, ApiError> {
        let Reply { outcome, .. } = self.node.submit(Request { idempotency, command }).await?;
        Ok(outcome?)
    }

    /// Reads entities for a reader.
    pub(crate) async fn entities<T: Send + 'static>(
        &self,
        reader: Option<UserId>,
        read: impl FnOnce(&Node, &mut Entities<'_>) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let from = self.renderer.clone();
        let read = move || read(&from.node, &mut Entities::new(&from, reader));
        Ok(self.options.reads.run(read).await?)
    }

    /// Reads entities from many rows, in another lane than [`Server::entities`], so that short reads do not wait for
    /// it.
    pub(crate) async fn entities_long<T: Send + 'static>(
        &self,
        reader: Option<UserId>,
        read: impl FnOnce(&Node, &mut Entities<'_>) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let from = self.renderer.clone();
        let read = move |abandoned: &Abandoned| {
            read(&from.node, &mut Entities::of_many(&from, reader, abandoned))
        };
        Ok(self.options.reads.run_listing(read).await?)
    }

    /// Reads entities for the response to a change. Never refused, because the change cannot be undone.
    pub(crate) async fn entities_done<T: Send + 'static>(
        &self,
        reader: UserId,
        read: impl FnOnce(&mut Entities<'_>) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let renderer = self.renderer.clone();
        let read = move || read(&mut Entities::new(&renderer, Some(reader)));
        Ok(self.options.reads.after_change().run(read).await?)
    }

    /// Counts an action of an address; refuses it above the rate.
    pub(crate) fn limit_address(&self, what: What, address: IpAddr) -> Result<(), ApiError> {
        self.limit(what, self.limiter.address(address))
    }

    /// Counts an action of a subject of the limiter; refuses it above the rate.
    pub(crate) fn limit(&self, what: What, subject: impl Into<Subject>) -> Result<(), ApiError> {
        let (subject, now) = (subject.into(), Instant::now());
        let taken = self.limiter.take(what, subject, now);
        rate_headers::record(self.limiter.usage(what, subject, now));
        taken.map_err(ApiError::above_rate)
    }

    /// Whether users reach the server over https.
    pub(crate) fn is_secure(&self) -> bool {
        self.options.base.starts_with("https://")
    }
}

/// Address of the client of a request.
pub(crate) fn client_address(extensions: &Extensions) -> IpAddr {
    address_of(extensions.get().copied())
}

/// Address of a client; the loopback if unknown.
pub(crate) fn address_of(client: Option<ClientAddress>) -> IpAddr {
    client.map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |address| address.0)
}
