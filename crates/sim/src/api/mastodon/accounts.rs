//! Accounts of the simulated users.

use std::collections::HashMap;

use crate::api::LoadError;

#[derive(Clone, Debug)]
pub(super) struct Account {
    /// Id on the server.
    pub(super) id: u64,
    pub(super) handle: Box<str>,
    /// Access token.
    pub(super) token: Box<str>,
}

/// Accounts, in the order of the users' numbers.
#[derive(Debug)]
pub(super) struct Accounts {
    accounts: Vec<Account>,
    numbers: HashMap<u64, u32>,
}

impl Accounts {
    /// Indexes the accounts.
    ///
    /// # Errors
    /// If two accounts are the same.
    pub(super) fn new(accounts: Vec<Account>) -> Result<Accounts, LoadError> {
        let mut numbers = HashMap::with_capacity(accounts.len());
        for (number, account) in (0..).zip(&accounts) {
            if let Some(first) = numbers.insert(account.id, number) {
                let (first, second) = (first as usize + 1, number as usize + 1);
                return Err(LoadError::SameAccount {
                    first,
                    second,
                    handle: (*account.handle).into(),
                });
            }
        }
        Ok(Accounts { accounts, numbers })
    }

    pub(super) fn of(&self, user: u32) -> &Account {
        let account = self.accounts.get(user as usize);
        account.unwrap_or_else(|| unreachable!("there is an account for user {user}"))
    }

    /// Number of the user with this id; the greatest number if there is none.
    pub(super) fn number(&self, id: u64) -> u32 {
        self.numbers.get(&id).copied().unwrap_or(u32::MAX)
    }

    /// Ids in the order of the users' numbers, if all ids fit 32 bits (as on roost).
    pub(super) fn ids(&self) -> Option<Vec<u32>> {
        self.accounts.iter().map(|account| u32::try_from(account.id).ok()).collect()
    }
}
