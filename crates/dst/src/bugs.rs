//! Bugs that are seeded on purpose in the simulated crates, to show that the simulator finds them. The binary contains
//! them only if it is built with the feature `bugs`. The environment variable `ROOST_BUG` enables one.

use std::process::{Command, ExitCode, Output};
use std::time::Instant;

/// Environment variable with the name of the bug.
const VARIABLE: &str = "ROOST_BUG";

/// Maximum number of commands within which a bug must be found again, beginning with a seed that once found it: ten
/// times the greatest number needed so far.
const FOUND_WITHIN: u64 = 2_000_000;

/// Names of the bugs, each with its effect.
const BUGS: [(&str, &str); 46] = [
    ("acknowledge-before-sync", "a change is answered before its group is durable"),
    ("skip-checksum", "a payload in the log is not compared with its checksum"),
    ("accept-torn-group", "a group with missing sectors is applied"),
    ("keep-torn-group", "the remains of a torn group stay in the log"),
    ("no-directory-sync", "the name of a new segment is not durable"),
    ("no-segment-sync", "a segment gets a successor before it is durable"),
    ("cut-too-much", "the log is cut after the checkpoint that it needs"),
    ("trust-page-cache", "a start builds on what a failed sync left in the page cache"),
    ("apply-twice", "a start applies the first group after the checkpoint twice"),
    ("forget-last-stamp", "stamps begin anew at a start"),
    ("stamp-from-clock", "stamps come from the clock instead of the log"),
    ("checkpoint-before-sync", "the store is durable before the log"),
    ("checkpoint-ahead", "a checkpoint claims one more group than it has"),
    ("keep-half-change", "what a rule has changed before it panics is kept"),
    ("lose-removal", "a checkpoint forgets keys that were removed"),
    ("wrong-layer", "rows being written hide newer ones"),
    ("forget-owner", "the last owner of a set is not noted"),
    ("forget-deltas", "deltas of a list are removed and not folded into it"),
    ("stale-cache", "a removed key stays in the cache"),
    ("lose-effect", "the last change of a large group does not reach the newest posts"),
    ("forget-old-posts", "posts that left memory are missing in home timelines"),
    ("show-story-as-post", "the id of a story, asked for as a post, shows the story"),
    ("show-expired-key", "a key is shown a millisecond too long"),
    ("sweep-live-key", "a key is removed a millisecond too early"),
    ("show-expired-story", "a story is shown a millisecond too long"),
    ("show-direct-to-followers", "a direct post is shown to all followers of its author"),
    ("show-whom-one-blocks", "a user sees whom they block"),
    ("show-boosts-of-muted", "boosts of posts by muted users are shown"),
    ("show-muted-stories", "stories of muted friends are shown"),
    ("notify-of-muted-thread", "a mention in a muted thread is a notification"),
    ("stay-friends-of-blocked", "a block does not end a friendship"),
    ("notify-of-muted", "a mute that hides mentions does not hide them"),
    ("stay-in-lists", "who is unfollowed stays in lists"),
    ("list-without-follow", "users who are not followed are added to lists"),
    ("vote-twice", "a second vote replaces the first"),
    ("vote-after-end", "a poll is open for a second too long"),
    ("edit-addresses-others", "an edit changes whom a direct post addresses"),
    ("count-deleted-voters", "the votes of a deleted user stay counted"),
    ("show-disabled-to-anyone", "a visitor sees posts of disabled accounts"),
    ("find-deleted-users", "a search finds deleted users"),
    ("cost-one-hashtag", "the cost of a post counts one of its hashtags"),
    ("notify-first-voters", "of many voters only the first 64 are notified of the end of a poll"),
    ("mention-in-words", "a name within a word is a mention"),
    ("quote-against-policy", "everybody may quote what everybody may see"),
    ("show-quotes-of-hidden", "a quote shows a post that its reader may not see"),
    ("keep-revisions", "an edit does not change the revision of a post"),
];

/// Whether this binary contains the bugs.
pub(crate) const ARE_BUILT: bool = cfg!(feature = "bugs");

/// Enabled bug, if any.
pub(crate) fn switched_on() -> Option<String> {
    let name = std::env::var(VARIABLE).ok()?;
    assert!(is_known(&name) && ARE_BUILT, "{name} is not a bug of this binary");
    Some(name)
}

/// Whether a bug has this name.
pub(crate) fn is_known(name: &str) -> bool {
    BUGS.iter().any(|(known, _)| *known == name)
}

/// Searches for each bug whose name contains `part`, for at most `seconds` each, and prints the time needed. Fails if a
/// bug is not found.
pub(crate) fn find_all(part: &str, seconds: u64) -> ExitCode {
    if !ARE_BUILT {
        eprintln!("the bugs are not in this binary: build it with --features bugs");
        return ExitCode::FAILURE;
    }
    let mut missed = 0;
    println!("| bug | what it breaks | found after | seed | reported as |\n|---|---|---|---|---|");
    for (name, breaks) in BUGS.iter().filter(|(name, _)| name.contains(part)) {
        let start = Instant::now();
        let found = find(name, seconds);
        let time = start.elapsed().as_secs_f64();
        let (seed, report) = found.unwrap_or_else(|| {
            missed += 1;
            ("none".into(), "**not found**".into())
        });
        println!("| {name} | {breaks} | {time:.1} s | {seed} | {report} |");
    }
    if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Whether the bug is found with this or one of the next seeds. A seed repeats a run only as long as the simulator
/// draws the same random numbers.
pub(crate) fn is_found_from(name: &str, seed: u64) -> bool {
    let (seed, commands) = (seed.to_string(), FOUND_WITHIN.to_string());
    run_with(name, &["--from", &seed, "--commands", &commands]).is_some()
}

/// Returns the failure that a process with the bug reports, if any.
fn run_with(name: &str, arguments: &[&str]) -> Option<Output> {
    let mut command = Command::new(std::env::current_exe().ok()?);
    let output = command.env(VARIABLE, name).args(arguments).output().ok()?;
    (!output.status.success()).then_some(output)
}

/// Returns the seed with which a bug was found, and the first line of the report.
fn find(name: &str, seconds: u64) -> Option<(String, String)> {
    let output = run_with(name, &["--seconds", &seconds.to_string()])?;
    let report = String::from_utf8_lossy(&output.stderr).into_owned();
    let seed = report.lines().find_map(|line| line.split_once("--seed ").map(|(_, seed)| seed));
    let mut lines = report.lines().skip_while(|line| !line.starts_with("panicked")).skip(1);
    let first = lines.next().unwrap_or_default();
    let short: String = first.chars().take(90).collect();
    Some((seed.unwrap_or("unknown").to_owned(), short.replace('|', "/")))
}
