//! Requests of `roost account`, and their execution by a node.

use anyhow::{Context as _, bail, ensure};
use feed::accounts::{AccountCommand, AccountState, Email, PasswordHash, Role, SecretHash};
use feed::{Command, Handle, UserId, UserRef};
use jiff::Timestamp;
use node::{Node, Request};
use serde::{Deserialize, Serialize};

use super::test_users;

/// Largest number of users examined by one list request.
const LOOKED_AT_MAX: u32 = 10_000;

/// Request to the server.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Action {
    Create {
        handle: String,
        email: Option<String>,
        role: String,
        /// PHC string.
        password: String,
    },
    /// Lists the accounts of the users with greater ids than `after`.
    List {
        after: Option<u32>,
    },
    Invite {
        /// SHA-256 of the code: 64 hexadecimal digits.
        code: String,
        uses: u32,
        life_secs: u32,
    },
    SetPassword {
        handle: String,
        /// PHC string.
        password: String,
    },
    SetState {
        handle: String,
        /// State that the account must have; `None` for any.
        from: Option<String>,
        state: String,
    },
    SetRole {
        handle: String,
        role: String,
    },
    Delete {
        handle: String,
    },
    /// Reloads the stored application keys.
    ReloadKeys,
    /// Reloads the stored webhooks.
    ReloadWebhooks,
    /// Lists the webhooks with their state.
    ListWebhooks,
    /// Requests an action of a webhook.
    ActOfWebhook {
        name: String,
        action: webhooks::Action,
    },
    /// Registers the app of a load test.
    RegisterTestApp,
    /// Creates accounts with tokens for a load test.
    TestUsers {
        app: u64,
        /// PHC string.
        password: String,
        /// Handles and hashes of tokens (64 hexadecimal digits).
        users: Vec<(String, String)>,
    },
}

/// Response to a successful request.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct Answer {
    #[serde(default)]
    pub(super) lines: Vec<String>,
    /// Last user of this page; `None` on the last page.
    pub(super) next: Option<u32>,
    /// App that was registered.
    #[serde(default)]
    pub(super) app: Option<u64>,
}

impl Action {
    pub(super) fn set_state(handle: String, from: Option<AccountState>, to: AccountState) -> Self {
        let from = from.map(|from| from.name().to_owned());
        Self::SetState { handle, from, state: to.name().to_owned() }
    }

    /// Executes the request.
    ///
    /// # Errors
    /// If it is malformed or refused.
    pub(super) async fn run(&self, node: &Node) -> anyhow::Result<Answer> {
        let command = match self {
            Self::Create { handle, email, role, password } => {
                let create = (handle.clone(), email.clone(), role.clone(), password.clone());
                let node = node.clone();
                tokio::task::spawn_blocking(move || creation(&node, &create)).await??
            }
            Self::List { after } => {
                let (node, after) = (node.clone(), *after);
                return Ok(tokio::task::spawn_blocking(move || list(&node, after)).await?);
            }
            Self::Invite { code, uses, life_secs } => {
                let (code, uses, life_secs) = (secret(code)?, *uses, *life_secs);
                Command::Account(AccountCommand::CreateInvite { code, uses, life_secs })
            }
            Self::SetPassword { handle, password } => {
                let (user, password) = (user(handle)?, PasswordHash::parse(password)?);
                Command::Account(AccountCommand::SetPassword { user, password, keep: None })
            }
            Self::SetState { handle, from, state } => {
                let state = AccountState::named(state).context("there is no such state")?;
                if let Some(from) = from {
                    let (node, handle) = (node.clone(), Handle::parse(handle)?);
                    let found = move || {
                        let user = node.facts().by_handle(&handle)?;
                        node.facts().account(user)
                    };
                    let account = tokio::task::spawn_blocking(found).await?;
                    let is = account.context("the user has no account")?.state.name();
                    ensure!(is == from, "the account is {is}, not {from}");
                }
                Command::Account(AccountCommand::SetState { user: user(handle)?, state })
            }
            Self::SetRole { handle, role } => {
                let role = Role::named(role).context("there is no such role")?;
                Command::Account(AccountCommand::SetRole { user: user(handle)?, role })
            }
            Self::ReloadKeys
            | Self::ReloadWebhooks
            | Self::ListWebhooks
            | Self::ActOfWebhook { .. } => bail!("no server answers for the data directory"),
            Self::RegisterTestApp => return test_users::register_app(node).await,
            Self::TestUsers { app, password, users } => {
                test_users::open_accounts(node, *app, password, users).await?;
                return Ok(Answer::default());
            }
            Self::Delete { handle } => Command::DeleteUser { user: user(handle)? },
        };
        let reply = node.submit(Request::from(command)).await?;
        reply.outcome?;
        Ok(Answer::default())
    }
}

fn user(handle: &str) -> anyhow::Result<UserRef> {
    Ok(UserRef::Handle(Handle::parse(handle)?))
}

/// Returns the command that creates an account, and its user if the handle is free. May block.
pub(super) fn creation(
    node: &Node,
    (handle, email, role, password): &(String, Option<String>, String, String),
) -> anyhow::Result<Command> {
    let handle = Handle::parse(handle)?;
    let email = email.as_deref().map(Email::parse).transpose()?;
    let role = Role::named(role).context("there is no such role")?;
    let password = PasswordHash::parse(password)?;
    Ok(Command::Account(match node.facts().by_handle(&handle) {
        Some(user) => AccountCommand::Open { user: UserRef::Id(user), email, password, role },
        None => {
            let (state, invite) = (AccountState::Active, None);
            AccountCommand::SignUp { handle, email, password, role, state, invite }
        }
    }))
}

pub(super) fn secret(hex: &str) -> anyhow::Result<SecretHash> {
    let mut bytes = [0; 32];
    let digits = hex.as_bytes().as_chunks::<2>();
    if digits.0.len() != bytes.len() || !digits.1.is_empty() {
        bail!("a hash has 64 hexadecimal digits");
    }
    for (byte, digits) in bytes.iter_mut().zip(digits.0) {
        let text = std::str::from_utf8(digits).context("a hash has hexadecimal digits")?;
        *byte = u8::from_str_radix(text, 16).context("a hash has hexadecimal digits")?;
    }
    Ok(SecretHash(bytes))
}

/// Returns the next page of accounts, one line per account. May block.
fn list(node: &Node, after: Option<u32>) -> Answer {
    let facts = node.facts();
    let users = facts.totals().users;
    let first = after.map_or(0, |after| after.saturating_add(1));
    let end = users.min(first.saturating_add(LOOKED_AT_MAX));
    let line = |id| {
        let (user, account) = (facts.user(id)?, facts.account(id)?);
        let created = i64::try_from(account.created.unix_ms()).ok();
        let created = created.and_then(|ms| Timestamp::from_millisecond(ms).ok());
        let created: String = created.map(|time| time.to_string()).unwrap_or_default();
        let email = account.email.as_ref().map_or("", |email| email.as_str());
        Some(format!(
            "{:30}  {:9}  {:8}  {:.10}  {email}",
            user.handle.as_str(),
            account.role.name(),
            account.state.name(),
            created,
        ))
    };
    let lines = (first..end).map(UserId).filter_map(line).collect();
    Answer { lines, next: (end < users).then(|| end - 1), app: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_64_hexadecimal_digits() {
        assert_eq!(secret(&"0a".repeat(32)).unwrap(), SecretHash([10; 32]));
        for bad in ["", "0a", &"0a".repeat(33), &"0g".repeat(32), &"é".repeat(32)] {
            assert!(secret(bad).is_err(), "{bad}");
        }
    }
}
