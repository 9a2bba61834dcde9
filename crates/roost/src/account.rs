//! `roost account`: creates, lists and changes accounts of a data directory, also while its server runs.
//!
//! A running server accepts the requests on a socket in its data directory, which only the server's user can enter. If
//! no server runs, this process opens the directory itself.

mod action;
mod socket;
mod test_users;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use feed::accounts::{AccountState, Role};
use node::{Node, NodeOptions};

use action::{Action, Answer};

use crate::key::Directory;
use crate::output::{self, out};
use crate::settings::whole_seconds;
use crate::webhook::WebhookRequest;

pub(crate) use socket::{Parts, Socket};
pub(crate) use test_users::test_tokens;

/// Number of random characters of a generated password.
const PASSWORD_CHARS: usize = 20;

/// Longest time until an invite expires.
const INVITE_SECS_MAX: u64 = 365 * 86_400;

/// Create, list and change accounts.
///
/// Works on a data directory, also while its server runs. An account belongs to a user; `create` registers the user if
/// the handle is free. The command generates and prints passwords, or reads them from standard input with
/// --password-stdin.
#[derive(Args)]
pub(crate) struct Account {
    #[command(subcommand)]
    action: Command,
    #[command(flatten)]
    directory: Directory,
}

#[derive(Subcommand)]
enum Command {
    /// Create an account and print its password
    Create {
        /// Handle of the user: 1 to 30 of a-z 0-9 _
        handle: String,
        /// E-mail address
        #[arg(long, value_name = "ADDRESS")]
        email: Option<String>,
        /// Role of the account
        #[arg(long, default_value = "user", value_parser = roles())]
        role: Role,
        /// Read the password from standard input
        #[arg(long)]
        password_stdin: bool,
    },
    /// List handles, e-mail addresses, roles, states and times of creation
    List,
    /// Create an invite and print its code
    Invite {
        /// Number of sign-ups that the invite allows
        #[arg(long, value_name = "COUNT", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=10_000))]
        uses: u32,
        /// Time until the invite expires, at most 365d
        #[arg(long, value_name = "TIME", default_value = "7d", value_parser = invite_secs)]
        life: u32,
    },
    /// Create accounts for `roost simulate`, and print an access token for each, one per line
    ///
    /// Pass the same --seed to `roost simulate`, and the output as its --tokens. The command fails if one of the users
    /// already has an account. A token gives full access to its user's account: use this on test servers only.
    TestTokens {
        /// Number of accounts
        #[arg(value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=i64::from(test_users::ACCOUNTS_MAX)))]
        count: u32,
        /// Seed of the handles, equal to --seed of `roost simulate`
        #[arg(long, value_name = "N", default_value_t = 1)]
        seed: u64,
    },
    /// Set a new password and print it. Logs out all apps and browsers
    ResetPassword {
        /// Handle of the user
        handle: String,
        /// Read the password from standard input
        #[arg(long)]
        password_stdin: bool,
    },
    /// Disable an account: log out its apps and browsers, refuse log-ins, and hide the user from others
    Disable {
        /// Handle of the user
        handle: String,
    },
    /// Enable a disabled account
    Enable {
        /// Handle of the user
        handle: String,
    },
    /// Approve an account that waits for approval
    Approve {
        /// Handle of the user
        handle: String,
    },
    /// Change the role of an account
    Role {
        /// Handle of the user
        handle: String,
        /// New role
        #[arg(value_parser = roles())]
        role: Role,
    },
    /// Delete the user of an account and everything the user made. The handle stays reserved
    Delete {
        /// Handle of the user
        handle: String,
        /// Confirm the deletion (required)
        #[arg(long, required = true)]
        yes: bool,
    },
}

/// Parses the time until an invite expires, in seconds.
fn invite_secs(text: &str) -> anyhow::Result<u32> {
    let secs = whole_seconds(text)?;
    anyhow::ensure!(secs <= INVITE_SECS_MAX, "an invite expires after at most 365d");
    Ok(u32::try_from(secs)?)
}

fn roles() -> impl TypedValueParser<Value = Role> {
    PossibleValuesParser::new(Role::ALL.map(Role::name))
        .try_map(|name| Role::named(&name).context("there is no such role"))
}

impl Account {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let data = self.directory.path()?;
        if let Command::TestTokens { count, seed } = self.action {
            let tokens = test_tokens(&data, seed, count).await?;
            return output::secret(&tokens.join("\n"));
        }
        let (action, secret) = self.action.action()?;
        let mut server = Server::find(data).await?;
        let answered = match action {
            Action::List { .. } => list(&mut server).await,
            action => change(&server, &action, secret).await,
        };
        server.close().await?;
        answered
    }
}

/// Prints the secret of a change, then makes the change.
async fn change(server: &Server, action: &Action, secret: Option<String>) -> anyhow::Result<()> {
    if let Some(secret) = &secret {
        output::secret(secret)?;
    }
    server.ask(action).await.map(|_| ()).map_err(|error| explained(error, secret.is_some()))
}

/// Adds to the error of a failed change whether the server may still have made the change, and whether the printed
/// secret is then valid.
fn explained(error: anyhow::Error, has_secret: bool) -> anyhow::Error {
    match (socket::may_be_made(&error), has_secret) {
        (false, false) => error,
        (false, true) => error.context("the printed secret is not valid"),
        (true, false) => {
            error.context("the change may have been made; check with `roost account list`")
        }
        (true, true) => error.context(
            "the change may have been made, and the printed secret is valid only if it was; check with \
             `roost account list`, or log in with it",
        ),
    }
}

/// Makes the server that runs on a data directory, if any, reload the stored application keys.
///
/// # Errors
/// If the server does not answer.
pub(crate) async fn reload_keys(data: &Path) -> anyhow::Result<()> {
    reload(data, &Action::ReloadKeys).await
}

/// Sends the request of `roost webhook` to the server that runs on a data directory, and prints the answer.
///
/// # Errors
/// If the server does not answer, or refuses the request.
pub(crate) async fn ask_about_webhooks(data: &Path, request: WebhookRequest) -> anyhow::Result<()> {
    let lines = match request {
        WebhookRequest::Reload => return reload(data, &Action::ReloadWebhooks).await,
        WebhookRequest::List { stopped } if !socket::is_served(data).await => stopped?,
        WebhookRequest::List { .. } => socket::ask(data, &Action::ListWebhooks).await?.lines,
        WebhookRequest::Act { name, action } => {
            socket::ask(data, &Action::ActOfWebhook { name, action }).await?.lines
        }
    };
    lines.iter().for_each(|line| out!("{line}"));
    Ok(())
}

async fn reload(data: &Path, action: &Action) -> anyhow::Result<()> {
    if !socket::is_served(data).await {
        return Ok(());
    }
    let done = socket::ask(data, action).await.map(|_| ());
    done.context("the change is stored, but the server has not confirmed it")
}

impl Command {
    /// Converts the command to a request, and returns the generated secret, if any.
    fn action(self) -> anyhow::Result<(Action, Option<String>)> {
        Ok(match self {
            Self::Create { handle, email, role, password_stdin } => {
                let (password, printed) = password(password_stdin)?;
                let role = role.name().to_owned();
                (Action::Create { handle, email, role, password }, printed)
            }
            Self::List => (Action::List { after: None }, None),
            Self::Invite { uses, life: life_secs } => {
                let code = node::Secret::random().context("no random bytes")?;
                let action = Action::Invite { code: hex(code.hash().0), uses, life_secs };
                (action, Some(code.as_str().to_owned()))
            }
            Self::ResetPassword { handle, password_stdin } => {
                let (password, printed) = password(password_stdin)?;
                (Action::SetPassword { handle, password }, printed)
            }
            Self::Disable { handle } => {
                (Action::set_state(handle, None, AccountState::Disabled), None)
            }
            Self::Enable { handle } => {
                let from = Some(AccountState::Disabled);
                (Action::set_state(handle, from, AccountState::Active), None)
            }
            Self::Approve { handle } => {
                let from = Some(AccountState::Pending);
                (Action::set_state(handle, from, AccountState::Active), None)
            }
            Self::Role { handle, role } => {
                (Action::SetRole { handle, role: role.name().to_owned() }, None)
            }
            Self::TestTokens { .. } => unreachable!("it takes several requests"),
            Self::Delete { handle, .. } => (Action::Delete { handle }, None),
        })
    }
}

/// Reads a password from standard input, or generates one. Returns its hash, and the password itself if it was
/// generated.
fn password(from_stdin: bool) -> anyhow::Result<(String, Option<String>)> {
    let (password, is_new) = match from_stdin {
        true => {
            let mut text = String::new();
            std::io::stdin().take(4_096).read_to_string(&mut text).context("no standard input")?;
            (text.trim_end_matches(['\r', '\n']).to_owned(), false)
        }
        false => {
            let secret = node::Secret::random().context("no random bytes")?;
            (secret.as_str().chars().take(PASSWORD_CHARS).collect(), true)
        }
    };
    let hash = mastodon::password::hash(&password)?;
    Ok((hash.as_str().to_owned(), is_new.then_some(password)))
}

fn hex(bytes: [u8; 32]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Executor of requests: the running server, or this process.
enum Server {
    Running(PathBuf),
    Opened(Node),
}

impl Server {
    async fn find(data: PathBuf) -> anyhow::Result<Self> {
        if socket::is_served(&data).await {
            return Ok(Self::Running(data));
        }
        // The server's --sample-memory may be larger than the default.
        let options = NodeOptions::new(data).for_commands();
        crate::permissions::keep_new_files_private();
        let opened = tokio::task::spawn_blocking(move || Node::open(&options)).await?;
        Ok(Self::Opened(opened.context("no server answers for the data directory")?))
    }

    async fn ask(&self, action: &Action) -> anyhow::Result<Answer> {
        match self {
            Self::Running(data) => socket::ask(data, action).await,
            Self::Opened(node) => action.run(node).await,
        }
    }

    async fn close(self) -> anyhow::Result<()> {
        if let Self::Opened(node) = self {
            tokio::task::spawn_blocking(move || node.close()).await?;
        }
        Ok(())
    }
}

/// Prints all accounts, fetched in pages.
async fn list(server: &mut Server) -> anyhow::Result<()> {
    out!("{:30}  {:9}  {:8}  {:10}  E-MAIL", "HANDLE", "ROLE", "STATE", "CREATED");
    let mut after = None;
    loop {
        let answer = server.ask(&Action::List { after }).await?;
        for line in answer.lines {
            out!("{line}");
        }
        after = answer.next;
        if after.is_none() || output::is_closed() {
            return Ok(());
        }
    }
}

/// Timeout of a request.
const PATIENCE: Duration = Duration::from_secs(30);
