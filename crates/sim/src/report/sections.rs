//! The sections of the page with text and tables.

use std::fmt::Write as _;

use charts::color;
use charts::html::escape;
use charts::page::{self, Tone, section, table, tiles};

use super::Recording;
use super::files::DataLink;
use crate::population::{Aim, MISSED, Measured, Share};
use crate::summary::{Correctness, ErrorCount, FeedSummary, KindSummary, Summary};
use crate::units::{bytes, count, ms, number, percent, seconds, several};
use crate::workload::{KeyLoad, Load};

/// The result of the run in a sentence.
pub(super) fn verdict(summary: &Summary) -> String {
    let faults = summary.correctness.as_ref().map_or(0, Correctness::faults);
    let (tone, word) = if !summary.inconclusive.is_empty() {
        (Tone::Bad, "Inconclusive")
    } else if summary.error_count() > 0 || faults > 0 {
        (Tone::Warn, "Valid, with errors")
    } else if summary.interrupted {
        (Tone::Warn, "Valid, but cut short")
    } else {
        (Tone::Good, "Valid")
    };
    let because = if summary.inconclusive.is_empty() {
        String::new()
    } else {
        format!(" because {}", summary.inconclusive.join("; "))
    };
    page::verdict(tone, word, &format!("{because}: {}.", found(summary).join(", ")))
}

/// The findings, as parts of a sentence.
fn found(summary: &Summary) -> Vec<String> {
    let rate = number(rate(summary));
    let mut parts = vec![format!("{rate} requests per second for {}", seconds(summary.run_s))];
    parts.push(match summary.error_count() {
        0 => "no errors".to_owned(),
        errors => {
            let share = percent(errors, errors + done(summary));
            format!("{} ({share})", several(errors, "error", "errors"))
        }
    });
    if let Some(worst) = worst(summary) {
        parts.push(format!("worst p99 {} ({})", ms(worst.p99_ms), worst.kind));
    }
    if let Some(delivery) = summary.delivery.filter(|delivery| delivery.samples > 0) {
        let posts = several(delivery.samples, "sampled post", "sampled posts");
        parts.push(format!("99 % of {posts} seen within {}", ms(delivery.p99_ms)));
    }
    if let Some(correctness) = &summary.correctness {
        let pages = several(correctness.pages, "sampled page", "sampled pages");
        parts.push(match (correctness.pages, correctness.faults()) {
            (0, _) => "no sampled timeline could be read".to_owned(),
            (_, 0) => format!("all {pages} correct"),
            (_, faults) => format!("{} on {pages}", several(faults, "fault", "faults")),
        });
    }
    parts
}

fn done(summary: &Summary) -> u64 {
    summary.kinds.iter().map(|kind| kind.count).sum()
}

fn rate(summary: &Summary) -> f64 {
    summary.kinds.iter().map(|kind| kind.per_second).sum()
}

fn worst(summary: &Summary) -> Option<&KindSummary> {
    summary.kinds.iter().max_by(|a, b| a.p99_ms.total_cmp(&b.p99_ms))
}

/// The most important figures, in large type.
pub(super) fn figures_of_note(summary: &Summary) -> String {
    let errors = summary.error_count();
    let mut shown = vec![
        (
            "Requests",
            format!("{}/s", number(rate(summary))),
            format!("{} done", count(done(summary))),
        ),
        ("Errors", count(errors), percent(errors, errors + done(summary))),
    ];
    if let Some(worst) = worst(summary) {
        shown.push(("Worst p99", ms(worst.p99_ms), worst.kind.to_owned()));
    }
    if let Some(delivery) = summary.delivery.filter(|delivery| delivery.samples > 0) {
        let samples = several(delivery.samples, "post sampled", "posts sampled");
        shown.push(("Delivery p99", ms(delivery.p99_ms), samples));
    }
    if let Some(found) = summary.correctness.as_ref().filter(|found| found.pages > 0) {
        let pages = several(found.pages, "page compared", "pages compared");
        shown.push(("Faults in home timelines", count(found.faults()), pages));
    }
    if let Some(server) = summary.server {
        let cores = format!("{} cores", number(server.cores));
        shown.push(("Server memory", bytes(server.memory_bytes_max as f64), cores));
    }
    tiles(shown)
}

/// Parameters needed to repeat the run.
pub(super) fn what_was_run(summary: &Summary, recording: &Recording, command: &str) -> String {
    let mut rows = vec![("Command", format!("<code>{}</code>", escape(command)))];
    rows.push(("Seed", summary.seed.to_string()));
    rows.extend(who(summary));
    rows.extend(how(summary, recording));
    facts(&rows)
}

/// Parameters of the run, by name; values are markup.
pub(super) fn facts(rows: &[(&str, String)]) -> String {
    section("Run", &page::facts(rows))
}

/// The users and their load; values are markup.
fn who(summary: &Summary) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    if summary.users > 0 {
        rows.push(("Users", count(summary.users.into())));
    }
    if let Some(feed) = &summary.feed {
        let load = match feed.load {
            Load::Light => "light: the most active 5 % of users post every 10 s",
            Load::Heavy => "heavy: the most active 5 % of users post every 2 s",
            Load::Deathstar => {
                "60 % home timelines, 30 % user timelines, 10 % posts, by random users"
            }
        };
        let top = number(feed.posts_by_top_twentieth);
        rows.push(("Follows", count(feed.follows)));
        rows.push((
            "Load",
            format!("{load}; the most active 5 % of users wrote {top} % of the posts"),
        ));
    }
    if let Some(stories) = &summary.stories {
        rows.push(("Friendships", count(stories.friendships)));
        rows.push(("Stories", escape(&stories.to_string())));
    }
    if let Some(KeyLoad { ycsb, records, value_bytes }) = summary.keys {
        let (records, value) = (count(records.into()), bytes(value_bytes.into()));
        rows.push(("Bucket", format!("{records} records of {value}, YCSB {ycsb:?}")));
    }
    if let Some(drawings) = &summary.drawings {
        let (made_of, rate) = (drawings.references, drawings.recognitions_due_per_second);
        rows.push(("Drawings", format!("made of {made_of}, {rate} per second")));
    }
    rows
}

/// Duration, connections and resource usage; values are markup.
fn how(summary: &Summary, recording: &Recording) -> Vec<(&'static str, String)> {
    let asked = recording.plan().map(|plan| plan.duration.as_secs_f64());
    let asked = asked.map_or(String::new(), |asked| format!(" of {} requested", seconds(asked)));
    let (loaded, driven) = (seconds(summary.load_s), seconds(summary.run_s));
    let mut rows = vec![("Duration", format!("loaded in {loaded}, driven for {driven}{asked}"))];
    rows.push(("Loop", (if summary.closed { CLOSED } else { OPEN }).to_owned()));
    if let Some(server) = summary.server {
        let (end, max) = (bytes(server.memory_bytes as f64), bytes(server.memory_bytes_max as f64));
        let cores = number(server.cores);
        rows.push(("Server", format!("{cores} cores, {end} of memory at the end, {max} at most")));
    }
    let lag = &summary.lag;
    let (late, waited) = (count(lag.late_starts), count(lag.waited_for_connection));
    let own = ms(lag.scheduling_delay_p99_ms);
    let used = summary.generator.map_or(String::new(), |used| {
        let (cores, memory) = (number(used.cores), bytes(used.memory_bytes as f64));
        format!(", {cores} cores, {memory} of memory")
    });
    let lag = format!(
        "scheduling delay p99 {own}, {late} late starts, {waited} waited for a connection{used}"
    );
    rows.push(("Generator", lag));
    rows
}

pub(super) const OPEN: &str = "open: requests are due at random times independent of the server, and latency \
                    counts from when a request was due, so a stall shows in full";
const CLOSED: &str = "closed: each request waits for the response to the previous one, so a slow \
                      server gets fewer requests and a stall shows once per connection; not \
                      comparable with an open loop";

/// Counts and latencies by kind of request.
pub(super) fn kinds(summary: &Summary) -> String {
    let head = ["kind", "count", "per s", "errors", "p50", "p90", "p99", "p99.9", "max"];
    let row = |(at, kind): (usize, &KindSummary)| {
        let (color, name) = (color(at), escape(kind.kind));
        let mut cells = vec![format!("<i class=\"{color}\"></i>{name}")];
        cells.extend([count(kind.count), number(kind.per_second), count(kind.errors)]);
        let times = [kind.p50_ms, kind.p90_ms, kind.p99_ms, kind.p999_ms, kind.max_ms];
        cells.extend(times.map(ms));
        cells
    };
    let rows: Vec<_> = summary.kinds.iter().enumerate().map(row).collect();
    section("Requests", &table("Requests by kind", &head, &rows))
}

/// The errors by kind, and the first ones in full.
pub(super) fn errors(summary: &Summary) -> String {
    if summary.errors.is_empty() {
        return String::new();
    }
    let row = |error: &ErrorCount| vec![escape(&error.kind), count(error.count)];
    let rows: Vec<_> = summary.errors.iter().map(row).collect();
    let html = table("Errors by kind", &["kind", "count"], &rows)
        + &messages("First errors", &summary.error_messages);
    section("Errors", &html)
}

/// Faults in home timelines, by kind.
pub(super) fn correctness(summary: &Summary) -> String {
    let Some(found) = &summary.correctness else { return String::new() };
    let Correctness { readers, pages, posts, missing, doubled, out_of_order, unexpected, .. } =
        found;
    if *pages == 0 {
        return section("Correctness", "<p class=\"lead\">No timeline could be read.</p>\n");
    }
    let verdict = if found.faults() == 0 {
        "All were found, in order, without duplicates or unexpected posts."
    } else {
        "Some timelines had faults."
    };
    let full = match readers {
        0 => String::new(),
        _ => format!(
            "; the home timelines of {} were read in full",
            several(*readers, "user", "users")
        ),
    };
    let lead = format!(
        "<p class=\"lead\">{} were expected on {} of home timelines{full}. {verdict}</p>\n",
        several(*posts, "accepted post", "accepted posts"),
        several(*pages, "page", "pages"),
    );
    if found.faults() == 0 {
        return section("Correctness", &lead);
    }
    let row = |name: &str, number: &u64| vec![name.to_owned(), count(*number)];
    let rows = [
        row("missing", missing),
        row("duplicate", doubled),
        row("out of order", out_of_order),
        row("unexpected", unexpected),
    ];
    let html = lead
        + &table("Faults in home timelines", &["posts", "count"], &rows)
        + &messages("First faults", &found.examples);
    section("Correctness", &html)
}

fn messages(title: &str, messages: &[String]) -> String {
    if messages.is_empty() {
        return String::new();
    }
    let mut html = format!("<h3>{title}</h3>\n<ul class=\"messages\">\n");
    for message in messages {
        let _ = writeln!(html, "<li><code>{}</code></li>", escape(message));
    }
    html + "</ul>\n"
}

/// The population compared with the tables it was generated from.
pub(super) fn population(summary: &Summary) -> String {
    let Some(FeedSummary { shares: Some(shares), measured, .. }) = &summary.feed else {
        return String::new();
    };
    let row = |share: &Share| {
        let range = if share.low == share.high {
            count(share.low.into())
        } else {
            format!("{} to {}", count(share.low.into()), count(share.high.into()))
        };
        let points = share.achieved - share.asked;
        let [asked, mut achieved] =
            [share.asked, share.achieved].map(|value| format!("{value:.2} %"));
        if share.is_missed {
            achieved.push_str(MISSED);
        }
        vec![range, asked, achieved, format!("{points:+.2}")]
    };
    let half = |title: &str, shares: &[Share]| {
        let rows: Vec<_> = shares.iter().map(row).collect();
        let head = [title, "asked", "achieved", "points"];
        format!("<div>{}</div>\n", table(title, &head, &rows))
    };
    let html = format!(
        "<p class=\"lead\">Share of users by number of followers and by number of followees.</p>\n\
         <div class=\"row of-2\">\n{}{}</div>\n<p class=\"lead\">{}</p>\n",
        half("followers", &shares.followers),
        half("following", &shares.following),
        ties(measured)
    );
    section("Population", &html)
}

/// Reciprocity, clustering and communities.
fn ties(measured: &Measured) -> String {
    let aim = |what: &str, aim: Aim| {
        let asked = aim.asked.map_or(String::new(), |asked| format!(", asked {asked:.3}"));
        format!("{what} ({:.3}{asked})", aim.achieved)
    };
    format!(
        "{}; {}; {} communities with {:.1} % of the follows within them.",
        aim("Mutual follows", measured.reciprocity),
        aim("average local clustering", measured.clustering),
        count(measured.communities.into()),
        measured.follows_within_communities * 100.0
    )
}

/// An introduction for first-time readers of a report.
pub(super) fn how_to_read(summary: &Summary) -> String {
    let latency = if summary.closed {
        "Latency counts from when a request was sent, and a server that stalls gets fewer \
         requests meanwhile, so the percentiles are too low."
    } else {
        "Latency counts from when a request was due, not from when it was sent: while a server \
         stalls, every request that becomes due waits, and all of this time counts."
    };
    let html = format!(
        "<p>{latency} Look at p99 and the right end of the curve before the median: a user who sends a hundred \
         requests sees the p99 about once. The generator's scheduling delay is not caused by the server; \
         if it is not small compared with the latencies, the run is inconclusive: run the generator \
         on another machine.</p>\n"
    );
    section("How to read this", &html)
}

/// Links to the raw data; `about` is markup that describes the files.
pub(super) fn raw_data(links: &[DataLink], about: &str) -> String {
    let links = links.iter().map(|link| (link.name.as_str(), link.address.as_str()));
    section("Raw data", &(page::links(links) + about))
}
