//! The findings of a check of all rows.

/// Rows that contradict others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether something that a user made is lost. If not, other rows say what the wrong or missing ones should say.
    pub is_lost: bool,
    /// The contradiction, with the table and the key.
    pub what: String,
}

impl Finding {
    /// A wrong or missing row that other rows determine.
    #[must_use]
    pub fn derived(what: String) -> Self {
        Self { is_lost: false, what }
    }

    /// Something that no other row says.
    #[must_use]
    pub fn lost(what: String) -> Self {
        Self { is_lost: true, what }
    }
}
