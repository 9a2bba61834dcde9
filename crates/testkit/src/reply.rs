//! Reply of a Redis server.

use std::fmt;

/// A reply of RESP2 or RESP3.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// Status.
    Simple(String),
    /// Error: code, space, message.
    Error(String),
    /// Integer.
    Integer(i64),
    /// Any bytes, or null in any of its three encodings.
    Bulk(Option<Vec<u8>>),
    /// Text with its format.
    Verbatim([u8; 3], Vec<u8>),
    /// Replies in order.
    Array(Vec<Self>),
    /// Pairs of key and value, in the order they were sent.
    Map(Vec<(Self, Self)>),
    /// Set of replies. Whether they differ is not checked.
    Set(Vec<Self>),
    /// Message that is not a reply to a command.
    Push(Vec<Self>),
    /// Floating-point number.
    Double(f64),
    /// True or false.
    Boolean(bool),
    /// Integer of any size: digits with an optional sign in front.
    BigNumber(String),
}

impl Reply {
    /// Status of a successful command.
    #[must_use]
    pub fn ok() -> Self {
        Self::Simple("OK".into())
    }

    /// Text of an error; empty if the reply is no error.
    #[must_use]
    pub fn error(&self) -> &str {
        if let Self::Error(text) = self { text } else { "" }
    }

    /// Number of an integer reply. Panics for other replies.
    #[must_use]
    pub fn integer(&self) -> i64 {
        if let Self::Integer(number) = self { *number } else { panic!("no integer: {self:?}") }
    }

    /// Bytes of a bulk reply. Panics for other replies.
    #[must_use]
    pub fn bytes(self) -> Vec<u8> {
        if let Self::Bulk(Some(bytes)) = self { bytes } else { panic!("no bytes: {self:?}") }
    }

    /// Whether the server refused a command because a limit was reached.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.error().starts_with("BUSY ")
    }
}

/// Text for tables of tests: `nil`, `5`, `OK`, `"bytes"`, `[a, b]`, `{k: v}`, `-ERR ...`.
impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list =
            |replies: &[Self]| replies.iter().map(Self::to_string).collect::<Vec<_>>().join(", ");
        match self {
            Self::Simple(text) | Self::BigNumber(text) => f.write_str(text),
            Self::Error(text) => write!(f, "-{text}"),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Bulk(Some(bytes)) => write!(f, "\"{}\"", bytes.escape_ascii()),
            Self::Bulk(None) => f.write_str("nil"),
            Self::Verbatim(_, bytes) => write!(f, "txt\"{}\"", bytes.escape_ascii()),
            Self::Array(replies) => write!(f, "[{}]", list(replies)),
            Self::Set(replies) => write!(f, "~[{}]", list(replies)),
            Self::Push(replies) => write!(f, ">[{}]", list(replies)),
            Self::Map(pairs) => {
                let pairs = pairs.iter().map(|(key, value)| format!("{key}: {value}"));
                write!(f, "{{{}}}", pairs.collect::<Vec<_>>().join(", "))
            }
            Self::Double(number) => write!(f, "{number}"),
            Self::Boolean(truth) => write!(f, "#{truth}"),
        }
    }
}
