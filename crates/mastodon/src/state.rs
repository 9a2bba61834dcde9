//! State that all handlers share, and the ways to the node.

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

/// State that all handlers share.
pub(crate) struct Server {
    pub(crate) node: Node,
    /// Entities of the node.
    pub(crate) renderer: Renderer,
    pub(crate) options: MastodonOptions,
    pub(crate) passwords: Passwords,
    pub(crate) limiter: Limiter,
    pub(crate) tokens: Tokens,
    /// Bodies that are being read.
    pub(crate) bodies: Bodies,
    /// Forms with files that are being read.
    pub(crate) uploads: Arc<Uploads>,
    /// Live streams.
    pub(crate) streams: Streams,
    /// Responses that are being sent.
    pub(crate) answers: Answers,
    pub(crate) trends: Trends,
}

/// What handlers get.
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

    /// Reads from the node where blocking is allowed.
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

    /// Submits a command of a user, under the key of the request if it has one.
    pub(crate) async fn change(
        &self,
        me: UserId,
        once: Once,
        command: Command,
    ) -> Result<Done, ApiError> {
        self.change_once(once.of(me, &command), command).await
    }

    /// As [`Server::change`], under a key that is digested already.
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

    /// Reads entities from many rows, as [`Server::entities`], so that short reads do not wait for it.
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

    /// Reads entities for the response to a change, which is never refused: the change cannot be undone.
    pub(crate) async fn entities_done<T: Send + 'static>(
        &self,
        reader: UserId,
        read: impl FnOnce(&mut Entities<'_>) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let renderer = self.renderer.clone();
        let read = move || read(&mut Entities::new(&renderer, Some(reader)));
        Ok(self.options.reads.after_change().run(read).await?)
    }

    /// Counts something that an address does, and refuses what is above its rate.
    pub(crate) fn limit_address(&self, what: What, address: IpAddr) -> Result<(), ApiError> {
        self.limit(what, self.limiter.address(address))
    }

    /// Counts something that a subject of the limiter does, and refuses what is above its rate.
    pub(crate) fn limit(&self, what: What, subject: impl Into<Subject>) -> Result<(), ApiError> {
        let (subject, now) = (subject.into(), Instant::now());
        let taken = self.limiter.take(what, subject, now);
        rate_headers::record(self.limiter.usage(what, subject, now));
        taken.map_err(ApiError::above_rate)
    }

    /// Whether users reach the server by https.
    pub(crate) fn is_secure(&self) -> bool {
        self.options.base.starts_with("https://")
    }
}

/// The address of the client of a request.
pub(crate) fn client_address(extensions: &Extensions) -> IpAddr {
    address_of(extensions.get().copied())
}

/// The address of a client; without one, this machine's.
pub(crate) fn address_of(client: Option<ClientAddress>) -> IpAddr {
    client.map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |address| address.0)
}
