//! A decoded reply.

/// A reply of RESP2 or RESP3. Text is borrowed from the buffer it was read from.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'b> {
    /// A status.
    Simple(&'b [u8]),
    /// An error: its code, a blank, its message.
    Error(&'b [u8]),
    /// A number.
    Integer(i64),
    /// Any bytes.
    Bulk(&'b [u8]),
    /// Text with its format.
    Verbatim([u8; 3], &'b [u8]),
    /// Nothing, in each of the three ways to say it.
    Null,
    /// Replies in order.
    Array(Vec<Self>),
    /// Pairs of key and value, in the order they were sent.
    Map(Vec<(Self, Self)>),
    /// Replies that the server says are different. Nothing checks that.
    Set(Vec<Self>),
    /// A message that answers no command.
    Push(Vec<Self>),
    /// A floating-point number.
    Double(f64),
    /// True or false.
    Boolean(bool),
    /// An integer of any size: digits with an optional sign in front.
    BigNumber(&'b [u8]),
}
