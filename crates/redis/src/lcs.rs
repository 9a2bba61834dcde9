//! Longest common subsequence of two values, and the positions of its parts in both.

/// Maximum size of the table, in bytes: that of a value, as in Redis. A table of 4 million cells takes 10 ms.
const TABLE_BYTES_MAX: usize = kv::limits::VALUE_BYTES_MAX;

/// Lengths of the common subsequences of all pairs of prefixes.
pub(crate) struct Table<'a> {
    a: &'a [u8],
    b: &'a [u8],
    /// Rows of the table, one for each prefix of `a`, including the empty one.
    lengths: Vec<u32>,
}

/// Run of bytes that both values have: first and last index in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Match {
    /// Position in the first value.
    pub(crate) a: (usize, usize),
    /// Position in the second value.
    pub(crate) b: (usize, usize),
}

impl Match {
    /// Number of matching bytes.
    pub(crate) fn len(self) -> usize {
        self.a.1 - self.a.0 + 1
    }
}

/// Returns the number of steps for a table of values with these lengths; `None` if the table is too large.
pub(crate) fn steps(a: usize, b: usize) -> Option<usize> {
    let cells = (a + 1).checked_mul(b + 1)?;
    (cells.checked_mul(size_of::<u32>())? <= TABLE_BYTES_MAX).then_some(cells)
}

/// Size of a table of `steps` steps, in bytes.
pub(crate) fn table_bytes(steps: usize) -> usize {
    steps * size_of::<u32>()
}

impl<'a> Table<'a> {
    /// Computes the table in as many steps as [`steps`] returns.
    pub(crate) fn new(a: &'a [u8], b: &'a [u8]) -> Self {
        let width = b.len() + 1;
        let mut lengths = vec![0_u32; width];
        lengths.reserve_exact(width * a.len());
        let mut above = lengths.clone();
        let mut row = above.clone();
        for in_a in a {
            let mut left = 0;
            for ((cell, in_b), pair) in row.iter_mut().skip(1).zip(b).zip(above.array_windows()) {
                let [diagonal, over] = *pair;
                left = if in_a == in_b { diagonal + 1 } else { over.max(left) };
                *cell = left;
            }
            lengths.extend_from_slice(&row);
            std::mem::swap(&mut above, &mut row);
        }
        Self { a, b, lengths }
    }

    /// Length of the whole subsequence.
    pub(crate) fn length(&self) -> u32 {
        self.at(self.a.len(), self.b.len())
    }

    fn at(&self, i: usize, j: usize) -> u32 {
        self.lengths.get(i * (self.b.len() + 1) + j).copied().unwrap_or_default()
    }

    /// Returns pairs of positions of equal bytes, last first, chosen as in Redis.
    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> {
        let (mut i, mut j) = (self.a.len(), self.b.len());
        std::iter::from_fn(move || {
            while i > 0 && j > 0 {
                if self.a.get(i - 1) == self.b.get(j - 1) {
                    (i, j) = (i - 1, j - 1);
                    return Some((i, j));
                }
                if self.at(i - 1, j) > self.at(i, j - 1) { i -= 1 } else { j -= 1 }
            }
            None
        })
    }

    /// Subsequence as bytes.
    pub(crate) fn text(&self) -> Vec<u8> {
        let mut text: Vec<u8> = self.pairs().filter_map(|(i, _)| self.a.get(i).copied()).collect();
        text.reverse();
        text
    }

    /// Returns runs of the subsequence with at least `min` bytes, last first.
    pub(crate) fn matches(&self, min: usize) -> Vec<Match> {
        let mut matches: Vec<Match> = Vec::new();
        for (i, j) in self.pairs() {
            match matches.last_mut() {
                Some(last) if last.a.0 == i + 1 && last.b.0 == j + 1 => {
                    (last.a.0, last.b.0) = (i, j);
                }
                _ => matches.push(Match { a: (i, i), b: (j, j) }),
            }
        }
        matches.retain(|run| run.len() >= min);
        matches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subsequences_are_found_with_their_places() {
        let table = Table::new(b"ohmytext", b"mynewtext");
        assert_eq!((table.length(), table.text().as_slice()), (6, &b"mytext"[..]));
        let all = [Match { a: (4, 7), b: (5, 8) }, Match { a: (2, 3), b: (0, 1) }];
        assert_eq!(table.matches(0), all);
        assert_eq!(table.matches(4), all[..1]);
        assert_eq!(all[0].len(), 4);
    }

    #[test]
    fn the_empty_value_has_an_empty_subsequence_with_any_value() {
        for (a, b) in [("", ""), ("", "x"), ("x", ""), ("x", "y")] {
            let table = Table::new(a.as_bytes(), b.as_bytes());
            assert_eq!((table.length(), table.text(), table.matches(0)), (0, vec![], vec![]));
        }
    }

    #[test]
    fn tables_that_are_too_large_are_not_begun() {
        assert_eq!(steps(2_000, 2_000), Some(2_001 * 2_001));
        assert_eq!(steps(3_000, 3_000), None);
        assert_eq!(steps(usize::MAX / 2, 16), None);
    }
}
