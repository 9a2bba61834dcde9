//! Commands about accounts. Secrets and addresses are drawn from small sets, so that they are often equal.

use feed::accounts::{
    AccessScopes, AccountCommand, AccountState, AppId, AppName, AppRequest, Email, GrantId,
    PasswordHash, RedirectUri, Role, SecretHash,
};
use feed::{Command, UserId};

use super::Generator;

impl Generator {
    pub(super) fn account_command(&mut self) -> Command {
        let user = UserId(self.random.below(self.users) as u32);
        let (app, scopes) = (self.app(), self.scopes());
        let command = match self.random.below(16) {
            0 | 1 => AccountCommand::SignUp {
                handle: self.handle(),
                email: self.email(),
                password: self.password(),
                role: *self.random.pick(&Role::ALL),
                state: self.account_state(),
                invite: self.random.once_in(3).then(|| self.secret()),
            },
            2 | 3 => {
                let (email, password) = (self.email(), self.password());
                let role = *self.random.pick(&Role::ALL);
                AccountCommand::Open { user: self.user(), email, password, role }
            }
            4 => {
                let keep = self.random.once_in(2).then(|| self.grant());
                let password = self.password();
                AccountCommand::SetPassword { user: self.user(), password, keep }
            }
            5 => {
                let role = *self.random.pick(&Role::ALL);
                AccountCommand::SetRole { user: self.user(), role }
            }
            6 => {
                let state = self.account_state();
                AccountCommand::SetState { user: self.user(), state }
            }
            7 => {
                let (uses, life_secs) = (1 + self.random.below(3) as u32, 20);
                AccountCommand::CreateInvite { code: self.secret(), uses, life_secs }
            }
            8 | 9 => AccountCommand::RegisterApp(Box::new(self.app_request(scopes))),
            10 => {
                let (password, session) = (self.password(), self.secret());
                AccountCommand::LogIn { user, password, session }
            }
            11 | 12 => {
                let (code, redirect) = (self.secret(), self.few());
                let challenge = self.random.once_in(2).then(|| self.few());
                AccountCommand::Authorize { user, app, scopes, code, redirect, challenge }
            }
            13 => {
                let (code, redirect, token) = (self.secret(), self.few(), self.secret());
                let challenge = self.random.once_in(2).then(|| self.few());
                AccountCommand::Exchange { app, code, redirect, challenge, token }
            }
            14 if self.random.once_in(2) => {
                let (password, token) = (self.password(), self.secret());
                AccountCommand::GrantUser { app, user, password, scopes, token }
            }
            14 => AccountCommand::GrantApp { app, scopes, token: self.secret() },
            15 if self.random.once_in(2) => {
                let (life_secs, token) = (1 + self.random.below(40) as u32, self.secret());
                AccountCommand::Mint { user: self.user(), scopes, life_secs, token, key: None }
            }
            _ => AccountCommand::Revoke { grant: self.grant() },
        };
        Command::Account(command)
    }

    fn app_request(&mut self, scopes: AccessScopes) -> AppRequest {
        let (Ok(name), Ok(redirect)) =
            (AppName::parse("an app"), RedirectUri::parse("https://app.example/"))
        else {
            unreachable!("both are valid")
        };
        let secret = self.few();
        AppRequest { name, website: None, redirects: vec![redirect], scopes, secret }
    }

    fn app(&mut self) -> AppId {
        match self.apps.len() {
            0 => AppId(7),
            len => AppId(self.apps[self.random.index(len)]),
        }
    }

    fn grant(&mut self) -> GrantId {
        match self.grants.len() {
            0 => GrantId(7),
            len => GrantId(self.grants[self.random.index(len)]),
        }
    }

    fn scopes(&mut self) -> AccessScopes {
        let names = *self.random.pick(&["read", "read write", "read:accounts"]);
        let Ok(scopes) = AccessScopes::parse(names) else { unreachable!("scopes") };
        scopes
    }

    /// Returns a secret from a set of which many were used before.
    fn secret(&mut self) -> SecretHash {
        let mut bytes = [0; 32];
        bytes[0] = self.random.below(256) as u8;
        SecretHash(bytes)
    }

    /// Returns a secret from a set in which most are equal.
    fn few(&mut self) -> SecretHash {
        SecretHash([u8::from(self.random.once_in(8)); 32])
    }

    fn account_state(&mut self) -> AccountState {
        match self.random.once_in(3) {
            true => *self.random.pick(&AccountState::ALL),
            false => AccountState::Active,
        }
    }

    fn email(&mut self) -> Option<Email> {
        let number = self.random.below(self.users);
        self.random.once_in(2).then(|| {
            let Ok(email) = Email::parse(&format!("m{number}@example.org")) else {
                unreachable!("a valid address")
            };
            email
        })
    }

    fn password(&mut self) -> PasswordHash {
        let text = if self.random.once_in(8) { "$argon2id$b" } else { "$argon2id$a" };
        let Ok(password) = PasswordHash::parse(text) else { unreachable!("a valid hash") };
        password
    }
}
