//! Export of the relations of users, and of options of follows.

use std::io::{self, Write};

use feed::Span;
use feed::follow_options::OptionsOf;
use feed::relation::{RELATIONS, Relation};

use super::lines::{self, Id, Line};
use super::{Export, existing};

impl<W: Write> Export<'_, W> {
    /// Writes the options of the follows of each user.
    pub(super) fn follow_options(&mut self) -> io::Result<()> {
        let facts = feed::Facts::new(self.store);
        for user in existing(facts) {
            for OptionsOf { other, options } in facts.all_follow_options(user) {
                // The rows of a follow remain for some time after the followed user is deleted.
                if facts.exists(other) {
                    self.counts.follow_options += 1;
                    let line = lines::FollowOptions {
                        user: user.into(),
                        follows: other.into(),
                        without_boosts: options.hides_boosts,
                        notified_since: options.notified_since.map(|since| Id(since.0)),
                    };
                    self.out.line(&Line::FollowOptions(line))?;
                }
            }
        }
        Ok(())
    }

    /// Writes the relations whose lines have only users, for each user. A mutual relation is written once, for the user
    /// with the smaller id. A relation that becomes another one, such as a request, is written before that one.
    pub(super) fn relations(&mut self, chosen: impl Fn(&Relation) -> bool) -> io::Result<()> {
        let facts = feed::Facts::new(self.store);
        for relation in RELATIONS.into_iter().rev().filter(|relation| chosen(relation)) {
            let Some(kind) = relation.line else { continue };
            for user in existing(facts) {
                let others = facts.users_in(relation.forward, user, Span::ALL).into_iter();
                let others = others.filter(|other| !relation.is_mutual() || *other > user);
                let others: Vec<_> = others.map(Into::into).collect();
                if others.is_empty() {
                    continue;
                }
                let Some(count) = self.counts.of_relations(kind) else {
                    unreachable!("relations with lines are counted")
                };
                *count += others.len() as u64;
                let (kind, user) = (kind.into(), user.into());
                self.out.line(&Line::Relation(lines::Related { kind, user, users: others }))?;
            }
        }
        Ok(())
    }
}
