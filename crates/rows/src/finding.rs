//! Findings of a check of all rows.

/// Contradiction between rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether user data is lost. Otherwise, the wrong or missing rows can be computed from other rows.
    pub is_lost: bool,
    /// Description of the contradiction, with the table and the key.
    pub what: String,
}

impl Finding {
    /// Creates the finding of a wrong or missing row that can be computed from other rows.
    #[must_use]
    pub fn derived(what: String) -> Self {
        Self { is_lost: false, what }
    }

    /// Creates the finding of lost data, which is in no other row.
    #[must_use]
    pub fn lost(what: String) -> Self {
        Self { is_lost: true, what }
    }
}
