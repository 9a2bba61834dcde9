//! Parameters of a trial, by name.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Parameters of a trial, by name; all are whole numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Parameters(BTreeMap<String, u64>);

impl Parameters {
    /// Sets a parameter.
    pub fn set(&mut self, name: &str, value: u64) {
        self.0.insert(name.to_owned(), value);
    }

    /// Value of the parameter of this name, if any.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }

    /// Names and values, in the order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }

    /// Copy with one parameter set.
    #[must_use]
    pub fn with(&self, name: &str, value: u64) -> Self {
        let mut with = self.clone();
        with.set(name, value);
        with
    }

    /// Copy without one parameter. Trials with equal copies may differ only in that parameter.
    #[must_use]
    pub fn without(&self, name: &str) -> Self {
        let mut others = self.clone();
        others.0.remove(name);
        others
    }

    /// Value of a parameter. The parameters were validated before.
    ///
    /// # Panics
    /// If the parameter does not exist, or does not fit 32 bits.
    pub(crate) fn count(&self, name: &str) -> u32 {
        match self.get(name).map(u32::try_from) {
            Some(Ok(value)) => value,
            _ => unreachable!("{name} is a parameter of the experiment and was checked"),
        }
    }
}

impl fmt::Display for Parameters {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(out, "{comma}{name} {value}")?;
        }
        Ok(())
    }
}
