//! Entities of the API, with every documented field; fields without facts have defaults.
//!
//! **Invariant:** an entity shows a reader only what [`feed::Viewer`] makes visible to them.
//!
//! **Invariant:** an entity cached in the node ([`node::Entity`]) equals a new one. `tests/api/kept.rs` compares two
//! servers on one node, one without a cache, after random changes.

mod account;
mod conversation;
pub(crate) mod filter;
mod history;
pub(crate) mod html;
pub(crate) mod instance;
pub(crate) mod json;
pub(crate) mod languages;
mod media;
pub(crate) mod notification;
mod poll;
mod quote;
mod relationship;
mod shared_part;
pub(crate) mod status;
mod tag;
pub(crate) mod time;

use std::cell::{Cell, OnceCell};
use std::collections::HashMap;
use std::sync::Arc;

use edge::Abandoned;
use feed::{Facts, PostId, UserId, Viewer};
use node::{Entity, EntityKey, Node, Store};

use self::filter::Marks;

/// Source of entities.
#[derive(Clone)]
pub(crate) struct Renderer {
    pub(crate) node: Node,
    /// URL of the server, without a slash at the end.
    base: Arc<str>,
    /// Whether entities are cached for other readers.
    keeps: bool,
    histories: Arc<tag::Histories>,
}

impl Renderer {
    pub(crate) fn new(node: Node, base: &str, keeps: bool) -> Self {
        Self { node, base: base.into(), keeps, histories: Arc::default() }
    }

    /// The cached entity, if it is current.
    fn kept(&self, key: EntityKey) -> Option<Entity> {
        self.node.entity(key).filter(|_| self.keeps)
    }

    fn keep(&self, key: EntityKey, entity: &Entity) {
        if self.keeps {
            self.node.keep_entity(key, entity);
        }
    }

    /// Whether the cache shows that no filter of a reader can match and that the reader has muted no thread.
    fn is_unmarked(&self, reader: UserId) -> bool {
        self.kept(EntityKey::Unmarked(reader)).is_some()
    }
}

/// Maker of entities for one reader. May block.
pub(crate) struct Entities<'a> {
    renderer: &'a Renderer,
    /// Reader of the entities; `None` without a user's token. Such a reader sees only public data.
    reader: Option<UserId>,
    viewer: Viewer<'a, Store>,
    now_ms: u64,
    /// Filters and muted threads of the reader, read with the first status; `None` if nothing can be marked.
    marks: OnceCell<Option<Marks>>,
    /// Number of changes that hid users, read before everything else.
    hidings: u64,
    /// Whether a row was missing that only a read from disk can provide; `None` if reads may block.
    lacks: Option<Cell<bool>>,
    /// Flag of a long read whose caller no longer waits.
    abandoned: Option<&'a Abandoned>,
    /// Post that the reader has just published.
    new: Option<PostId>,
    /// Handles that were already looked up. A page has at most a few thousand: the users mentioned in its texts.
    handles: HashMap<UserId, Option<String>>,
}

impl<'a> Entities<'a> {
    /// Makes entities for a reader from the cache only; never blocks. `None` unless the cache shows that the reader has
    /// no blocks, mutes, filters and muted threads.
    pub(crate) fn of_kept(renderer: &'a Renderer, reader: UserId) -> Option<Self> {
        let is_plain =
            renderer.node.surely_has_no_blocks_or_mutes(reader) && renderer.is_unmarked(reader);
        // The reader has no filters and muted threads, so none are read.
        let marks = OnceCell::from(None);
        let lacks = Some(Cell::new(false));
        is_plain.then(|| Self { lacks, marks, ..Self::new(renderer, Some(reader)) })
    }

    /// Makes entities from the cache only, for a post that the reader has just published.
    pub(crate) fn of_new(renderer: &'a Renderer, reader: UserId, new: PostId) -> Option<Self> {
        Some(Self { new: Some(new), ..Self::of_kept(renderer, reader)? })
    }

    /// Makes entities for a long read, which ends early if its caller no longer waits.
    pub(crate) fn of_many(
        renderer: &'a Renderer,
        reader: Option<UserId>,
        abandoned: &'a Abandoned,
    ) -> Self {
        Self { abandoned: Some(abandoned), ..Self::new(renderer, reader) }
    }

    /// Whether the caller no longer waits.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned.is_some_and(Abandoned::is_set)
    }

    /// Whether data is missing that is not cached.
    pub(crate) fn lacks_something(&self) -> bool {
        self.lacks.as_ref().is_some_and(Cell::get)
    }

    /// Whether rows may be read; if not, data will be missing.
    fn may_read(&self) -> bool {
        self.lacks.as_ref().is_none_or(|lacks| {
            lacks.set(true);
            false
        })
    }

    pub(crate) fn new(renderer: &'a Renderer, reader: Option<UserId>) -> Self {
        let node = &renderer.node;
        let hidings = node.facts().totals().hidings;
        let anyone = || Viewer::anyone(node.facts());
        let viewer = reader.map_or_else(anyone, |reader| node.viewer(Some(reader)));
        Self {
            renderer,
            reader,
            viewer,
            now_ms: node.now_ms(),
            marks: OnceCell::new(),
            hidings,
            lacks: None,
            abandoned: None,
            new: None,
            handles: HashMap::new(),
        }
    }

    /// The cached entity with counts, if it is current. `is_unconcerned` returns true if the entity does not depend on
    /// a user who is being erased.
    fn counted(
        &self,
        key: EntityKey,
        is_unconcerned: impl FnOnce(&Entity) -> bool,
    ) -> Option<Entity> {
        let Renderer { node, keeps, .. } = self.renderer;
        if !*keeps {
            return None;
        }
        node.counted_entity(key, self.hidings, is_unconcerned)
    }

    pub(crate) fn facts(&self) -> Facts<'a, Store> {
        self.viewer.facts()
    }

    pub(crate) fn viewer(&self) -> &Viewer<'a, Store> {
        &self.viewer
    }

    /// Whether the reader may see a user or blocks them: the list of blocked users shows them.
    pub(crate) fn knows(&self, user: UserId) -> bool {
        let facts = self.facts();
        let blocks = |reader| facts.blocks(reader, user) && !facts.is_disabled(user);
        self.is_approved(user)
            && (self.viewer.visible_user(user) || self.reader.is_some_and(blocks))
    }

    /// Whether the reader may see a user.
    pub(crate) fn is_visible(&self, user: UserId) -> bool {
        self.viewer.visible_user(user) && self.is_approved(user)
    }

    /// Whether a user exists, is not disabled and does not await approval. Users without an account qualify.
    fn is_approved(&self, user: UserId) -> bool {
        self.facts().exists(user) && self.facts().is_active(user)
    }

    /// URL of the server, without a slash at the end.
    fn base(&self) -> &'a str {
        &self.renderer.base
    }

    fn handle(&mut self, user: UserId) -> Option<String> {
        let facts = self.facts();
        let find = || facts.user(user).map(|found| found.handle.as_str().to_owned());
        self.handles.entry(user).or_insert_with(find).clone()
    }
}

#[cfg(test)]
mod tests {
    use feed::{Command, Done, Draft, Handle, Name, PostText};
    use node::{NodeOptions, Request};

    use super::*;

    #[tokio::test]
    async fn entities_are_kept_while_rows_of_a_deleted_user_are_removed() {
        let data = tempfile::tempdir().unwrap();
        let node = Node::open(&NodeOptions::new(data.path())).unwrap();
        let run = async |command: Command| {
            node.submit(Request::from(command)).await.unwrap().outcome.unwrap()
        };
        for handle in ["ada", "bob", "cyd"] {
            let (handle, name, bio) =
                (Handle::parse(handle).unwrap(), Name::default(), feed::Bio::default());
            run(Command::Register { handle, name, bio }).await;
        }
        let user = |id| feed::UserRef::Id(UserId(id));
        let post = |author| {
            Command::Publish(Box::new(Draft::new(user(author), PostText::parse("x").unwrap())))
        };
        let Done::Posted(shown) = run(post(0)).await else { panic!() };
        run(Command::Follow { user: user(2), other: user(1) }).await;
        // There are so many posts that several commands are needed to remove their rows.
        for _ in 0..40 {
            let many = (0..50).map(|_| Request::from(post(1))).collect();
            node.submit_all(many).await.unwrap();
        }
        let renderer = Renderer::new(node.clone(), "https://a.example", true);
        let read = async |renderer: Renderer| {
            let read = move || Entities::new(&renderer, Some(UserId(2))).status(shown).is_some();
            tokio::task::spawn_blocking(read).await.unwrap()
        };
        assert!(read(renderer.clone()).await);
        run(Command::DeleteUser { user: user(1) }).await;
        assert!(read(renderer.clone()).await);
        let mut entities = Entities::of_kept(&renderer, UserId(2)).unwrap();
        assert!(entities.status(shown).is_some() && !entities.lacks_something());
        node.close();
    }
}
