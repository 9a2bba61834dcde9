//! Cost of the check of a token, measured inside the process: two routes have the same constant response, but only one
//! requires a token. The difference between their times is the cost of the check: reading the header, hashing the
//! token, looking it up in the cache, checking the scopes, and counting the user's requests.

use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::http::header::AUTHORIZATION;
use feed::accounts::{
    AccessScopes, AccountCommand, AccountDone, AccountState, AppName, AppRequest, PasswordHash,
    RedirectUri, Role,
};
use feed::{Command, Done, Handle, Reply};
use mastodon::{MastodonOptions, Rates};
use node::{Node, NodeOptions, Secret};
use tower::ServiceExt as _;

use crate::Plan;
use crate::report::{Report, Target};

/// Number of requests of one sample.
const REQUESTS: u32 = 50_000;
/// Number of users with tokens. Only some of their cached entries are in the processor's caches, as for a busy server.
const USERS: u32 = 1_000;
/// Path that returns `[]` to every client.
const PUBLIC: &str = "/api/v1/custom_emojis";
/// Path that returns `[]` to clients with a token.
const OF_USER: &str = "/api/v1/announcements";

pub(crate) fn measure(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let node = Node::open(&NodeOptions::new(data.path()))?;
    let tokens = runtime.block_on(tokens(&node))?;
    let mut options = MastodonOptions::new("https://bench.example");
    options.rates = Rates::unlimited();
    let (router, _) = mastodon::router(node.clone(), options);
    let (mut without, mut with, mut checks) = (vec![], vec![], vec![]);
    for run in 0..=plan.runs {
        let public = runtime.block_on(nanoseconds(&router, PUBLIC, &tokens))?;
        let of_user = runtime.block_on(nanoseconds(&router, OF_USER, &tokens))?;
        // The first round warms up.
        if run > 0 {
            without.push(public / 1e3);
            with.push(of_user / 1e3);
            checks.push((of_user - public) / 1e3);
        }
    }
    node.close();
    report.add("a request without a check, inside the process", "us", without, None);
    report.add("the same with the check of a token", "us", with, None);
    report.add("the check of a token", "us", checks, Some(Target::AtMost(1.0)));
    Ok(())
}

/// Time of a request, in nanoseconds. The request has a token on both paths.
async fn nanoseconds(router: &Router, path: &str, tokens: &[String]) -> anyhow::Result<f64> {
    let start = Instant::now();
    for token in tokens.iter().cycle().take(REQUESTS as usize) {
        let request = Request::get(path).header(AUTHORIZATION, format!("Bearer {token}"));
        let response = router.clone().oneshot(request.body(Body::empty())?).await?;
        anyhow::ensure!(response.status().is_success(), "{path}: {}", response.status());
    }
    Ok(start.elapsed().as_nanos() as f64 / f64::from(REQUESTS))
}

/// Tokens of new accounts.
async fn tokens(node: &Node) -> anyhow::Result<Vec<String>> {
    let scopes = AccessScopes::parse("read")?;
    let request = AppRequest {
        name: AppName::parse("bench")?,
        website: None,
        redirects: vec![RedirectUri::parse(RedirectUri::OUT_OF_BAND)?],
        scopes,
        secret: Secret::random()?.hash(),
    };
    let registered = submit(node, vec![AccountCommand::RegisterApp(Box::new(request))]).await?;
    let [AccountDone::AppRegistered(app)] = registered.as_slice() else { anyhow::bail!("no app") };
    let password: PasswordHash = mastodon::password::hash("a password of nobody")?;
    let sign_up = |user: u32| {
        let handle = Handle::parse(&format!("u{user}"))?;
        let (role, state, password) = (Role::User, AccountState::Active, password.clone());
        let (email, invite) = (None, None);
        Ok(AccountCommand::SignUp { handle, email, password, role, state, invite })
    };
    let sign_ups = (0..USERS).map(sign_up).collect::<anyhow::Result<Vec<_>>>()?;
    let (mut tokens, mut grants) = (Vec::new(), Vec::new());
    for done in submit(node, sign_ups).await? {
        let AccountDone::SignedUp(user) = done else { anyhow::bail!("no user") };
        let (token, password) = (Secret::random()?, password.clone());
        let hash = token.hash();
        grants.push(AccountCommand::GrantUser { app: *app, user, password, scopes, token: hash });
        tokens.push(token.as_str().to_owned());
    }
    submit(node, grants).await?;
    Ok(tokens)
}

async fn submit(node: &Node, commands: Vec<AccountCommand>) -> anyhow::Result<Vec<AccountDone>> {
    let requests = commands.into_iter().map(|command| Command::Account(command).into()).collect();
    let replies = node.submit_all(requests).await?.into_iter();
    let done = |reply: Reply| match reply.outcome? {
        Done::Account(done) => Ok(done),
        other => anyhow::bail!("the result is {other:?}"),
    };
    replies.map(done).collect()
}
