//! Amounts of a shared resource that clients hold: bytes, streams, or requests.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Amounts of all clients. A clone shares the amounts of the original.
#[derive(Debug)]
pub struct Shares<C>(Arc<Mutex<HashMap<C, usize>>>);

/// Amount that a client holds until this is dropped.
#[derive(Debug)]
pub struct Share<C: Eq + Hash> {
    shares: Shares<C>,
    client: C,
    amount: usize,
}

impl<C> Default for Shares<C> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<C> Clone for Shares<C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<C> Shares<C> {
    fn amounts(&self) -> MutexGuard<'_, HashMap<C, usize>> {
        // No code that may panic runs while the lock is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of clients that hold an amount.
    #[must_use]
    pub fn clients(&self) -> usize {
        self.amounts().len()
    }
}

impl<C: Copy + Eq + Hash> Shares<C> {
    /// Whether a client may take `amount` more without exceeding `most`.
    #[must_use]
    pub fn fits(&self, client: C, amount: usize, most: usize) -> bool {
        sum(&self.amounts(), &client, amount, most).is_some()
    }

    /// Adds to the amount of a client; `None` if it would exceed `most`.
    #[must_use]
    pub fn take(&self, client: C, amount: usize, most: usize) -> Option<Share<C>> {
        let mut amounts = self.amounts();
        let sum = sum(&amounts, &client, amount, most)?;
        amounts.insert(client, sum);
        drop(amounts);
        Some(Share { shares: self.clone(), client, amount })
    }
}

/// Amount of a client after adding `amount`; `None` if it would exceed `most`.
fn sum<C: Eq + Hash>(
    amounts: &HashMap<C, usize>,
    client: &C,
    amount: usize,
    most: usize,
) -> Option<usize> {
    let has = amounts.get(client).copied().unwrap_or(0);
    has.checked_add(amount).filter(|sum| *sum <= most)
}

impl<C: Eq + Hash> Drop for Share<C> {
    fn drop(&mut self) {
        let mut amounts = self.shares.amounts();
        if let Some(amount) = amounts.get_mut(&self.client) {
            *amount -= self.amount;
            if *amount == 0 {
                amounts.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_at_most_its_share_and_others_theirs() {
        let shares = Shares::default();
        let first = (shares.take(1, 1, 3).unwrap(), shares.take(1, 2, 3).unwrap());
        assert!(shares.take(1, 1, 3).is_none() && shares.take(1, usize::MAX, 3).is_none());
        assert!(shares.fits(1, 1, 4) && !shares.fits(1, 1, 3) && shares.fits(2, 3, 3));
        let other = shares.take(2, 3, 3).unwrap();
        drop(first.0);
        assert!(shares.take(1, 2, 3).is_none() && shares.take(1, 1, 3).is_some());
        drop((first.1, other));
        assert_eq!(shares.clients(), 0);
    }
}
