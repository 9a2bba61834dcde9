//! What a server says of the processor time it has used.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::time::timeout;

use crate::client::{Client, Requests};

const METRIC: &str = "process_cpu_seconds_total ";
/// How long the answer may take.
const ANSWER: Duration = Duration::from_secs(10);

/// Seconds of processor time that the server has used so far, of which 1 a second is one core; none if
/// it does not tell.
pub(crate) async fn used_s(target: SocketAddr, requests: &Requests) -> Option<f64> {
    let mut request = Vec::new();
    requests.get("/metrics", &mut request);
    let mut client = Client::new(target);
    let answer = timeout(ANSWER, client.send(&request)).await.ok()?.ok()?;
    read(str::from_utf8(answer.body).ok()?)
}

fn read(metrics: &str) -> Option<f64> {
    let line = metrics.lines().find_map(|line| line.strip_prefix(METRIC))?;
    line.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_found_among_other_metrics() {
        let metrics = "# TYPE process_cpu_seconds counter\nprocess_cpu_seconds_total 1.25\nx 2\n";
        assert_eq!(read(metrics), Some(1.25));
        assert_eq!(read("process_cpu_seconds_total 3 1700000000\n"), Some(3.0));
        assert_eq!(read("nothing 1\n"), None);
    }
}
