//! `roost account test-tokens`: accounts with access tokens for a load test.
//!
//! All accounts are new: existing accounts get no tokens. They share one random password, which is hashed once and then
//! discarded.

use std::path::Path;

use anyhow::{Context as _, bail};
use feed::accounts::{
    AccessScopes, AccountCommand, AccountDone, AppId, AppName, AppRequest, PasswordHash,
    RedirectUri, Role,
};
use feed::{Command, Done, Reply};
use node::Secret;
use node::{Node, Request};

use super::action::{Action, Answer, creation, secret};
use super::{Server, hex, password};

/// Maximum number of accounts per command. A million takes about two minutes.
pub(super) const ACCOUNTS_MAX: u32 = 1_000_000;
/// Number of accounts per request. The request stays short enough even if all handles have the maximum length.
const AT_ONCE: u32 = 64;
/// Scopes of the tokens.
const SCOPES: &str = "read write follow";

/// Creates an account for each of the `count` users that a simulation with this seed has. Returns their tokens in the
/// order of the users.
///
/// # Errors
/// If one of the users has an account already, or the directory cannot be used.
pub(crate) async fn test_tokens(data: &Path, seed: u64, count: u32) -> anyhow::Result<Vec<String>> {
    let mut server = Server::find(data.to_owned()).await?;
    let made = make(&mut server, seed, count).await;
    server.close().await?;
    made
}

async fn make(server: &mut Server, seed: u64, count: u32) -> anyhow::Result<Vec<String>> {
    let (password, _) = password(false)?;
    let app = server.ask(&Action::RegisterTestApp).await?.app.context("no app was registered")?;
    let mut tokens = Vec::with_capacity(count as usize);
    for first in (0..count).step_by(AT_ONCE as usize) {
        let mut users = Vec::new();
        for number in first..count.min(first + AT_ONCE) {
            let token = Secret::random().context("no random bytes")?;
            users.push((sim::texts::handle(seed, number), hex(token.hash().0)));
            tokens.push(token.as_str().to_owned());
        }
        let password = password.clone();
        server.ask(&Action::TestUsers { app, password, users }).await?;
    }
    Ok(tokens)
}

/// Registers the app that gets the tokens.
pub(super) async fn register_app(node: &Node) -> anyhow::Result<Answer> {
    let request = AppRequest {
        name: AppName::parse("Load test")?,
        website: None,
        redirects: vec![RedirectUri::parse(RedirectUri::OUT_OF_BAND)?],
        scopes: AccessScopes::parse(SCOPES)?,
        secret: Secret::random().context("no random bytes")?.hash(),
    };
    let command = Command::Account(AccountCommand::RegisterApp(Box::new(request)));
    match node.submit(Request::from(command)).await?.outcome? {
        Done::Account(AccountDone::AppRegistered(AppId(app))) => {
            Ok(Answer { app: Some(app), ..Answer::default() })
        }
        other => bail!("registering an app had the result {other:?}"),
    }
}

/// Creates an account for each handle, and a token whose hash is paired with the handle.
pub(super) async fn open_accounts(
    node: &Node,
    app: u64,
    password: &str,
    users: &[(String, String)],
) -> anyhow::Result<()> {
    let (reader, of_all) = (node.clone(), (password.to_owned(), users.to_vec()));
    let commands = tokio::task::spawn_blocking(move || {
        let (password, users) = of_all;
        let command = |(handle, _): &(String, String)| {
            let role = Role::User.name().to_owned();
            creation(&reader, &(handle.clone(), None, role, password.clone()))
        };
        users.iter().map(command).collect::<anyhow::Result<Vec<_>>>()
    });
    let made = submit(node, commands.await??).await?;
    let (password, scopes) = (PasswordHash::parse(password)?, AccessScopes::parse(SCOPES)?);
    let mut grants = Vec::new();
    for (Reply { outcome, .. }, (handle, token)) in made.into_iter().zip(users) {
        let user = match outcome.with_context(|| format!("cannot make an account for {handle}"))? {
            Done::Account(AccountDone::SignedUp(user) | AccountDone::Opened(user)) => user,
            other => bail!("an account had the result {other:?}"),
        };
        let (app, password, token) = (AppId(app), password.clone(), secret(token)?);
        let grant = AccountCommand::GrantUser { app, user, password, scopes, token };
        grants.push(Command::Account(grant));
    }
    for Reply { outcome, .. } in submit(node, grants).await? {
        outcome.context("cannot make a token")?;
    }
    Ok(())
}

async fn submit(node: &Node, commands: Vec<Command>) -> anyhow::Result<Vec<Reply>> {
    Ok(node.submit_all(commands.into_iter().map(Request::from).collect()).await?)
}
