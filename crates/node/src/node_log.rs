//! The log of a writer: one of its own, or one that several nodes share.

use commitlog::{Log, LogError, OwnLog, Position, SharedLog};

/// See the module.
pub(crate) enum NodeLog {
    Own(Box<dyn OwnLog>),
    Shared(Box<dyn SharedLog>),
}

impl NodeLog {
    /// What both kinds have.
    pub(crate) fn any(&self) -> &dyn Log {
        match self {
            Self::Own(log) => &**log,
            Self::Shared(log) => &**log,
        }
    }

    /// As [`NodeLog::any`].
    pub(crate) fn any_mut(&mut self) -> &mut dyn Log {
        match self {
            Self::Own(log) => &mut **log,
            Self::Shared(log) => &mut **log,
        }
    }

    /// The log, if several nodes share it.
    pub(crate) fn shared(&mut self) -> Option<&mut dyn SharedLog> {
        match self {
            Self::Own(_) => None,
            Self::Shared(log) => Some(&mut **log),
        }
    }

    /// Whether a log that several nodes share cannot be trusted with changes now.
    pub(crate) fn refuses_changes(&self) -> bool {
        matches!(self, Self::Shared(log) if log.refuses_changes())
    }

    /// Drops old groups up to a position, if they are on this machine.
    pub(crate) fn cut(&mut self, up_to: Position) -> Result<(), LogError> {
        match self {
            Self::Own(log) => log.cut(up_to).map(drop),
            // The nodes agree on what they do not need.
            Self::Shared(_) => Ok(()),
        }
    }

    /// Prepares that [`NodeLog::cut`] can drop all that came before; false if it is to be asked again.
    pub(crate) fn renew(&mut self) -> Result<bool, LogError> {
        match self {
            Self::Own(log) => log.renew(),
            Self::Shared(_) => Ok(true),
        }
    }

    /// Whether [`NodeLog::cut`] can drop all that came before.
    pub(crate) fn is_renewed(&self) -> bool {
        match self {
            Self::Own(log) => log.is_renewed(),
            Self::Shared(_) => true,
        }
    }

    /// Bytes on this machine.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::Own(log) => log.size(),
            Self::Shared(_) => 0,
        }
    }
}
