//! Sign-in: obtains a token for every user, from a file of tokens or passwords or by signing the user up, and looks up
//! the account of each token.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;
use tokio::task::JoinSet;

use super::Mastodon;
use super::accounts::{Account, Accounts};
use super::check::{Caller, parse};
use super::fields::{App, OwnAccount, Token};
use crate::api::LoadError;
use crate::api::error::shown;
use crate::api::steps::{all, with_progress};
use crate::options::Credential;
use crate::texts;

/// Number of concurrent sign-ins. A server hashes a password for each of them, and only a few hashes may wait.
const CONNECTIONS: u32 = 4;
/// Scopes of the app and of its tokens.
const SCOPES: &str = "read write follow";
/// Redirect URI of an app without a page: the server displays the code.
const OUT_OF_BAND: &str = "urn:ietf:wg:oauth:2.0:oob";

/// State shared by the connections.
struct SignIn {
    mastodon: Arc<Mastodon>,
    users: u32,
    /// App that requests tokens, and its own token; `None` if all tokens are given.
    app: Option<(App, Token)>,
    next: AtomicU32,
    done: AtomicU64,
    found: Mutex<Vec<(u32, Account)>>,
}

/// Signs in this many users.
///
/// # Errors
/// If a user cannot sign in, already follows somebody although follows will be loaded, or two users have the same
/// account.
pub(super) async fn sign_in(mastodon: Arc<Mastodon>, users: u32) -> Result<(), LoadError> {
    let credentials = mastodon.options.credentials.clone();
    if let Some(given) = &credentials
        && given.len() < users as usize
    {
        return Err(LoadError::TooFewTokens { users, tokens: given.len() });
    }
    let is_token = |credential: &Credential| matches!(credential, Credential::Token(_));
    let needs_app = credentials.is_none_or(|given| !given.iter().all(is_token));
    let app = if needs_app { Some(register_app(&mastodon).await?) } else { None };
    let found = Mutex::new(Vec::with_capacity(users as usize));
    let (next, done) = (AtomicU32::new(0), AtomicU64::new(0));
    let all_users = Arc::new(SignIn { mastodon, users, app, next, done, found });
    let mut parts = JoinSet::new();
    for _ in 0..CONNECTIONS.min(users) {
        let part = Arc::clone(&all_users);
        parts.spawn(async move { part.work().await });
    }
    with_progress("accounts", users.into(), &all_users.done, all(parts)).await?;
    all_users.finish()
}

/// Registers an app; returns it with its own token.
async fn register_app(mastodon: &Mastodon) -> Result<(App, Token), LoadError> {
    let mut caller = Caller::new(mastodon);
    let body = json!({
        "client_name": "roost simulate", "redirect_uris": OUT_OF_BAND, "scopes": SCOPES,
    });
    mastodon.requests.post("/api/v1/apps", body.to_string().as_bytes(), &mut caller.request);
    let app: App = caller.ask("register an app").await?;
    let body = json!({
        "grant_type": "client_credentials", "client_id": app.client_id,
        "client_secret": app.client_secret, "redirect_uri": OUT_OF_BAND, "scope": SCOPES,
    });
    mastodon.requests.post("/oauth/token", body.to_string().as_bytes(), &mut caller.request);
    let token = caller.ask("get a token for the app").await?;
    Ok((app, token))
}

impl SignIn {
    /// Signs in one user after the other.
    async fn work(&self) -> Result<(), LoadError> {
        let mut caller = Caller::new(&self.mastodon);
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.users {
                return Ok(());
            }
            let account = self.one(number, &mut caller).await?;
            self.found.lock().unwrap_or_else(PoisonError::into_inner).push((number, account));
            self.done.fetch_add(1, Ordering::Relaxed);
        }
    }

    async fn one(&self, number: u32, caller: &mut Caller) -> Result<Account, LoadError> {
        let given = self.mastodon.options.credentials.as_deref();
        let token = match given.and_then(|given| given.get(number as usize)) {
            None => self.sign_up(number, caller).await?,
            Some(Credential::Token(token)) => token.clone(),
            Some(Credential::Password(name, password)) => {
                self.log_in(number, name, password, caller).await?
            }
        };
        let path = "/api/v1/accounts/verify_credentials";
        self.mastodon.requests.get_as(&token, path, &mut caller.request);
        let what = "ask for the account of a token";
        let (status, body) = caller.send(what).await?;
        if status != 200 {
            return Err(match given {
                Some(_) => bad_token(number, status, &body),
                None => LoadError::Step { what, status, body: shown(&body) },
            });
        }
        let account: OwnAccount = parse(what, &body)?;
        let id = account.id.parse();
        let id = id.map_err(|_| LoadError::Answer { what, body: shown(&body) })?;
        let (handle, following) = (account.username, account.following_count);
        if self.mastodon.loads && following > 0 {
            return Err(LoadError::Follows { handle, following });
        }
        Ok(Account { id, handle: handle.into(), token: token.into() })
    }

    fn app(&self) -> &(App, Token) {
        self.app
            .as_ref()
            .unwrap_or_else(|| unreachable!("an app is registered before it is needed"))
    }

    /// Creates an account; returns its token.
    async fn sign_up(&self, number: u32, caller: &mut Caller) -> Result<String, LoadError> {
        let handle = texts::handle(self.mastodon.own.seed, number);
        let body = json!({
            "username": handle, "email": format!("{handle}@example.com"),
            "password": self.mastodon.options.password, "agreement": true, "locale": "en",
        });
        let (requests, body) = (&self.mastodon.requests, body.to_string());
        let app = &self.app().1.access_token;
        requests.post_as(app, "/api/v1/accounts", body.as_bytes(), &mut caller.request);
        Ok(caller.ask::<Token>("sign a user up").await?.access_token)
    }

    /// Exchanges a password for a token.
    async fn log_in(
        &self,
        number: u32,
        name: &str,
        password: &str,
        caller: &mut Caller,
    ) -> Result<String, LoadError> {
        let app = &self.app().0;
        let body = json!({
            "grant_type": "password", "client_id": app.client_id, "client_secret": app.client_secret,
            "username": name, "password": password, "scope": SCOPES,
        });
        let requests = &self.mastodon.requests;
        requests.post("/oauth/token", body.to_string().as_bytes(), &mut caller.request);
        let what = "log in with a password";
        let (status, body) = caller.send(what).await?;
        if status != 200 {
            return Err(bad_token(number, status, &body));
        }
        Ok(parse::<Token>(what, &body)?.access_token)
    }

    /// Passes the accounts to the API, when all users have signed in.
    fn finish(&self) -> Result<(), LoadError> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.sort_unstable_by_key(|(number, _)| *number);
        let accounts: Vec<_> = found.drain(..).map(|(_, account)| account).collect();
        self.mastodon.set_accounts(Accounts::new(accounts)?);
        Ok(())
    }
}

fn bad_token(number: u32, status: u16, body: &[u8]) -> LoadError {
    LoadError::BadToken { line: number as usize + 1, status, body: shown(body) }
}
