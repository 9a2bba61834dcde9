//! Checks relations of users: each has a row for both users.
//!
//! A lookup of the opposite row for each row would take minutes, so whole tables are read in order. A first pass sums
//! up hashes of the rows of both directions, for each block of users. The sums are equal if the rows agree; otherwise
//! they are equal only with a probability of 2^-64. A second pass collects the rows of the blocks that differ and
//! compares the two directions. The memory it uses is bounded: more blocks take more passes over the tables.
//!
//! Rows of a relation with a text follow from the texts of both users.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;

use rows::{PointTable, RowsMut, Scan, SetTable};

use super::{From, Mend, Rows, STEP_ROWS};
use crate::ids::UserId;
use crate::relation::Relation;

/// Number of users in one block.
const BLOCK_USERS: u64 = 256;
/// Maximum number of rows to compare at a time: 8 Mi of 8 bytes each. The users of a block have fewer.
const COMPARED_ROWS_MAX: u64 = 8 << 20;
/// Rows per read of the comparison.
const READ_ROWS: usize = 1 << 16;

/// A relation without its direction: the follower, blocker or muter and the other user, or two friends, the smaller id
/// first.
type Pair = (u32, u32);

/// Comparison of the two directions of one relation.
#[derive(Debug, Default)]
pub(crate) struct Relations {
    /// Blocks by the first user of each pair.
    blocks: Vec<Block>,
    /// Pairs with a backward row only.
    no_forward: Vec<Pair>,
    no_backward: Vec<Pair>,
}

/// Sums over the pairs whose first users are in one block.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    /// Sum of the hashes of forward rows minus those of backward rows.
    sum: u64,
    rows: u64,
}

/// Direction of a row: the forward row has the first user of the pair as owner.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

impl Relations {
    fn add(&mut self, (direction, pair): (Direction, Pair)) {
        let at = block_of(pair);
        if self.blocks.len() <= at {
            self.blocks.resize(at + 1, Block::default());
        }
        let Some(block) = self.blocks.get_mut(at) else { return };
        block.rows += 1;
        block.sum = match direction {
            Direction::Forward => block.sum.wrapping_add(hash(pair)),
            Direction::Backward => block.sum.wrapping_sub(hash(pair)),
        };
    }
}

fn block_of((first, _): Pair) -> usize {
    (u64::from(first) / BLOCK_USERS) as usize
}

fn hash(pair: Pair) -> u64 {
    let mut hasher = DefaultHasher::new();
    pair.hash(&mut hasher);
    hasher.finish()
}

/// Returns the next range of blocks that differ: the first one at or after `from`, and those after it that fit into
/// `rows_max` rows together.
fn differing(blocks: &[Block], from: usize, rows_max: u64) -> Option<Range<usize>> {
    let differing = blocks.iter().enumerate().skip(from).filter(|(_, block)| block.sum != 0);
    let (mut range, mut rows) = (None, 0);
    for (at, block) in differing {
        rows += block.rows;
        match &mut range {
            None => range = Some(at..at + 1),
            Some(range) if rows <= rows_max => range.end = at + 1,
            Some(_) => break,
        }
    }
    range
}

/// Direction and pair of a row in one of the relation's tables.
fn pair(relation: &Relation, table: SetTable, owner: u32, item: u32) -> (Direction, Pair) {
    let is_forward = if relation.is_mutual() { owner < item } else { table == relation.forward };
    if is_forward {
        (Direction::Forward, (owner, item))
    } else {
        (Direction::Backward, (item, owner))
    }
}

impl Mend {
    /// Adds rows of a table to the comparison, and removes or corrects rows that no command writes.
    pub(crate) fn add_relations<R: Scan + RowsMut>(
        &mut self,
        (relation, table): (&Relation, SetTable),
        step: &mut Rows<'_, R>,
        from: (u64, u64),
    ) -> Option<From> {
        let (found, next) = step.rows.members_from(table, from, STEP_ROWS);
        for (owner, item, number) in found {
            let Some((owner_id, item_id)) = step.possible(owner, item) else {
                step.derived(format!(
                    "{table:?} {owner}, {item}: one of the two users is missing or deleted"
                ));
                step.rows.put_member(table, owner, item, None);
                continue;
            };
            let (direction, pair) = pair(relation, table, owner_id, item_id);
            if step.has_become_other(relation, pair) {
                step.derived(format!("{table:?} {owner}, {item}: it has become another relation"));
                step.rows.put_member(table, owner, item, None);
                continue;
            }
            let is_forward = table == relation.forward;
            if number != 0 && !(relation.numbered.is_some() && is_forward) {
                step.derived(format!("{table:?} {owner}, {item}: the row is malformed"));
                step.rows.put_member(table, owner, item, Some(0));
            } else if is_forward {
                let row = relation.index_row(UserId(owner_id), UserId(item_id), number);
                step.put_index(|| format!("{table:?} {owner}, {item}"), row);
            }
            self.relations.add((direction, pair));
        }
        next.map(|place| From { place, ..From::default() })
    }

    /// Adds the missing rows of a relation. `from` is the first block not compared yet.
    pub(crate) fn complete_relations<R: Scan + RowsMut>(
        &mut self,
        relation: &Relation,
        step: &mut Rows<'_, R>,
        from: u64,
    ) -> Option<From> {
        let here = From { place: (from, 0), ..From::default() };
        if self.relations.put_missing(relation, step) {
            return Some(here);
        }
        let Some(range) = differing(&self.relations.blocks, from as usize, COMPARED_ROWS_MAX)
        else {
            self.relations = Relations::default();
            return None;
        };
        self.relations.find_missing(relation, step, &range);
        Some(From { place: (range.end as u64, 0), ..here })
    }
}

impl Relations {
    /// Reads the rows of some blocks and collects the pairs with only one row.
    fn find_missing<R: Scan + RowsMut>(
        &mut self,
        relation: &Relation,
        step: &Rows<'_, R>,
        range: &Range<usize>,
    ) {
        let is_differing =
            |at| range.contains(&at) && self.blocks.get(at).is_some_and(|block| block.sum != 0);
        let read = |table, wanted| {
            let mut pairs = Vec::new();
            let mut next = Some((0, 0));
            while let Some(from) = next {
                let (found, rest) = step.rows.members_from(table, from, READ_ROWS);
                let found = found.iter().map(|(owner, item, _)| {
                    // The first pass has removed rows whose numbers are not users.
                    pair(relation, table, *owner as u32, *item as u32)
                });
                pairs.extend(
                    found
                        .filter(|(direction, pair)| {
                            *direction == wanted && is_differing(block_of(*pair))
                        })
                        .map(|(_, pair)| pair),
                );
                next = rest;
            }
            pairs.sort_unstable();
            pairs
        };
        let forward = read(relation.forward, Direction::Forward);
        let mut backward = read(relation.backward, Direction::Backward);
        let no_backward = forward.iter().filter(|pair| backward.binary_search(pair).is_err());
        self.no_backward = no_backward.copied().collect();
        backward.retain(|pair| forward.binary_search(pair).is_err());
        self.no_forward = backward;
    }

    /// Adds some of the missing rows. Returns false if none was missing.
    fn put_missing<R: Scan + RowsMut>(
        &mut self,
        relation: &Relation,
        step: &mut Rows<'_, R>,
    ) -> bool {
        let is_forward = !self.no_forward.is_empty();
        let (table, pairs) = match is_forward {
            true => (relation.forward, &mut self.no_forward),
            false => (relation.backward, &mut self.no_backward),
        };
        let some = pairs.split_off(pairs.len().saturating_sub(STEP_ROWS));
        for (first, second) in &some {
            let (owner, item) = if is_forward { (*first, *second) } else { (*second, *first) };
            step.derived(format!("{table:?} {owner}, {item}: only the other direction has a row"));
            step.rows.put_member(table, owner.into(), item.into(), Some(0));
        }
        !some.is_empty()
    }
}

impl<R: Scan + RowsMut> Rows<'_, R> {
    /// Whether a relation has become the other one, which was checked before.
    fn has_become_other(&self, relation: &Relation, (user, other): Pair) -> bool {
        let row = |next: &Relation| self.rows.member(next.forward, user.into(), other.into());
        relation.becomes.and_then(row).is_some()
    }

    /// Ids of two users who can have a relation.
    fn possible(&self, owner: u64, item: u64) -> Option<Pair> {
        let (user, other) = self.user(owner).zip(self.user(item))?;
        let is_possible = user != other && !self.is_erased(user) && !self.is_erased(other);
        is_possible.then_some((user.0, other.0))
    }
}

impl<R: Scan + RowsMut> Rows<'_, R> {
    /// Adds the rows of texts, whose two users must exist.
    pub(crate) fn texts(
        &mut self,
        (relation, table): (&Relation, PointTable),
        from: u64,
    ) -> Option<From> {
        let (found, next) = self.rows.points_from(table, from, STEP_ROWS);
        for (key, _) in found {
            let [user, other] = [key >> 32, key & u64::from(u32::MAX)].map(|user| self.user(user));
            let is_left = |user: &UserId| !self.is_erased(*user);
            let users = user.filter(is_left).zip(other.filter(is_left));
            let Some((user, other)) = users else {
                self.derived(format!("{table:?} {key}: there is no such user"));
                self.put(table, key, None);
                continue;
            };
            let (user, other) = (user.0.into(), other.0.into());
            if self.set(relation.forward, user, other, Some(0))
                | self.set(relation.backward, other, user, Some(0))
            {
                self.derived(format!(
                    "{table:?} of user {user} about {other}: a list row is missing"
                ));
            }
        }
        next.map(|next| From { place: (next, 0), ..From::default() })
    }

    /// Removes rows without a text.
    pub(crate) fn with_text(
        &mut self,
        (relation, table): (&Relation, SetTable),
        from: (u64, u64),
    ) -> Option<From> {
        let (found, next) = self.rows.members_from(table, from, STEP_ROWS);
        for (owner, item, _) in found {
            let users = u32::try_from(owner).ok().zip(u32::try_from(item).ok());
            let has_text = users.zip(relation.text).is_some_and(|((owner, item), text)| {
                let (user, other) = relation.users(table, UserId(owner), UserId(item));
                self.rows.point(text, Relation::key(user, other)).is_some()
            });
            if !has_text {
                let what = format!("{table:?} {owner}, {item}: there is no such text");
                if table == relation.forward {
                    self.lost(what);
                } else {
                    self.derived(what);
                }
                self.rows.put_member(table, owner, item, None);
            }
        }
        next.map(|place| From { place, ..From::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_compared_in_groups_that_fit_into_memory() {
        let block = |(sum, rows)| Block { sum, rows };
        let blocks = [(0, 9), (1, 4), (0, 9), (2, 4), (3, 4), (4, 50), (5, 1)].map(block);
        let (mut from, mut groups) = (0, Vec::new());
        while let Some(range) = differing(&blocks, from, 8) {
            from = range.end;
            groups.push(range);
        }
        assert_eq!(groups, [1..4, 4..5, 5..6, 6..7]);
        assert_eq!(differing(&[block((0, 1))], 0, 8), None);
    }
}
