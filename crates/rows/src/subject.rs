//! Subjects of rows: the users, posts, pictures or marks that look different when a row changes. Each table declares its own.

/// A user, a post, a picture, or the marks of posts for one user.
///
/// A store counts the changes of each subject's rows, so that a cache can check whether an entry that was made from
/// them is current. Rows without a subject are read again each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// User with this id: profile, counts, whether the user exists and approves follows, and the user's posts.
    User(u64),
    /// Profile of the user with this id, whether the user exists and approves follows. It is a part of
    /// [`Subject::User`]: a change of it changes both.
    Profile(u64),
    /// Post with this id: content, reactions with their counts, and replies.
    Post(u64),
    /// Content of the post with this id, and whether it exists. It is a part of [`Subject::Post`]: a change of it
    /// changes both.
    Content(u64),
    /// Picture with this id.
    Media(u64),
    /// Marks of posts for the user with this id: the user's filters and muted threads.
    Marks(u64),
}
