//! Fuzz target of requests of apps and browsers, up to the last byte of the response.
//!
//! There are two users, each with a token and a session. Their secrets are `ada-token`, `ada-session` and so on. In an
//! input, `$0` and `$1` are the ids of the newest posts in the users' homes, and `$2` is the id of the app. After each
//! input, sessions and tokens that it revoked are granted again.

use std::sync::LazyLock;

use axum::Router;
use edge::ClientAddress;
use feed::accounts::{
    AccessScopes, AccountCommand, AccountDone, AccountState, AppId, AppName, AppRequest,
    PasswordHash, RedirectUri, Role,
};
use feed::{Command, Done, Handle, Page, UserId};
use mastodon::{MastodonOptions, Rates, Registrations};
use node::{Node, Request, Secret};
use tower::ServiceExt as _;

use crate::http::{parse, read};
use crate::server;

const USERS: [(UserId, &str); 2] = [(UserId(0), "ada"), (UserId(1), "bob")];
const SCOPES: &str = "read write follow push profile";

struct Server {
    node: Node,
    router: Router,
    app: AppId,
}

static SERVER: LazyLock<Server> = LazyLock::new(|| {
    let node = server::node();
    for (_, name) in USERS {
        let (handle, password) = (Handle::parse(name).unwrap(), password());
        let (role, state) = (Role::User, AccountState::Active);
        let (email, invite) = (None, None);
        submit(&node, AccountCommand::SignUp { handle, email, password, role, state, invite });
    }
    let app = submit(
        &node,
        AccountCommand::RegisterApp(Box::new(AppRequest {
            name: AppName::parse("app").unwrap(),
            website: None,
            redirects: vec![RedirectUri::parse(RedirectUri::OUT_OF_BAND).unwrap()],
            scopes: AccessScopes::parse(SCOPES).unwrap(),
            // Nobody knows the secret, so the app itself cannot revoke anything.
            secret: Secret::random().unwrap().hash(),
        })),
    );
    let AccountDone::AppRegistered(app) = app else { unreachable!("{app:?}") };
    let mut options = MastodonOptions::new("http://localhost");
    options.registrations = Registrations::Open;
    options.password_grant = true;
    options.anonymous_reads = true;
    // Limit requests with a password as usual, because each takes as long as thousands of others.
    let usual = Rates::default();
    options.rates = Rates {
        failures_of_address: usual.failures_of_address,
        failures_of_account: usual.failures_of_account,
        log_ins: usual.log_ins,
        sign_ups: usual.sign_ups,
        ..Rates::unlimited()
    };
    let (router, _) = mastodon::router(node.clone(), options);
    Server { node, router, app }
});

/// Input: `METHOD target`, header lines, an empty line, and the body, as for the target `http`.
pub fn mastodon(data: &[u8]) {
    let server = &*SERVER;
    grant(server);
    let ids = [newest(server, USERS[0].0), newest(server, USERS[1].0), server.app.0];
    let Some(mut request) = parse(&with_ids(data, ids)) else { return };
    request.extensions_mut().insert(ClientAddress([192, 0, 2, 1].into()));
    server::RUNTIME.block_on(async {
        let response = server.router.clone().oneshot(request).await.unwrap();
        read(response).await;
    });
}

/// Grants a session and a token to each user who has none.
fn grant(Server { node, app, .. }: &Server) {
    for (user, name) in USERS {
        let Some(account) = node.facts().account(user) else { continue };
        let (password, scopes) = (account.password, AccessScopes::parse(SCOPES).unwrap());
        let session = Secret::hash_of(&format!("{name}-session"));
        if node.facts().grant_of(&session).is_none() {
            let password = password.clone();
            submit(node, AccountCommand::LogIn { user, password, session });
        }
        let token = Secret::hash_of(&format!("{name}-token"));
        if node.facts().grant_of(&token).is_none() {
            submit(node, AccountCommand::GrantUser { app: *app, user, password, scopes, token });
        }
    }
}

fn newest(server: &Server, user: UserId) -> u64 {
    let page = server.node.home_ids(user, &Page::newest(1));
    page.items.first().map_or(0, |post| post.0)
}

fn with_ids(data: &[u8], ids: [u64; 3]) -> Vec<u8> {
    let mut whole = Vec::with_capacity(data.len());
    let mut bytes = data.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let id = bytes.peek().and_then(|next| ids.get(usize::from(next.wrapping_sub(b'0'))));
        match id.filter(|_| byte == b'$') {
            Some(id) => {
                whole.extend(id.to_string().into_bytes());
                bytes.next();
            }
            None => whole.push(byte),
        }
    }
    whole
}

fn submit(node: &Node, command: AccountCommand) -> AccountDone {
    let request = Request::from(Command::Account(command));
    let reply = server::RUNTIME.block_on(node.submit(request)).unwrap();
    match reply.outcome.unwrap() {
        Done::Account(done) => done,
        other => unreachable!("{other:?}"),
    }
}

/// Hash of a password that nobody knows.
fn password() -> PasswordHash {
    let text = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    PasswordHash::parse(text).unwrap()
}
