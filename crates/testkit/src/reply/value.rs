//! A decoded reply.

/// A reply of RESP2 or RESP3. Text is borrowed from the buffer it was read from.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'b> {
    /// A status.
    Simple(&'b [u8]),
    /// An error: its code, a space, its message.
    Error(&'b [u8]),
    /// A number.
    Integer(i64),
    /// Any bytes.
    Bulk(&'b [u8]),
    /// Text with its format.
    Verbatim([u8; 3], &'b [u8]),
    /// Null, in any of its three encodings.
    Null,
    /// Replies in order.
    Array(Vec<Self>),
    /// Pairs of key and value, in the order they were sent.
    Map(Vec<(Self, Self)>),
    /// A set of replies. It is not checked that they differ.
    Set(Vec<Self>),
    /// A message that is not a reply to a command.
    Push(Vec<Self>),
    /// A floating-point number.
    Double(f64),
    /// True or false.
    Boolean(bool),
    /// An integer of any size: digits with an optional sign in front.
    BigNumber(&'b [u8]),
}
