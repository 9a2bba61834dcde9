//! Subjects of rows: the users, posts, pictures or marks that look different when a row changes. Each table declares
//! its subject.

/// User, post, picture, or the marks of posts for a user.
///
/// A store counts the changes of each subject's rows. A cache can thus check whether an entry made from these rows is
/// current. Rows without a subject are read again each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// User with this id: profile, counts, posts, and whether the user exists and approves follows.
    User(u64),
    /// Profile of the user with this id, and whether the user exists and approves follows. It is a part of
    /// [`Subject::User`]: changing it changes both.
    Profile(u64),
    /// Post with this id: content, reactions with their counts, and replies.
    Post(u64),
    /// Content of the post with this id, and whether the post exists. It is a part of [`Subject::Post`]: changing it
    /// changes both.
    Content(u64),
    /// Picture with this id.
    Media(u64),
    /// Marks of posts for the user with this id: the user's filters and muted threads.
    Marks(u64),
}
