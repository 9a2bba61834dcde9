//! Limits on the actions of one address or account per time window.
//!
//! **Invariant:** each group has at most [`COUNTERS_MAX`] counters; the least used are dropped first. To push out a
//! counter, an attacker needs as many requests as there are counters, and each costs a password hash or a command.
//! Reads cost less, so they are counted in a separate group and cannot push out failed log-ins.

use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use quick_cache::sync::Cache;

/// Maximum number of counters per group.
const COUNTERS_MAX: usize = 65_536;
/// Factor of the limits for the network of an IPv6 address, its first 48 bits, relative to one address. Providers give
/// such networks to anybody.
pub(crate) const NETWORK_TIMES: u32 = 16;

/// Number of failed log-ins after which an address may no longer try an account that is above its rate.
const CLEAN_FAILURES_MAX: u32 = 3;
/// Factor of the rate of an account's failed log-ins. At this many failures, only addresses that have logged in before
/// may try the account.
const STRANGERS_TIMES: u32 = 10;
/// Time for which an address with a successful log-in is remembered.
const KNOWN_FOR: Duration = Duration::from_hours(30 * 24);

/// Maximum number of actions per time window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Number of actions.
    pub times: u32,
    /// Length of the window.
    pub within: Duration,
}

/// Limits on the actions of one address or account.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// Failed log-ins from one address.
    pub failures_of_address: Rate,
    /// Failed log-ins into one account. Above the limit, only addresses that have logged in with the name before, or
    /// have few failures, may try. So others cannot lock the user out.
    pub failures_of_account: Rate,
    /// Log-ins from one address, and successful log-ins into one account. Each computes a hash and is logged.
    pub log_ins: Rate,
    /// Apps registered from one address.
    pub apps: Rate,
    /// Accounts created from one address.
    pub sign_ups: Rate,
    /// Tokens issued to apps at one address.
    pub tokens: Rate,
    /// Requests of one user.
    pub requests: Rate,
    /// Reads without a user from one address.
    pub anonymous_reads: Rate,
    /// Posts published by one user.
    pub posts: Rate,
    /// Pictures uploaded by one user. Same as in Mastodon.
    pub uploads: Rate,
}

impl Default for Rates {
    fn default() -> Self {
        let rate = |times, minutes: u64| Rate { times, within: Duration::from_secs(minutes * 60) };
        Self {
            failures_of_address: rate(20, 10),
            failures_of_account: rate(50, 10),
            log_ins: rate(60, 10),
            apps: rate(30, 30),
            sign_ups: rate(5, 30),
            tokens: rate(60, 10),
            requests: rate(1_500, 5),
            anonymous_reads: rate(300, 5),
            posts: rate(300, 180),
            uploads: rate(30, 30),
        }
    }
}

impl Rates {
    /// Limits only log-ins. For a server in open mode, where every client can do everything through `/v1`.
    #[must_use]
    pub fn of_log_ins() -> Self {
        let Self { failures_of_address, failures_of_account, log_ins, .. } = Self::default();
        Self { failures_of_address, failures_of_account, log_ins, ..Self::unlimited() }
    }

    /// Allows practically everything, for tests. A rate set by a test has a window of ten minutes.
    #[must_use]
    pub fn unlimited() -> Self {
        let rate = Rate { times: u32::MAX, within: Duration::from_secs(600) };
        Self {
            failures_of_address: rate,
            failures_of_account: rate,
            log_ins: rate,
            apps: rate,
            sign_ups: rate,
            tokens: rate,
            requests: rate,
            anonymous_reads: rate,
            posts: rate,
            uploads: rate,
        }
    }
}

/// Usage of a rate by a subject in its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Number of allowed actions.
    pub(crate) limit: u32,
    /// Number of remaining actions.
    pub(crate) remaining: u32,
    /// Time until the full number is allowed again.
    pub(crate) rest: Duration,
}

/// Kind of a counted action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum What {
    AddressFailures,
    AccountFailures,
    /// Successful log-ins with a name from an address, remembered for [`KNOWN_FOR`].
    Known,
    LogIns,
    Apps,
    SignUps,
    Tokens,
    Requests,
    AnonymousReads,
    Posts,
    Uploads,
}

/// Subject whose actions are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Subject {
    /// Address or name.
    pub(crate) own: u64,
    /// Network of an address.
    network: Option<u64>,
}

impl From<u64> for Subject {
    fn from(own: u64) -> Self {
        Self { own, network: None }
    }
}

impl Subject {
    /// The network of an address, or the address itself.
    pub(crate) fn whole(self) -> u64 {
        self.network.unwrap_or(self.own)
    }

    /// Subjects to count for, each with the factor of its rate.
    fn counted(self) -> impl Iterator<Item = (u64, u32)> {
        let network = self.network.map(|network| (network, NETWORK_TIMES));
        [(self.own, 1)].into_iter().chain(network)
    }
}

#[derive(Clone, Copy, Debug)]
struct Counter {
    times: u32,
    began: Instant,
}

/// Counters of all subjects.
pub(crate) struct Limiter {
    rates: Rates,
    counters: Cache<(What, u64), Counter>,
    /// Counters of requests of all kinds.
    requests: Cache<(What, u64), Counter>,
    hasher: RandomState,
}

impl Limiter {
    pub(crate) fn new(rates: Rates) -> Self {
        Self {
            rates,
            counters: Cache::new(COUNTERS_MAX),
            requests: Cache::new(COUNTERS_MAX),
            hasher: RandomState::new(),
        }
    }

    /// Checks that `subject` is below its rate, and does not count the action.
    pub(crate) fn check(
        &self,
        what: What,
        subject: impl Into<Subject>,
        now: Instant,
    ) -> Result<(), Duration> {
        let rate = self.rate(what);
        for (counted, times) in subject.into().counted() {
            let counter = self.counters(what).get(&(what, counted));
            let rest = counter.and_then(|counter| {
                let rest = (counter.began + rate.within).checked_duration_since(now)?;
                (counter.times >= rate.times.saturating_mul(times)).then_some(rest)
            });
            if let Some(rest) = rest.filter(|rest| !rest.is_zero()) {
                return Err(rest);
            }
        }
        Ok(())
    }

    /// Number of actions of `subject` in the current window.
    pub(crate) fn times(&self, what: What, subject: u64, now: Instant) -> u32 {
        let within = self.rate(what).within;
        let counter = self.counters(what).get(&(what, subject));
        counter.filter(|counter| now < counter.began + within).map_or(0, |counter| counter.times)
    }

    /// Counts an action of `subject`.
    pub(crate) fn count(&self, what: What, subject: impl Into<Subject>, now: Instant) {
        let rate = self.rate(what);
        for (counted, _) in subject.into().counted() {
            let key = (what, counted);
            let counter = self.counters(what).get(&key);
            let counter = counter.filter(|counter| now < counter.began + rate.within);
            let mut counter = counter.unwrap_or(Counter { times: 0, began: now });
            counter.times = counter.times.saturating_add(1);
            // Two simultaneous actions may count as one: the limits are not exact.
            self.counters(what).insert(key, counter);
        }
    }

    /// Counts an action, if it is below the rate.
    ///
    /// # Errors
    /// The time after which the action is allowed.
    pub(crate) fn take(
        &self,
        what: What,
        subject: impl Into<Subject>,
        now: Instant,
    ) -> Result<(), Duration> {
        let subject = subject.into();
        self.check(what, subject, now)?;
        self.count(what, subject, now);
        Ok(())
    }

    /// Usage of a rate by a subject; `None` without a limit.
    pub(crate) fn usage(&self, what: What, subject: Subject, now: Instant) -> Option<Usage> {
        let rate = self.rate(what);
        let usage = |(counted, times): (u64, u32)| {
            let counter = self.counters(what).get(&(what, counted));
            let rest = |counter: &Counter| {
                (counter.began + rate.within).checked_duration_since(now).unwrap_or_default()
            };
            let counter = counter.filter(|counter| !rest(counter).is_zero());
            let limit = rate.times.saturating_mul(times);
            let used = counter.as_ref().map_or(0, |counter| counter.times);
            let rest = counter.as_ref().map_or(rate.within, rest);
            Usage { limit, remaining: limit.saturating_sub(used), rest }
        };
        let usage = subject.counted().map(usage).min_by_key(|usage| usage.remaining);
        usage.filter(|_| rate.times < u32::MAX)
    }

    /// The subject of an address: for IPv6 its first 64 bits, which belong to one customer.
    pub(crate) fn address(&self, address: IpAddr) -> Subject {
        match address.to_canonical() {
            IpAddr::V4(address) => self.hasher.hash_one(address).into(),
            IpAddr::V6(address) => {
                let bits = address.to_bits();
                let network = self.hasher.hash_one(("network", bits >> 80));
                Subject { own: self.hasher.hash_one(bits >> 64), network: Some(network) }
            }
        }
    }

    /// Checks whether `address` may try the password of the account `name`.
    ///
    /// # Errors
    /// The time after which the attempt is allowed.
    pub(crate) fn check_guess(
        &self,
        name: u64,
        address: Subject,
        now: Instant,
    ) -> Result<(), Duration> {
        let Err(rest) = self.check(What::AccountFailures, name, now) else { return Ok(()) };
        let most = self.rate(What::AccountFailures).times.saturating_mul(STRANGERS_TIMES);
        let is_known = self.times(What::Known, self.pair(name, address), now) > 0;
        let is_clean = self.times(What::AddressFailures, address.own, now) < CLEAN_FAILURES_MAX
            && self.times(What::AccountFailures, name, now) < most;
        if is_known || is_clean { Ok(()) } else { Err(rest) }
    }

    /// Remembers a successful log-in with a name from `address`.
    pub(crate) fn remember(&self, name: u64, address: Subject, now: Instant) {
        self.count(What::Known, self.pair(name, address), now);
    }

    fn pair(&self, name: u64, address: Subject) -> u64 {
        self.hasher.hash_one((name, address.own))
    }

    /// The subject of a log-in name.
    pub(crate) fn name(&self, name: &str) -> u64 {
        self.hasher.hash_one(name)
    }

    fn counters(&self, what: What) -> &Cache<(What, u64), Counter> {
        match what {
            What::Requests | What::AnonymousReads => &self.requests,
            _ => &self.counters,
        }
    }

    fn rate(&self, what: What) -> Rate {
        match what {
            What::AddressFailures => self.rates.failures_of_address,
            What::AccountFailures => self.rates.failures_of_account,
            What::Known => Rate { times: u32::MAX, within: KNOWN_FOR },
            What::LogIns => self.rates.log_ins,
            What::Apps => self.rates.apps,
            What::SignUps => self.rates.sign_ups,
            What::Tokens => self.rates.tokens,
            What::Requests => self.rates.requests,
            What::AnonymousReads => self.rates.anonymous_reads,
            What::Posts => self.rates.posts,
            What::Uploads => self.rates.uploads,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_above_the_limit_is_refused_until_the_window_ends() {
        let rate = Rate { times: 2, within: Duration::from_secs(60) };
        let limiter = Limiter::new(Rates { apps: rate, ..Rates::default() });
        let start = Instant::now();
        let at = |secs| start + Duration::from_secs(secs);
        let one = limiter.address("192.0.2.1".parse().unwrap());
        let other = limiter.address("192.0.2.2".parse().unwrap());
        assert_eq!(limiter.take(What::Apps, one, at(0)), Ok(()));
        assert_eq!(limiter.take(What::Apps, one, at(57)), Ok(()));
        assert_eq!(limiter.take(What::Apps, one, at(59)), Err(Duration::from_secs(1)));
        let usage = |secs| limiter.usage(What::Apps, one, at(secs));
        let of =
            |remaining, rest| Some(Usage { limit: 2, remaining, rest: Duration::from_secs(rest) });
        assert_eq!((usage(59), usage(60)), (of(0, 1), of(2, 60)));
        assert!(limiter.take(What::Apps, other, at(59)).is_ok(), "each has its own counter");
        assert!(limiter.take(What::SignUps, one, at(59)).is_ok(), "and for each kind");
        assert!(limiter.take(What::Apps, one, at(60)).is_ok());
    }

    #[test]
    fn addresses_of_one_network_are_one_subject() {
        let limiter = Limiter::new(Rates::default());
        let subject = |address: &str| limiter.address(address.parse().unwrap());
        assert_eq!(subject("2001:db8::1"), subject("2001:db8::ffff:1"));
        assert_ne!(subject("2001:db8::1"), subject("2001:db8:0:1::1"));
        assert_eq!(subject("::ffff:192.0.2.1"), subject("192.0.2.1"));
    }

    #[test]
    fn whoever_has_many_networks_may_do_only_some_times_as_much() {
        let rate = Rate { times: 2, within: Duration::from_secs(60) };
        let limiter = Limiter::new(Rates { sign_ups: rate, ..Rates::default() });
        let now = Instant::now();
        let take = |address: String| {
            let subject = limiter.address(address.parse().unwrap());
            limiter.take(What::SignUps, subject, now).is_ok()
        };
        let done = (0..4_000).filter(|n| take(format!("2001:db8:0:{n:x}::1"))).count();
        assert_eq!(done, 2 * NETWORK_TIMES as usize);
        assert!(take("2001:db8:1::1".to_owned()), "another network");
    }

    #[test]
    fn the_number_of_counters_is_bounded() {
        let limiter = Limiter::new(Rates::default());
        let now = Instant::now();
        (0..COUNTERS_MAX as u64 * 2).for_each(|name| limiter.count(What::Apps, name, now));
        assert!(limiter.counters.len() <= COUNTERS_MAX);
    }
}
