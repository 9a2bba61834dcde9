//! Rules of accounts, invites, apps and grants.

use crate::support::{World, id};
use feed::accounts::{
    AccessScopes, AccountCommand, AccountDone, AccountState, AppId, AppName, AppRequest, Email,
    GrantId, PasswordHash, RedirectUri, Role, SecretHash,
};
use feed::limits::{
    APP_GRANTS_MAX, CODE_SECS, INVITES_MAX, SESSION_SECS, TOKEN_SECS_MAX, UNUSED_APPS_MAX,
    USER_GRANTS_MAX, USER_TOKENS_MAX,
};
use feed::{
    Command, Done, DueWork, Facts, Handle, Outcome, Refusal, StampedCommand, Txn, UserId, Viewer,
};
use rows::{
    NameTable, PointTable, PutRows, Rows, RowsMut, SetTable, Span, Stamp, StampClock, Subject,
    Totals, Value,
};
use testkit::MemoryRows;

const OLD: &str = "$argon2id$old";
const NEW: &str = "$argon2id$new";
const ADA: UserId = UserId(0);
const BOB: UserId = UserId(1);

fn secret(byte: u8) -> SecretHash {
    SecretHash([byte; 32])
}

/// Creates a secret from a number.
fn numbered(number: u32) -> SecretHash {
    let mut bytes = [0xee; 32];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    SecretHash(bytes)
}

fn password(text: &str) -> PasswordHash {
    PasswordHash::parse(text).unwrap()
}

fn scopes(names: &str) -> AccessScopes {
    AccessScopes::parse(names).unwrap()
}

pub(crate) fn run(world: &mut World, command: AccountCommand) -> Outcome {
    world.run(Command::Account(command))
}

fn open(user: u32, email: Option<&str>) -> AccountCommand {
    let email = email.map(|email| Email::parse(email).unwrap());
    AccountCommand::Open { user: id(user), email, password: password(OLD), role: Role::User }
}

fn sign_up(handle: &str, email: Option<&str>, invite: Option<u8>) -> AccountCommand {
    AccountCommand::SignUp {
        handle: Handle::parse(handle).unwrap(),
        email: email.map(|email| Email::parse(email).unwrap()),
        password: password(OLD),
        role: Role::User,
        state: AccountState::Active,
        invite: invite.map(secret),
    }
}

fn log_in(user: UserId, session: SecretHash) -> AccountCommand {
    AccountCommand::LogIn { user, password: password(OLD), session }
}

pub(crate) fn register_app(world: &mut World) -> AppId {
    let app = AppRequest {
        name: AppName::parse("an app").unwrap(),
        website: None,
        redirects: vec![RedirectUri::parse("https://app.example/").unwrap()],
        scopes: scopes("read write:statuses"),
        secret: secret(99),
    };
    match run(world, AccountCommand::RegisterApp(Box::new(app))) {
        Ok(Done::Account(AccountDone::AppRegistered(app))) => app,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn authorize(
    app: AppId,
    user: UserId,
    code: u8,
    challenge: Option<u8>,
) -> AccountCommand {
    AccountCommand::Authorize {
        user,
        app,
        scopes: scopes("read"),
        code: secret(code),
        redirect: secret(50),
        challenge: challenge.map(secret),
    }
}

fn exchange(app: AppId, code: u8, challenge: Option<u8>, token: u8) -> AccountCommand {
    AccountCommand::Exchange {
        app,
        code: secret(code),
        redirect: secret(50),
        challenge: challenge.map(secret),
        token: secret(token),
    }
}

fn granted(outcome: Outcome) -> GrantId {
    match outcome {
        Ok(Done::Account(AccountDone::Granted(grant))) => grant,
        other => panic!("{other:?}"),
    }
}

/// Whether the token or session is valid now.
fn permits(world: &World, token: SecretHash) -> bool {
    world.facts().granted(&token, world.now_ms).is_some()
}

/// Creates a world in which `ada` and `bob` have accounts, and an app exists.
pub(crate) fn world() -> (World, AppId) {
    let mut world = World::new();
    run(&mut world, open(0, Some("ada@example.org"))).unwrap();
    run(&mut world, open(1, None)).unwrap();
    let app = register_app(&mut world);
    (world, app)
}

#[test]
fn a_user_has_at_most_one_account_and_an_address_belongs_to_one() {
    let (mut world, _) = world();
    let before = world.snapshot();
    for (command, expect) in [
        (open(0, None), Refusal::HasAccount),
        (open(2, Some("ADA@example.org")), Refusal::EmailTaken),
        (sign_up("new", Some("ada@Example.org"), None), Refusal::EmailTaken),
        (sign_up("new", None, Some(1)), Refusal::BadInvite),
        (AccountCommand::SetRole { user: id(2), role: Role::Admin }, Refusal::NoAccount),
    ] {
        assert_eq!(run(&mut world, command.clone()), Err(expect), "{command:?}");
        assert_eq!(world.snapshot(), before, "a refused command changes nothing");
    }
    assert_eq!(run(&mut world, open(77, None)), Err(Refusal::UserNotFound));
    assert_eq!(run(&mut world, sign_up("ada", None, None)), Err(Refusal::HandleTaken));
    let done = run(&mut world, sign_up("new", Some("new@example.org"), None));
    assert_eq!(done, Ok(Done::Account(AccountDone::SignedUp(UserId(3)))));
    let email = Email::parse("new@example.org").unwrap();
    assert_eq!(world.facts().by_email(&email), Some(UserId(3)));
    assert_eq!(world.facts().totals().accounts, 3);
}

#[test]
fn an_invite_is_used_as_often_as_it_says_and_until_it_expires() {
    let (mut world, _) = world();
    let invite = |code, uses| AccountCommand::CreateInvite { code, uses, life_secs: 100 };
    run(&mut world, invite(secret(1), 2)).unwrap();
    assert_eq!(run(&mut world, invite(secret(1), 1)), Err(Refusal::SecretUsed));
    // A refused sign-up does not use up the invite.
    assert_eq!(run(&mut world, sign_up("ada", None, Some(1))), Err(Refusal::HandleTaken));
    for handle in ["one", "two"] {
        run(&mut world, sign_up(handle, None, Some(1))).unwrap();
    }
    let bad = Err(Refusal::BadInvite);
    assert_eq!(run(&mut world, sign_up("three", None, Some(1))), bad);
    run(&mut world, invite(secret(2), 1)).unwrap();
    world.now_ms += 100_000;
    assert_eq!(run(&mut world, sign_up("three", None, Some(2))), bad);
    for number in 0..INVITES_MAX as u32 {
        run(&mut world, invite(numbered(number), 1)).unwrap();
    }
    let full = Err(Refusal::TooManyInvites);
    assert_eq!(run(&mut world, invite(secret(3), 1)), full);
    world.now_ms += 100_000;
    run(&mut world, invite(secret(3), 1)).unwrap();
}

#[test]
fn a_code_becomes_a_token_once_for_its_app_redirect_and_challenge() {
    let (mut world, app) = world();
    let other = register_app(&mut world);
    run(&mut world, authorize(app, ADA, 1, Some(7))).unwrap();
    assert!(!permits(&world, secret(1)), "a code is no token");
    let before = world.snapshot();
    let elsewhere = AccountCommand::Exchange {
        app,
        code: secret(1),
        redirect: secret(51),
        challenge: Some(secret(7)),
        token: secret(2),
    };
    for wrong in [
        exchange(other, 1, Some(7), 2),
        exchange(app, 1, None, 2),
        exchange(app, 1, Some(8), 2),
        exchange(app, 9, Some(7), 2),
        elsewhere,
    ] {
        assert_eq!(run(&mut world, wrong.clone()), Err(Refusal::BadCode), "{wrong:?}");
        assert_eq!(world.snapshot(), before);
    }
    let grant = granted(run(&mut world, exchange(app, 1, Some(7), 2)));
    assert!(permits(&world, secret(2)) && !permits(&world, secret(1)));
    let (found, stored) = world.facts().granted(&secret(2), world.now_ms).unwrap();
    assert_eq!((found, stored.user, stored.app), (grant, Some(ADA), Some(app)));
    assert_eq!(stored.scopes, scopes("read"));
    // Another app with a stolen code cannot end the grant.
    let stolen = run(&mut world, exchange(other, 1, Some(7), 3));
    assert_eq!(stolen, Err(Refusal::BadCode));
    assert!(permits(&world, secret(2)));
    let again = run(&mut world, exchange(app, 1, Some(7), 3));
    assert_eq!(again, Ok(Done::Account(AccountDone::CodeReused)));
    assert!(!permits(&world, secret(2)) && !permits(&world, secret(3)));
    // A code without a challenge cannot be exchanged with a verifier, because the app would believe that the server has
    // checked the verifier.
    run(&mut world, authorize(app, ADA, 4, None)).unwrap();
    assert_eq!(run(&mut world, exchange(app, 4, Some(7), 5)), Err(Refusal::BadCode));
    granted(run(&mut world, exchange(app, 4, None, 5)));
}

#[test]
fn a_code_expires_and_its_second_use_does_not_matter_then() {
    let (mut world, app) = world();
    run(&mut world, authorize(app, ADA, 1, None)).unwrap();
    world.now_ms += CODE_SECS * 1_000;
    assert_eq!(run(&mut world, exchange(app, 1, None, 2)), Err(Refusal::BadCode));
    run(&mut world, authorize(app, ADA, 3, None)).unwrap();
    granted(run(&mut world, exchange(app, 3, None, 4)));
    world.now_ms += CODE_SECS * 1_000;
    world.do_due_of(|work| matches!(work, DueWork::ExpireGrant { .. }));
    assert_eq!(world.facts().grant_of(&secret(1)), None);
    assert_eq!(world.facts().grant_of(&secret(3)), None);
    assert_eq!(run(&mut world, exchange(app, 3, None, 6)), Err(Refusal::BadCode));
    assert!(permits(&world, secret(4)));
}

#[test]
fn an_app_gets_only_scopes_that_it_has_registered() {
    let (mut world, app) = world();
    let grant = |scopes, token| AccountCommand::GrantApp { app, scopes, token };
    granted(run(&mut world, grant(scopes("read:accounts write:statuses"), secret(1))));
    for wrong in ["write", "push", "read write:media"] {
        let done = run(&mut world, grant(scopes(wrong), secret(2)));
        assert_eq!(done, Err(Refusal::BadScope), "{wrong}");
    }
    let used = run(&mut world, grant(scopes("read"), secret(1)));
    assert_eq!(used, Err(Refusal::SecretUsed));
    let unknown =
        AccountCommand::GrantApp { app: AppId(7), scopes: scopes("read"), token: secret(2) };
    assert_eq!(run(&mut world, unknown), Err(Refusal::AppNotFound));
}

#[test]
fn a_session_expires_and_needs_the_password_that_was_compared() {
    let (mut world, _) = world();
    granted(run(&mut world, log_in(ADA, secret(1))));
    assert!(permits(&world, secret(1)));
    let wrong = AccountCommand::LogIn { user: ADA, password: password(NEW), session: secret(2) };
    assert_eq!(run(&mut world, wrong), Err(Refusal::PasswordChanged));
    let nobody = log_in(UserId(2), secret(2));
    assert_eq!(run(&mut world, nobody), Err(Refusal::AccountNotActive));
    world.now_ms += SESSION_SECS * 1_000;
    assert!(!permits(&world, secret(1)));
}

#[test]
fn a_new_password_ends_all_grants_but_the_session_that_sets_it() {
    let (mut world, app) = world();
    let keep = Some(granted(run(&mut world, log_in(ADA, secret(1)))));
    granted(run(&mut world, log_in(ADA, secret(2))));
    granted(run(&mut world, log_in(BOB, secret(3))));
    run(&mut world, authorize(app, ADA, 4, None)).unwrap();
    let revocations = world.facts().totals().revocations;
    let change = AccountCommand::SetPassword { user: id(0), password: password(NEW), keep };
    run(&mut world, change).unwrap();
    assert!(permits(&world, secret(1)) && permits(&world, secret(3)));
    assert!(!permits(&world, secret(2)));
    assert_eq!(run(&mut world, exchange(app, 4, None, 5)), Err(Refusal::BadCode));
    assert!(world.facts().totals().revocations > revocations, "caches are told");
    // A session that has ended, or belongs to another user, cannot set the password.
    let of_bob = Some(granted(run(&mut world, log_in(BOB, secret(6)))));
    run(
        &mut world,
        AccountCommand::SetPassword { user: id(0), password: password(OLD), keep: None },
    )
    .unwrap();
    for keep in [keep, of_bob] {
        let late = AccountCommand::SetPassword { user: id(0), password: password(NEW), keep };
        assert_eq!(run(&mut world, late), Err(Refusal::PasswordChanged));
    }
    assert!(permits(&world, secret(6)));
}

#[test]
fn a_disabled_account_permits_nothing_and_an_enabled_one_must_log_in_again() {
    let (mut world, app) = world();
    granted(run(&mut world, log_in(ADA, secret(1))));
    let set = |state| AccountCommand::SetState { user: id(0), state };
    for state in [AccountState::Disabled, AccountState::Pending] {
        run(&mut world, set(state)).unwrap();
        let pending = u32::from(state == AccountState::Pending);
        assert_eq!(world.facts().totals().accounts_pending, pending);
        assert!(!permits(&world, secret(1)));
        let not_active = Err(Refusal::AccountNotActive);
        assert_eq!(run(&mut world, log_in(ADA, secret(2))), not_active);
        assert_eq!(run(&mut world, authorize(app, ADA, 3, None)), not_active);
    }
    run(&mut world, set(AccountState::Active)).unwrap();
    assert!(!permits(&world, secret(1)));
    granted(run(&mut world, log_in(ADA, secret(2))));
}

fn mint(user: u32, life_secs: u32, token: SecretHash) -> AccountCommand {
    AccountCommand::Mint {
        user: id(user),
        scopes: scopes("read write"),
        life_secs,
        token,
        key: None,
    }
}

#[test]
fn a_minted_token_acts_for_its_user_without_an_account_until_it_expires_or_the_user_is_gone() {
    let (mut world, _) = world();
    let none = AccountCommand::Mint {
        user: id(2),
        scopes: AccessScopes::default(),
        life_secs: 60,
        token: secret(1),
        key: None,
    };
    assert_eq!(run(&mut world, none), Err(Refusal::BadScope));
    assert_eq!(run(&mut world, mint(77, 60, secret(1))), Err(Refusal::UserNotFound));
    granted(run(&mut world, mint(2, 60, secret(1))));
    assert_eq!(run(&mut world, mint(2, 60, secret(1))), Err(Refusal::SecretUsed));
    let (_, grant) = world.facts().granted(&secret(1), world.now_ms).unwrap();
    assert!(grant.is_minted() && grant.user == Some(UserId(2)), "{grant:?}");
    world.now_ms += 60_000;
    assert!(!permits(&world, secret(1)));
    world.do_due_of(|work| matches!(work, DueWork::ExpireGrant { .. }));
    assert_eq!(world.facts().grants_of_user(UserId(2)), []);
    // The lifetime is capped.
    granted(run(&mut world, mint(2, u32::MAX, secret(2))));
    world.now_ms += u64::from(TOKEN_SECS_MAX) * 1_000 - 1;
    assert!(permits(&world, secret(2)));
    let revocations = world.facts().totals().revocations;
    world.run(Command::DeleteUser { user: id(2) }).unwrap();
    assert!(!permits(&world, secret(2)));
    assert!(world.facts().totals().revocations > revocations, "caches are told");
    assert_eq!(run(&mut world, mint(2, 60, secret(3))), Err(Refusal::UserNotFound));
}

#[test]
fn a_minted_token_permits_nothing_while_the_account_is_not_active() {
    let (mut world, _) = world();
    granted(run(&mut world, mint(0, 60, secret(1))));
    for state in [AccountState::Disabled, AccountState::Pending] {
        run(&mut world, AccountCommand::SetState { user: id(0), state }).unwrap();
        assert!(!permits(&world, secret(1)));
        assert_eq!(run(&mut world, mint(0, 60, secret(2))), Err(Refusal::AccountNotActive));
    }
}

#[test]
fn a_user_has_so_many_minted_tokens_and_none_ends_for_another() {
    let (mut world, _) = world();
    for number in 0..USER_TOKENS_MAX as u32 {
        granted(run(&mut world, mint(2, 60, numbered(number))));
    }
    let last = granted(run(&mut world, mint(1, 60, secret(1))));
    assert_eq!(run(&mut world, mint(2, 60, secret(2))), Err(Refusal::TooManyTokens));
    assert!((0..USER_TOKENS_MAX as u32).all(|number| permits(&world, numbered(number))));
    run(&mut world, AccountCommand::Revoke { grant: last }).unwrap();
    assert!(!permits(&world, secret(1)));
    // Expired tokens do not count and are removed.
    world.now_ms += 60_000;
    let revocations = world.facts().totals().revocations;
    granted(run(&mut world, mint(2, 60, secret(2))));
    assert_eq!(world.facts().grants_of_user(UserId(2)).len(), 1);
    assert_eq!(world.facts().totals().revocations, revocations);
    world.do_due_of(|work| matches!(work, DueWork::ExpireGrant { .. }));
    assert!(permits(&world, secret(2)));
}

/// Checks after each change of a row that a user who stays hidden is never visible, and that a change of visibility is
/// followed by a write of the profile's row, which invalidates caches of the profile.
struct Watched {
    rows: MemoryRows,
    user: UserId,
    is_hidden: bool,
    stays_hidden: bool,
    /// Whether the visibility has changed since the last write of the profile.
    is_unnoticed: bool,
    changes: usize,
}

impl Watched {
    fn new(rows: MemoryRows, user: UserId) -> Self {
        let facts = Facts::new(&rows);
        let is_hidden = facts.is_being_erased(user) || facts.is_disabled(user);
        Self { rows, user, is_hidden, stays_hidden: false, is_unnoticed: false, changes: 0 }
    }

    fn check(&mut self, subject: Option<Subject>) {
        self.changes += 1;
        let facts = Facts::new(&self.rows);
        let is_hidden = facts.is_being_erased(self.user) || facts.is_disabled(self.user);
        let is_of_profile = subject == Some(Subject::Profile(self.user.0.into()));
        self.is_unnoticed = !is_of_profile && (self.is_unnoticed || is_hidden != self.is_hidden);
        for viewer in [Viewer::new(facts, Some(BOB)), Viewer::anyone(facts)] {
            let is_seen = viewer.visible_user(self.user) && !facts.is_being_erased(self.user);
            assert!(!is_seen || !self.stays_hidden, "after {} changes", self.changes);
        }
        self.is_hidden = is_hidden;
    }

    fn run(&mut self, now_ms: u64, command: Command) {
        let stamp = StampClock::new(Stamp(0)).next(now_ms);
        let entry = StampedCommand { stamp, idempotency: None, command };
        feed::apply(&mut Txn::new(self), &entry, &mut Vec::new()).outcome.unwrap();
        assert!(!self.is_unnoticed);
    }
}

impl Rows for Watched {
    fn point(&self, table: PointTable, key: u64) -> Option<Value> {
        self.rows.point(table, key)
    }
    fn each_point(&self, table: PointTable, each: &mut dyn FnMut(u64, &[u8])) {
        self.rows.each_point(table, each);
    }
    fn points_below(
        &self,
        table: PointTable,
        below: u64,
        limit: usize,
        each: &mut dyn FnMut(u64, &[u8]),
    ) {
        self.rows.points_below(table, below, limit, each);
    }
    fn member(&self, table: SetTable, owner: u64, item: u64) -> Option<u64> {
        self.rows.member(table, owner, item)
    }
    fn members(&self, table: SetTable, owner: u64, span: Span) -> Vec<(u64, u64)> {
        self.rows.members(table, owner, span)
    }
    fn name(&self, table: NameTable, key: &[u8]) -> Option<Value> {
        self.rows.name(table, key)
    }
    fn names_under(
        &self,
        table: NameTable,
        prefix: &[u8],
        from: &[u8],
        limit: usize,
    ) -> Vec<Vec<u8>> {
        self.rows.names_under(table, prefix, from, limit)
    }
    fn totals(&self) -> Totals {
        self.rows.totals()
    }
}

impl PutRows for Watched {
    fn put_point(&mut self, table: PointTable, key: u64, value: Option<Value>) {
        self.rows.put_point(table, key, value);
        self.check(Subject::of_point(table, key));
    }
    fn put_member(&mut self, table: SetTable, owner: u64, item: u64, value: Option<u64>) {
        self.rows.put_member(table, owner, item, value);
        self.check(Subject::of_member(table, owner));
    }
    fn put_name(&mut self, table: NameTable, key: &[u8], value: Option<Value>) {
        self.rows.put_name(table, key, value);
        self.check(Subject::of_name(table, key));
    }
}

impl RowsMut for Watched {
    fn put_totals(&mut self, totals: Totals) {
        self.rows.put_totals(totals);
        self.check(None);
    }
}

/// Readers see each change of a row at once.
#[test]
fn a_disabled_account_is_hidden_at_each_moment_of_its_deletion() {
    let mut world = World::new();
    world.set_account(0, AccountState::Disabled);
    let (rows, now_ms) = (world.rows.clone(), world.now_ms + 1);
    let mut watched = Watched { stays_hidden: true, ..Watched::new(rows, ADA) };
    watched.run(now_ms, Command::DeleteUser { user: id(0) });
    assert!(watched.changes > 6);
    assert_eq!(watched.rows.totals().accounts_disabled, 0);
    let left = watched.rows.members(SetTable::LockedUsers, 0, Span::ALL);
    assert_eq!(left, []);
}

#[test]
fn who_is_hidden_is_so_from_a_row_of_the_profile_on() {
    let mut world = World::new();
    world.set_account(0, AccountState::Active);
    let mut watched = Watched::new(world.rows.clone(), ADA);
    let set = |state| Command::Account(AccountCommand::SetState { user: id(0), state });
    for (later_ms, command, is_hidden) in [
        (1, set(AccountState::Disabled), true),
        (2, set(AccountState::Active), false),
        (3, Command::DeleteUser { user: id(0) }, true),
    ] {
        watched.run(world.now_ms + later_ms, command);
        assert_eq!(watched.is_hidden, is_hidden);
    }
}

#[test]
fn grants_are_bounded_and_the_oldest_ends() {
    let (mut world, app) = world();
    for number in 0..=USER_GRANTS_MAX as u32 {
        granted(run(&mut world, log_in(ADA, numbered(number))));
    }
    assert!(!permits(&world, numbered(0)) && permits(&world, numbered(1)));
    assert_eq!(world.facts().grants_of_user(ADA).len(), USER_GRANTS_MAX);
    for number in 1_000..=1_000 + APP_GRANTS_MAX as u32 {
        let token = numbered(number);
        let command = AccountCommand::GrantApp { app, scopes: scopes("read"), token };
        granted(run(&mut world, command));
    }
    assert!(!permits(&world, numbered(1_000)) && permits(&world, numbered(1_001)));
}

#[test]
fn neither_log_ins_nor_minted_tokens_end_one_another() {
    let (mut world, _) = world();
    granted(run(&mut world, log_in(ADA, numbered(0))));
    granted(run(&mut world, mint(0, 60_000, numbered(1_000))));
    for number in 1..USER_GRANTS_MAX as u32 {
        granted(run(&mut world, log_in(ADA, numbered(number))));
    }
    for number in 1..USER_TOKENS_MAX as u32 {
        granted(run(&mut world, mint(0, 60_000, numbered(1_000 + number))));
    }
    assert!(permits(&world, numbered(0)) && permits(&world, numbered(1_000)));
    granted(run(&mut world, log_in(ADA, numbered(500))));
    assert!(!permits(&world, numbered(0)) && permits(&world, numbered(1_000)));
}

#[test]
fn what_expires_is_no_revocation() {
    let (mut world, app) = world();
    granted(run(&mut world, mint(0, 60, secret(1))));
    granted(run(&mut world, log_in(ADA, secret(2))));
    run(&mut world, authorize(app, ADA, 3, None)).unwrap();
    let revocations = world.facts().totals().revocations;
    world.now_ms += SESSION_SECS * 1_000;
    world.do_due_of(|work| matches!(work, DueWork::ExpireGrant { .. }));
    assert_eq!(world.facts().grants_of_user(ADA), []);
    assert_eq!(world.facts().totals().revocations, revocations);
}

#[test]
fn the_app_that_was_registered_first_of_those_without_users_is_removed() {
    let (mut world, used) = world();
    let unused = register_app(&mut world);
    let newer = register_app(&mut world);
    run(&mut world, authorize(used, ADA, 1, None)).unwrap();
    assert_eq!(world.facts().app_uses(used), 1);
    let token = AccountCommand::GrantApp { app: unused, scopes: scopes("read"), token: secret(2) };
    granted(run(&mut world, token));
    let mut totals = world.rows.totals();
    assert_eq!(totals.apps_unused, 2);
    totals.apps_unused = UNUSED_APPS_MAX;
    world.rows.put_totals(totals);
    register_app(&mut world);
    assert!(world.facts().app(used).is_some(), "it acts for somebody");
    assert!(world.facts().app(unused).is_none() && !permits(&world, secret(2)));
    assert!(world.facts().app(newer).is_some());
    // Once it is unused, the app `used` is the oldest unused app.
    let grant = world.facts().grants_of_user(ADA)[0].0;
    run(&mut world, AccountCommand::Revoke { grant }).unwrap();
    assert_eq!(world.facts().app_uses(used), 0);
    register_app(&mut world);
    assert!(world.facts().app(used).is_none());
}

#[test]
fn a_deleted_user_leaves_neither_account_nor_grants_nor_address() {
    let (mut world, app) = world();
    granted(run(&mut world, log_in(ADA, secret(1))));
    run(&mut world, authorize(app, ADA, 2, None)).unwrap();
    granted(run(&mut world, log_in(BOB, secret(3))));
    let revocations = world.facts().totals().revocations;
    world.run(Command::DeleteUser { user: id(0) }).unwrap();
    assert!(!permits(&world, secret(1)), "at once");
    assert!(world.facts().totals().revocations > revocations);
    assert_eq!(run(&mut world, exchange(app, 2, None, 4)), Err(Refusal::AccountNotActive));
    world.erase(ADA.0);
    assert_eq!(world.facts().grants_of_user(ADA), []);
    assert_eq!(world.facts().grant_of(&secret(1)), None);
    assert_eq!(world.facts().grant_of(&secret(2)), None);
    assert!(permits(&world, secret(3)));
    assert_eq!(world.facts().app_uses(app), 0);
    run(&mut world, sign_up("new", Some("ada@example.org"), None)).unwrap();
    assert_eq!(run(&mut world, sign_up("ada", None, None)), Err(Refusal::HandleTaken));
}

#[test]
fn rows_that_follow_from_accounts_and_grants_come_back() {
    let (mut world, app) = world();
    granted(run(&mut world, log_in(ADA, secret(1))));
    run(&mut world, authorize(app, ADA, 2, None)).unwrap();
    register_app(&mut world);
    let before = world.rows.clone();
    for table in [
        NameTable::Email,
        NameTable::GrantSecret,
        NameTable::GrantOf,
        NameTable::Due,
        NameTable::UnusedApp,
    ] {
        for name in before.first_names(table, &[], 10) {
            world.rows.put_name(table, &name, None);
        }
        world.rows.put_name(table, &[0xfe; 40], Some(rows::encode(&77_u32)));
    }
    world.rows.put_point(PointTable::AppUses, app.0, None);
    let mut totals = world.rows.totals();
    (totals.accounts, totals.apps_unused) = (9, 9);
    world.rows.put_totals(totals);
    let mut lost = Vec::new();
    let mut check = feed::Mend::new(false);
    while check
        .step(&mut world.rows, &mut |finding| lost.extend(finding.is_lost.then_some(finding.what)))
    {
    }
    // Only the malformed rows that the test has added count as lost.
    assert!(lost.iter().all(|what| what.contains("malformed")), "{lost:?}");
    assert_eq!(world.rows, before);
}
