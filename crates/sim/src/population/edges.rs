//! A population from a real graph: an edge list. Each line has two numbers and means that these users follow each
//! other.
//!
//! Lines that begin with `#` or `%` are comments, and empty lines are skipped. Duplicate friendships, in either order,
//! count once. The number of users is the highest number plus one.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use thiserror::Error;

use super::PEOPLE_MAX;
use super::Population;

/// Error of an edge list.
#[derive(Debug, Error)]
pub enum GraphError {
    /// The file cannot be opened or read.
    #[error("cannot read the graph: {0}")]
    Read(#[from] io::Error),
    /// A line is malformed.
    #[error("line {line} of the graph: {problem}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// Description of the error.
        problem: String,
    },
    /// The file has no edge.
    #[error("the graph has no edges")]
    Empty,
}

/// Reads the edge list at `path`.
pub(crate) fn read(path: &Path) -> Result<Population, GraphError> {
    parse(BufReader::new(File::open(path)?))
}

fn parse(lines: impl BufRead) -> Result<Population, GraphError> {
    let mut pairs = Vec::new();
    for (number, line) in (1..).zip(lines.lines()) {
        let edge =
            parse_line(&line?).map_err(|problem| GraphError::Line { line: number, problem })?;
        pairs.extend(edge);
    }
    let last = pairs.iter().map(|&(a, b)| a.max(b)).max().ok_or(GraphError::Empty)?;
    Ok(Population::joining(last + 1, &pairs))
}

fn parse_line(line: &str) -> Result<Option<(u32, u32)>, String> {
    let line = line.trim();
    if line.is_empty() || line.starts_with(['#', '%']) {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let (Some(a), Some(b), None) = (words.next(), words.next(), words.next()) else {
        return Err(format!("expected two numbers, found {line:?}"));
    };
    let (a, b) = (user(a)?, user(b)?);
    if a == b {
        return Err(format!("user {a} is connected to themselves"));
    }
    Ok(Some((a, b)))
}

fn user(word: &str) -> Result<u32, String> {
    match word.parse() {
        Ok(number) if number < PEOPLE_MAX => Ok(number),
        _ => Err(format!("{word:?} is not a number from 0 to {}", PEOPLE_MAX - 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_list_reads_as_mutual_follows() {
        let check = |text: &str, expect: &[&[u32]]| {
            let made = parse(text.as_bytes()).expect("a readable graph");
            let users = 0..made.people();
            let read: Vec<&[u32]> = users.map(|user| made.following(user)).collect();
            assert_eq!(read, expect, "{text:?}");
        };
        check("0 1", &[&[1], &[0]]);
        check("1\t0\r\n", &[&[1], &[0]]);
        check("# users\n% 3 3 2\n\n0 3\n1 0\n", &[&[1, 3], &[0], &[], &[0]]);
        check("0 1\n1 0\n0 1\n", &[&[1], &[0]]);
    }

    #[test]
    fn a_bad_line_is_named_with_its_number() {
        let check = |text: &str, expect: &str| {
            let error = parse(text.as_bytes()).expect_err("a bad graph");
            assert_eq!(error.to_string(), expect, "{text:?}");
        };
        check("", "the graph has no edges");
        check("# nothing\n", "the graph has no edges");
        check("0 1\n7\n", "line 2 of the graph: expected two numbers, found \"7\"");
        check("1 2 3", "line 1 of the graph: expected two numbers, found \"1 2 3\"");
        check("0 x", "line 1 of the graph: \"x\" is not a number from 0 to 9999999");
        check("\n0 -1", "line 2 of the graph: \"-1\" is not a number from 0 to 9999999");
        check("0 10000000", "line 1 of the graph: \"10000000\" is not a number from 0 to 9999999");
        check("0 1\n5 5", "line 2 of the graph: user 5 is connected to themselves");
    }
}
