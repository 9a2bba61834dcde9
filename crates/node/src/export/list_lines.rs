//! Lines of lists: see [`lines`](super::lines).

use std::borrow::Cow;
use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use super::lines::{Id, Line, Who};
use super::{Export, existing};

/// List of a user with its members, whom the user follows.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct List<'a> {
    pub(crate) user: Who,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<Id>,
    #[serde(borrow)]
    pub(crate) title: Cow<'a, str>,
    /// `list`, `followed` or `none`.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) replies: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(crate) members: Vec<Who>,
}

impl<W: Write> Export<'_, W> {
    /// Writes the lists of each user, before the follows.
    pub(super) fn lists(&mut self) -> io::Result<()> {
        let facts = feed::Facts::new(self.store);
        for user in existing(facts) {
            for id in facts.lists(user) {
                let Some(list) = facts.list(user, id) else { continue };
                let members = facts.list_members(user, id).into_iter();
                let members = members.filter(|other| facts.exists(*other)).map(Who::from);
                self.counts.lists += 1;
                self.out.line(&Line::List(List {
                    user: user.into(),
                    id: Some(Id(id.0)),
                    title: list.title.as_str().into(),
                    replies: Some(list.replies.name().into()),
                    members: members.collect(),
                }))?;
            }
        }
        Ok(())
    }
}
