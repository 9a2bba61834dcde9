//! Findings of a check of all rows.

/// Rows that contradict others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether user data is lost. Otherwise other rows determine the wrong or missing ones.
    pub is_lost: bool,
    /// Description of the contradiction, with the table and the key.
    pub what: String,
}

impl Finding {
    /// Creates the finding of a wrong or missing row that other rows determine.
    #[must_use]
    pub fn derived(what: String) -> Self {
        Self { is_lost: false, what }
    }

    /// Creates the finding of lost data that no other row has.
    #[must_use]
    pub fn lost(what: String) -> Self {
        Self { is_lost: true, what }
    }
}
